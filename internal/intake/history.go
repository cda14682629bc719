package intake

import (
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/redact"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// A History is what an agent tells again of a session, ready to be recorded: without
// keys, and with its content looked at.
type History struct{ parts []part }

// A part is a report, or what the human said.
type part struct {
	report

	said    bool
	text    string
	content []domain.Content
}

// ReadHistory makes ready what an agent tells again. secrets are taken out of it. What
// makes no sense is left out.
func (in *Intake) ReadHistory(list []catalog.Retold, secrets *redact.Secrets) *History {
	h := &History{}
	keep := func(r report) { h.parts = append(h.parts, part{report: r}) }
	content := unpacker{secrets: secrets, pass: keep}
	keys := redactor{stream: redact.Stream{Secrets: secrets}, pass: content.take}
	for _, told := range list {
		if told.Role == "user" {
			keys.flush()
			h.parts = append(h.parts, part{said: true, text: secrets.Text(told.Text), content: content.read(0, told.Content)})
			continue
		}
		r, err := in.reportOf(0, told.EventType, told.EventData)
		if err != nil {
			in.opts.Logger.Warn("a part of a history was not taken", "kind", told.EventType, "err", err)
			continue
		}
		keys.take(r)
	}
	keys.flush()
	return h
}

// Prompt is what the human said first that is text, or "". What begins with a tag was
// mostly put there by an agent, so it counts only if there is nothing else.
func (h *History) Prompt() (prompt string) {
	for _, p := range h.parts {
		switch {
		case !p.said || p.text == "":
		case !strings.HasPrefix(p.text, "<"):
			return p.text
		case prompt == "":
			prompt = p.text
		}
	}
	return prompt
}

// RecordHistory keeps a history as what was said and done in a run, which has not
// ended. A part that makes no sense is logged and left out.
func (in *Intake) RecordHistory(t store.Tx, id int64, h *History) error {
	for _, p := range h.parts {
		var err error
		var run domain.Run
		if p.said || p.kind == catalog.EventPlan { // what was written before it stands before it
			run, err = in.endMessageOf(t, id)
		}
		switch {
		case err != nil:
		case p.said:
			err = in.opts.Conversation.Said(t, run, p.text, p.content)
		default:
			p.run = id
			err = in.recorder.record(t, p.report)
		}
		switch {
		case store.IsFull(err):
			return err
		case err != nil:
			in.opts.Logger.Warn("a part of a history was not taken", "kind", p.kind, "err", err)
		}
	}
	return nil
}

// endMessageOf ends the message that the agent of a run was writing, and is the run
// then.
func (in *Intake) endMessageOf(t store.Tx, id int64) (domain.Run, error) {
	run, err := t.Run(in.recorder.ctx, id)
	if err == nil {
		err = in.opts.Conversation.CloseMessage(t, &run)
	}
	return run, err
}
