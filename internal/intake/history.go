package intake

import (
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/redact"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// History is the replayed history of a session, redacted and with decoded content, ready to be
// recorded.
type History struct{ parts []part }

// part is a report or a message of the human.
type part struct {
	report

	said    bool
	text    string
	content []domain.Content
}

// ReadHistory prepares a replayed history. It redacts secrets and drops invalid parts.
func (in *Intake) ReadHistory(list []catalog.ReplayedPart, secrets *redact.Secrets) *History {
	h := &History{}
	keep := func(r report) { h.parts = append(h.parts, part{report: r}) }
	content := unpacker{secrets: secrets, pass: keep}
	keys := redactor{stream: redact.Stream{Secrets: secrets}, pass: content.take}
	for _, item := range list {
		if item.Role == "user" {
			keys.flush()
			h.parts = append(h.parts, part{said: true, text: secrets.Text(item.Text), content: content.read(0, item.Content)})
			continue
		}
		r, err := in.reportOf(0, item.EventType, item.EventData)
		if err != nil {
			in.opts.Logger.Warn("a part of a history was skipped", "kind", item.EventType, "err", err)
			continue
		}
		keys.take(r)
	}
	keys.flush()
	return h
}

// Prompt returns the first text of the human, or "". A text that begins with a tag was probably
// inserted by an agent, so it counts only if there is no other.
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

// RecordHistory stores a history as the messages and tool calls of a turn that has not ended. It
// logs and drops an invalid part.
func (in *Intake) RecordHistory(t store.Tx, id int64, h *History) error {
	for _, p := range h.parts {
		var err error
		var turn domain.Turn
		if p.said || p.kind == catalog.EventPlan { // the preceding message ends first
			turn, err = in.endMessageOf(t, id)
		}
		switch {
		case err != nil:
		case p.said:
			err = in.opts.Transcript.Said(t, turn, p.text, p.content)
		default:
			p.turn = id
			err = in.recorder.record(t, p.report)
		}
		switch {
		case store.IsFull(err):
			return err
		case err != nil:
			in.opts.Logger.Warn("a part of a history was skipped", "kind", p.kind, "err", err)
		}
	}
	return nil
}

// endMessageOf ends the message of a turn's agent and returns the updated turn.
func (in *Intake) endMessageOf(t store.Tx, id int64) (domain.Turn, error) {
	turn, err := t.Turn(in.recorder.ctx, id)
	if err == nil {
		err = in.opts.Transcript.CloseMessage(t, &turn)
	}
	return turn, err
}
