package intake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/diff"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/redact"
	"github.com/duet-rpc/duet-rpc/internal/transcript"
)

// ReportMessage receives one event of an agent.
func (in *Intake) ReportMessage(ctx context.Context, p catalog.ReportMessageParams) error {
	turn, err := in.speaker(ctx, p.SessionToken, p.TaskID)
	if err != nil || turn == nil {
		return err
	}
	r, err := in.reportOf(turn.id, p.EventType, p.EventData)
	if err != nil {
		turn.refusals.addKind(p.EventType, err)
		return err
	}
	turn.take(p.Sequence, r)
	return nil
}

// ReportProgress receives the progress of a task.
func (in *Intake) ReportProgress(ctx context.Context, p catalog.ReportProgressParams) error {
	return in.report(ctx, p.SessionToken, p.TaskID, kindProgress, p.Progress)
}

// ReportError receives an error that does not end the task.
func (in *Intake) ReportError(ctx context.Context, p catalog.ReportErrorParams) error {
	return in.report(ctx, p.SessionToken, p.TaskID, catalog.EventError, p.Error)
}

// report receives an unnumbered report.
func (in *Intake) report(ctx context.Context, token, task, kind string, value any) error {
	turn, err := in.speaker(ctx, token, task)
	if err != nil || turn == nil {
		return err
	}
	turn.take(0, report{turn: turn.id, kind: kind, data: encode(value)})
	return nil
}

// ReportCompletion receives the end of a task, which an executor reports before it answers
// execute_prompt. It counts if that answer does not arrive; see [Turn.Completion].
func (in *Intake) ReportCompletion(ctx context.Context, p catalog.ReportCompletionParams) error {
	turn, err := in.speaker(ctx, p.SessionToken, p.TaskID)
	if err != nil || turn == nil {
		return err
	}
	turn.complete(catalog.ExecutePromptResult{Status: p.Status, TokenUsage: p.TokenUsage, Error: p.Error})
	return nil
}

// ReportSession receives an agent's session data between prompts. The caller has checked that the
// executor runs Duet's session.
func (in *Intake) ReportSession(_ context.Context, p catalog.ReportSessionParams) error {
	in.queue.add(report{kind: kindSessionBetween, data: encode(p.Session), between: &between{p.SessionID, p.TaskID}})
	return nil
}

// lateEvents are the types of events that ReportLate accepts.
var lateEvents = []string{
	catalog.EventContentDelta, catalog.EventThinkingChunk, catalog.EventToolUpdate, catalog.EventToolResult, catalog.EventNotice,
	catalog.EventCompaction, catalog.EventUsage,
}

// ReportLate stores an event of a task that has ended. The caller has checked that the executor
// runs the session's agent.
func (in *Intake) ReportLate(_ context.Context, p catalog.ReportLateParams) error {
	if !slices.Contains(lateEvents, p.EventType) {
		return domain.Invalid("event_type", "one of "+strings.Join(lateEvents, ", "), strconv.Quote(p.EventType))
	}
	r, err := in.reportOf(0, p.EventType, p.EventData)
	if err != nil {
		return err
	}
	r.between = &between{p.SessionID, p.TaskID}
	in.queue.add(r)
	return nil
}

// ReportRefused notes that a report of an executor was lost in transit. task is the turn's UUID. The
// caller has checked that the executor has the turn. It ignores a turn that has ended.
func (in *Intake) ReportRefused(task string, why error) {
	for _, turn := range in.turns.withTask(task) {
		turn.refusals.add(why)
	}
}

// speaker returns the turn of an executor's token, or nil if it has ended.
func (in *Intake) speaker(ctx context.Context, token, task string) (*Turn, error) {
	id, err := in.opts.Turns.TurnOf(ctx, token, task)
	if err != nil {
		return nil, err
	}
	return in.turns.get(id), nil
}

// Kinds of reports that are not events of the catalog.
const (
	kindProgress       = "progress"        // progress of a task
	kindSessionBetween = "session between" // catalog.Session between prompts
)

// report is one report of an executor about a turn.
type report struct {
	turn   int64
	kind   string // catalog.Event…, or kind…
	data   json.RawMessage
	delta  catalog.ContentDelta   // for a delta, which has no data
	change *transcript.FileChange // for a changed file
	blocks []domain.Content       // for content and tool calls; not in data
	parent string                 // for content: the sub-agent's tool call

	thought bool // for content: part of a thought

	between *between // for reports between prompts, which have no turn
}

// size returns its approximate memory, in bytes.
func (r *report) size() int {
	n := len(r.data) + len(r.delta.Delta.Text) + len(r.delta.Meta)
	for _, b := range r.blocks {
		n += len(b.Data)
	}
	return n
}

// isDelta reports whether it is a piece of a message or thought.
func (r *report) isDelta() bool {
	return r.kind == catalog.EventContentDelta || r.kind == catalog.EventThinkingChunk
}

// isLateText reports whether it is text of a turn that has ended.
func (r *report) isLateText() bool { return r.between != nil && r.isDelta() }

// continuedBy reports whether next belongs to the same message.
func (r *report) continuedBy(next report) bool {
	a, b := r.delta.MessageID, next.delta.MessageID
	return r.kind == next.kind && r.delta.ParentID == next.delta.ParentID && (a == b || a == "" || b == "")
}

var errNoPath = errors.New("a file change without a path")

// reportOf converts an agent's event into a report. It does the slow work, so that the store's
// writer need not.
func (in *Intake) reportOf(turn int64, kind string, data json.RawMessage) (report, error) {
	r := report{turn: turn, kind: kind, data: data}
	switch {
	case r.isDelta():
		r.data = nil
		return r, json.Unmarshal(data, &r.delta)
	case kind == catalog.EventFileChange:
		var err error
		r.change, err = in.fileChange(data)
		return r, err
	}
	return r, nil
}

// fileChange makes the diff of a reported file change.
func (in *Intake) fileChange(data json.RawMessage) (*transcript.FileChange, error) {
	var c transcript.FileChange
	if err := json.Unmarshal(data, &c.FileChange); err != nil {
		return nil, err
	}
	switch {
	case c.Path == "":
		return nil, errNoPath
	case c.Binary:
		return &c, nil
	}
	c.Diff = diff.Unified(in.opts.Root(c.Path), c.Path, c.Before, c.After)
	c.Added, c.Removed = diff.Count(c.Diff)
	return &c, nil
}

// encode returns v as JSON. An error replaces invalid JSON from an executor.
func encode(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		b, _ = json.Marshal(map[string]string{"malformed": fmt.Sprint(err)})
	}
	return b
}

// CodeOutputMissing is the error code of a turn that would have completed, but lacks some of its
// agent's output.
const CodeOutputMissing = "OUTPUT_MISSING"

// refusals are the refused reports of a turn. Its methods may be called from any goroutine; the zero
// value is empty.
type refusals struct {
	mu    sync.Mutex // guards the fields below
	count int
	first error
}

func (r *refusals) add(why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.count == 0 {
		r.first = why
	}
	r.count++
}

// addKind is add for a report of a kind.
func (r *refusals) addKind(kind string, why error) { r.add(fmt.Errorf("%s: %w", kind, why)) }

// judge returns the effective result of a turn: it has not completed if a report was refused,
// whatever its executor says.
func (r *refusals) judge(result catalog.ExecutePromptResult) catalog.ExecutePromptResult {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.count == 0 || result.Status != catalog.StatusCompleted {
		return result
	}
	reports := "a report"
	if r.count > 1 {
		reports = fmt.Sprintf("%d reports", r.count)
	}
	result.Status = catalog.StatusFailed
	result.Error = &catalog.ExecutionError{Code: CodeOutputMissing, Message: fmt.Sprintf(
		"the agent has ended, but %s of it could not be stored, so output is missing here (%s); its work is done: look at the files, or "+
			"continue it and ask", reports, r.first)}
	return result
}

// Limits of the stored sign-in methods of an agent.
const (
	maxAuthMethods    = 20
	maxAuthMethodText = 500 // bytes
)

// withoutKeys redacts an executor's failure, which may contain the agent's last complaint.
func withoutKeys(failure *catalog.ExecutionError, secrets *redact.Secrets) *catalog.ExecutionError {
	if failure == nil {
		return nil
	}
	clean := *failure
	clean.Message, clean.AuthMethods = secrets.Piece(clean.Message), nil
	for _, m := range failure.AuthMethods[:min(len(failure.AuthMethods), maxAuthMethods)] {
		if m.ID == "" || len(m.ID) > maxAuthMethodText {
			continue
		}
		m.Name, m.Description = secrets.Piece(cut(m.Name)), secrets.Piece(cut(m.Description))
		clean.AuthMethods = append(clean.AuthMethods, m)
	}
	return &clean
}

func cut(text string) string {
	if len(text) <= maxAuthMethodText {
		return text
	}
	return strings.ToValidUTF8(text[:maxAuthMethodText], "") + "…"
}
