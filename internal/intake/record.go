package intake

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/redact"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// record stores a report: in the transcript of its turn, in the turn, or only as an event. It
// returns an error only if the disk is full, which rolls the transaction back.
func (w *recorder) record(t store.Tx, r report) error {
	err := w.recordReport(t, r)
	if err != nil {
		w.opts.Transcript.Drop(t, r.turn)
	}
	return err
}

func (w *recorder) recordReport(t store.Tx, r report) error {
	if r.between != nil && r.kind != kindSessionBetween {
		return w.recordLate(t, r)
	}
	switch r.kind {
	case catalog.EventContentDelta:
		return w.opts.Transcript.Delta(t, r.turn, r.delta, false)
	case catalog.EventThinkingChunk:
		return w.opts.Transcript.Delta(t, r.turn, r.delta, true)
	}
	if r.between != nil {
		return decoded(r, func(s catalog.Session) error { return w.recordBetween(t, *r.between, s) })
	}
	turn, err := t.Turn(w.ctx, r.turn)
	if err != nil {
		return err
	}
	if turn.State.Ended() && r.kind != catalog.EventProcess { // its end has been announced already
		return nil
	}
	switch r.kind {
	case catalog.EventMessageStart, catalog.EventMessageStop:
		return w.opts.Transcript.CloseMessage(t, &turn)
	case catalog.EventToolCall, catalog.EventToolUpdate, catalog.EventToolResult:
		return decoded(r, func(call catalog.ToolCall) error {
			return w.recordTool(t, turn, call, r)
		})
	case catalog.EventContent:
		return w.opts.Transcript.Content(t, &turn, r.parent, r.blocks, r.thought)
	case catalog.EventUserMessage:
		return decoded(r, func(m catalog.UserMessage) error {
			return w.opts.Transcript.Steered(t, &turn, m.Text)
		})
	case catalog.EventNotice, catalog.EventCompaction:
		return w.recordNote(t, turn, r)
	case catalog.EventPlan:
		return decoded(r, func(plan catalog.Plan) error { return w.opts.Transcript.Plan(t, turn, plan) })
	case catalog.EventFileChange:
		return w.opts.Transcript.File(t, turn, *r.change)
	case catalog.EventPermissionTaken:
		return decoded(r, func(p catalog.PermissionTaken) error { return w.opts.Answers.Taken(t, turn.ID, p.ApprovalIDs) })
	case catalog.EventElicitationDone:
		return decoded(r, func(e catalog.ElicitationDone) error { return w.opts.Answers.Done(t, turn, e.ApprovalID) })
	case catalog.EventDenialEndedTurn:
		return w.opts.Transcript.DenialEndedTurn(t, &turn)
	case catalog.EventNativeSession:
		return decoded(r, func(n catalog.NativeSession) error { return w.recordSession(t, turn, n) })
	case catalog.EventUsage:
		return decoded(r, func(u catalog.Usage) error { return w.recordUsage(t, turn, u) })
	case catalog.EventProcess:
		return decoded(r, func(p catalog.Process) error {
			t.AfterCommit(func() { w.opts.Turns.AgentStarted(turn.ID) })
			return t.PutProcess(domain.Process{PID: p.PID, Mark: p.Mark, Turn: turn.ID})
		})
	case catalog.EventMode:
		return decoded(r, func(m catalog.Mode) error { return w.recordMode(t, turn, m) })
	case catalog.EventSession:
		return decoded(r, func(s catalog.Session) error { return w.recordAgentSession(t, turn, s) })
	case catalog.EventSilence:
		return decoded(r, func(s catalog.Silence) error { return w.recordSilence(t, turn, s) })
	case kindProgress:
		turn.Progress = r.data
		if err := t.UpdateTurn(turn); err != nil {
			return err
		}
		return announce(t, turn, domain.ProgressReported{Report: object(r.data)})
	case catalog.EventError:
		return w.recordError(t, turn, r)
	case catalog.EventRaw:
		if len(r.data) == 0 {
			return announce(t, turn, domain.AgentUpdated{})
		}
		return announce(t, turn, domain.AgentUpdated{Update: r.data})
	}
	return announce(t, turn, domain.AgentUpdated{Update: encode(map[string]any{"type": r.kind, "data": r.data})})
}

// recordNote stores what an agent reports of its work besides messages.
func (w *recorder) recordNote(t store.Tx, turn domain.Turn, r report) error {
	if r.kind == catalog.EventNotice {
		return decoded(r, func(n catalog.Notice) error { return w.opts.Transcript.Notice(t, turn, n) })
	}
	return decoded(r, func(c catalog.Compaction) error { return w.opts.Transcript.Compacted(t, turn, c) })
}

// recordError announces an error that does not end a turn. If the transcript needs it, it becomes
// part of the transcript too.
func (w *recorder) recordError(t store.Tx, turn domain.Turn, r report) error {
	if err := announce(t, turn, domain.AgentErrorReported{Report: object(r.data)}); err != nil {
		return err
	}
	var e catalog.ReportedError
	if json.Unmarshal(r.data, &e) != nil {
		return nil
	}
	return w.opts.Transcript.ErrorReported(t, turn, e.Code, e.Message)
}

// recordUsage stores the usage of a turn so far. 0 means not reported.
func (w *recorder) recordUsage(t store.Tx, turn domain.Turn, u catalog.Usage) error {
	u = u.Bounded()
	set := func(field *int64, value int64) {
		if value > 0 {
			*field = value
		}
	}
	k := &turn.Tokens
	set(&k.Input, u.InputTokens)
	set(&k.Output, u.OutputTokens)
	set(&k.CacheRead, u.CacheReadTokens)
	set(&k.CacheWrite, u.CacheWriteTokens)
	set(&k.ContextUsed, u.ContextUsed)
	set(&k.ContextSize, u.ContextSize)
	if u.CostUSD > 0 {
		k.CostUSD = u.CostUSD
	}
	if err := t.UpdateTurn(turn); err != nil {
		return err
	}
	if err := announce(t, turn, domain.UsageReported{
		InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, CacheReadTokens: u.CacheReadTokens, CacheWriteTokens: u.CacheWriteTokens,
		ContextUsed: u.ContextUsed, ContextSize: u.ContextSize, CostUSD: u.CostUSD, Meta: u.Meta,
	}); err != nil {
		return err
	}
	if w.opts.Budget == nil || turn.State.Ended() { // no turn is left to stop
		return nil
	}
	return w.opts.Budget.Used(t, turn)
}

// recordTool stores a reported tool call and counts those that begin or end.
func (w *recorder) recordTool(t store.Tx, turn domain.Turn, call catalog.ToolCall, r report) error {
	ended := r.kind == catalog.EventToolResult
	if err := w.opts.Transcript.Tool(t, &turn, call, r.blocks, ended); err != nil {
		return err
	}
	switch {
	case w.opts.Budget == nil:
	case ended:
		return w.opts.Budget.CallEnded(t, turn, cmp.Or(call.ToolID, call.Tool))
	case r.kind == catalog.EventToolCall:
		return w.opts.Budget.Called(t, turn)
	}
	return nil
}

// recordSilence stores that a turn's agent shows no activity, and keeps it in memory while it lasts.
// The agent's complaint stays in the transcript.
func (w *recorder) recordSilence(t store.Tx, turn domain.Turn, s catalog.Silence) error {
	p := domain.AgentSilent{Since: time.UnixMilli(s.SinceMS).UTC(), Note: s.Note, ToolID: s.ToolID, Tool: s.Tool, Ended: s.Ended}
	if live := w.turns.get(turn.ID); live != nil { // set first, because a client that gets the event may request it at once
		live.silence.Store(&p)
	}
	if err := announce(t, turn, p); err != nil || !s.Ended {
		return err
	}
	return w.opts.Transcript.Silence(t, turn, s)
}

// recordSession stores the agent's own session id of a turn.
func (w *recorder) recordSession(t store.Tx, turn domain.Turn, n catalog.NativeSession) error {
	session, err := t.Session(w.ctx, turn.Session)
	if err != nil {
		return err
	}
	replaced := n.Primed && session.NativeSession != "" && session.NativeSession != n.SessionID
	session.NativeSession = n.SessionID
	if err := t.UpdateSession(session); err != nil {
		return err
	}
	w.opts.Turns.Changed(t, turn.ID)
	if replaced {
		if err := w.opts.Transcript.SessionReplaced(t, turn); err != nil {
			return err
		}
	}
	if n.Forked {
		last, err := t.LastTurn(w.ctx, session.Parent)
		if err == nil && last.ID != session.ForkTurn {
			err = w.opts.Transcript.ForkedLater(t, turn)
		}
		if err != nil {
			return err
		}
	}
	return announce(t, turn, domain.NativeSessionChanged{NativeSession: n.SessionID, Replaced: replaced, Forked: n.Forked})
}

// decoded records a report whose data is a T.
func decoded[T any](r report, record func(T) error) error {
	var v T
	if err := json.Unmarshal(r.data, &v); err != nil {
		return err
	}
	return record(v)
}

// object returns raw JSON if it is an object with members, else nil.
func object(raw json.RawMessage) json.RawMessage {
	if len(raw) > 2 && raw[0] == '{' {
		return raw
	}
	return nil
}

// recorder stores reports and passes on errors. Its methods belong to the store's writer.
type recorder struct {
	ctx   context.Context // ends with the hub
	opts  Options
	turns *turns
	write func(store.Tx, report) error // record, except in tests

	background background
}

func newRecorder(ctx context.Context, opts Options, turns *turns) *recorder {
	w := &recorder{ctx: ctx, opts: opts, turns: turns}
	w.write = w.record
	return w
}

// recordAll stores reports. It logs and drops an invalid one, and that turn cannot complete; other
// reports are not affected.
func (w *recorder) recordAll(t store.Tx, reports []report) error {
	for _, r := range joinLate(reports) {
		if r.between == nil && !w.opts.Turns.GoesOn(r.turn) {
			continue
		}
		if err := w.write(t, r); err != nil {
			if store.IsFull(err) {
				return err
			}
			w.opts.Logger.Warn("a report of an agent was refused", "kind", r.kind, "err", err)
			if turn := w.turns.get(r.turn); turn != nil {
				turn.refusals.addKind(r.kind, err)
			}
		}
	}
	return nil
}

// joinLate joins consecutive pieces of late text, because each changes a whole message.
func joinLate(reports []report) []report {
	joined := make([]report, 0, len(reports))
	for _, r := range reports {
		if n := len(joined) - 1; n >= 0 && r.isLateText() && joined[n].isLateText() && *joined[n].between == *r.between &&
			joined[n].continuedBy(r) && bytes.Equal(joined[n].delta.Meta, r.delta.Meta) {
			joined[n].delta.Delta.Text += r.delta.Delta.Text
			continue
		}
		joined = append(joined, r)
	}
	return joined
}

// errNotKept is the reason for refusing reports that could not be stored; the log has the cause.
var errNotKept = errors.New("they could not be kept")

// notRecorded notes refused reports before the end of a turn is stored, which may happen in the same
// transaction. A nil error means a panic, which the writer reports.
func (w *recorder) notRecorded(reports []report, err error) {
	if store.IsFull(err) {
		return // their turns end for that reason
	}
	for i := range reports {
		if turn := w.turns.get(reports[i].turn); turn != nil {
			turn.refusals.add(errNotKept)
		}
	}
}

// reportsLost handles a failed transaction with reports.
func (w *recorder) reportsLost(err error) {
	if store.IsFull(err) {
		w.opts.Health.NoRoom(err)
		return
	}
	w.opts.Logger.Error("events of agents could not be kept", "err", err)
	w.opts.Health.ReportsLost(err)
}

// delayed handles a transaction that could not begin.
func (w *recorder) delayed(err error) {
	w.opts.Logger.Error("events of agents cannot be kept yet", "err", err)
	if store.IsFull(err) {
		w.opts.Health.NoRoom(err)
	}
}

// Turn receives the reports of one turn. Its methods may be called from any goroutine.
type Turn struct {
	id       int64
	task     string // UUID of the turn
	queue    *queue
	refusals refusals
	silence  atomic.Pointer[domain.AgentSilent] // as last reported; nil: never

	mu          sync.Mutex // guards the fields below, and keeps the order
	order       order
	redactor    redactor
	content     unpacker
	completion  *catalog.ExecutePromptResult
	unconfirmed []string // approvals whose answers the next report shows to be taken
}

func newTurn(q *queue, id int64, task string, secrets *redact.Secrets) *Turn {
	r := &Turn{id: id, task: task, queue: q}
	r.content = unpacker{secrets: secrets, pass: q.add}
	r.redactor = redactor{stream: redact.Stream{Secrets: secrets}, pass: r.content.take}
	r.order = order{pass: r.redactor.take, refuse: r.refusals.add, late: r.skipMissing}
	return r
}

// take receives a report with its sequence number, counted from 1; 0 means unnumbered.
func (r *Turn) take(sequence int64, what report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.unconfirmed) > 0 {
		r.order.take(0, report{turn: r.id, kind: catalog.EventPermissionTaken, data: encode(catalog.PermissionTaken{ApprovalIDs: r.unconfirmed})})
		r.unconfirmed = nil
	}
	r.order.take(sequence, what)
}

// answered implements [Intake.Answered].
func (r *Turn) answered(approval string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unconfirmed = append(r.unconfirmed, approval)
}

// skipMissing passes on reports that have waited long enough for those before them.
func (r *Turn) skipMissing() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.order.skipMissing()
	r.redactor.flush()
}

// Finish passes on all waiting reports, because the executor has reported its end. Later reports do
// not wait.
func (r *Turn) Finish() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.order.finish()
	r.redactor.flush()
	r.queue.askAgain()
}

func (r *Turn) endMessage(ctx context.Context) {
	r.mu.Lock()
	inOrder := r.order.settled()
	r.mu.Unlock()
	select {
	case <-inOrder:
	case <-ctx.Done():
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.redactor.flush()
	r.queue.askAgain()
}

func (r *Turn) complete(result catalog.ExecutePromptResult) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.completion = &result
}

// Completion returns the end that the executor reported with report_completion, or nil.
func (r *Turn) Completion() *catalog.ExecutePromptResult {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.completion
}

// Judge returns the effective result of a turn: it has not completed if output is missing, whatever
// its executor says. The failure's text is redacted.
func (r *Turn) Judge(result catalog.ExecutePromptResult) catalog.ExecutePromptResult {
	result.Error = withoutKeys(result.Error, r.redactor.stream.Secrets)
	return r.refusals.judge(result)
}

// announce adds an event of a turn to the log.
func announce(t store.Tx, turn domain.Turn, p domain.Payload) error {
	_, err := t.Append(turn.Event(p))
	return err
}
