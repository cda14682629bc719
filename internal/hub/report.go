package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/store"

	"github.com/duet-rpc/duet-rpc/internal/domain"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// Beyond highWater reports, or highBytes of them, that wait for their commit, executors are
// told to pause; once those are committed they go on.
const (
	highWater = 4096
	highBytes = 16 << 20
)

// A report is something that an executor said about a run.
type report struct {
	run   int64
	kind  string // catalog.Event…, or one of those below
	data  json.RawMessage
	delta catalog.ContentDelta // of a delta: already decoded
	diff  *fileDiff            // of a file change: already computed
}

const (
	reportProgress = "progress"
)

// size is about how much memory it takes, in bytes.
func (r *report) size() int { return len(r.data) + len(r.delta.Delta.Text) }

// intake is where reports wait. One operation of the writer takes all that
// are there, so that they share a transaction, and it is asked for at once:
// an event is committed and announced as soon as the writer gets to it, and
// before anything that is asked of the writer later.
type intake struct {
	hub *Hub

	mu      sync.Mutex // guards the fields below
	taken   sync.Cond
	closed  bool
	waiting []report
	bytes   int
	asked   bool // an operation is on its way
	paused  bool
}

// overfull is how many times the water marks may be passed by executors that
// do not pause when they are told: then whoever reports waits.
const overfull = 4

// add takes a report.
func (in *intake) add(r report) {
	in.mu.Lock()
	for !in.closed && (len(in.waiting) >= overfull*highWater || in.bytes >= overfull*highBytes) {
		in.taken.Wait()
	}
	in.waiting = append(in.waiting, r)
	in.bytes += r.size()
	ask := !in.asked
	in.asked = true
	if !in.paused && (len(in.waiting) >= highWater || in.bytes >= highBytes) {
		in.paused = true
		in.hub.throttle.set(true)
	}
	in.mu.Unlock()
	if ask {
		in.ask()
	}
}

// askAgainAfter is when a transaction is asked for again that could not begin.
const askAgainAfter = 100 * time.Millisecond

func (in *intake) ask() {
	var taken []report
	began, whole := false, false
	in.hub.store.Enqueue(func(t store.Tx) (err error) {
		began = true
		taken = in.take()
		defer func() {
			if !whole { // before the end of a run is kept, in the same transaction perhaps
				in.hub.reportsRefused(taken, err)
			}
		}()
		err = in.hub.applyReports(t, taken)
		whole = err == nil
		return err
	}, func(err error) {
		switch {
		case err == nil, errors.Is(err, store.ErrClosed):
		case began:
			in.hub.reportsLost(taken, err)
		default: // they still wait
			in.hub.log.Error("events of agents cannot be kept yet", "err", err)
			if store.IsFull(err) {
				in.hub.health.NoRoom(err)
			}
			time.AfterFunc(askAgainAfter, in.ask)
		}
		in.goOn()
	})
}

// take hands out what waits.
func (in *intake) take() []report {
	in.mu.Lock()
	defer in.mu.Unlock()
	taken := in.waiting
	in.waiting, in.bytes, in.asked = nil, 0, false
	in.taken.Broadcast()
	return taken
}

// goOn lets executors go on.
func (in *intake) goOn() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.paused {
		in.paused = false
		in.hub.throttle.set(false)
	}
}

// close lets nobody wait any more.
func (in *intake) close() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.closed = true
	in.taken.Broadcast()
}

// applyReports makes events and items of reports. One that makes no sense is
// logged and left out, and its run will not have completed; it takes no other
// with it.
func (h *Hub) applyReports(t store.Tx, reports []report) error {
	for i := range reports {
		if !h.goesOn(reports[i].run) {
			continue
		}
		if err := h.applyReport(t, &reports[i]); err != nil {
			if store.IsFull(err) {
				return err
			}
			h.log.Warn("a report of an agent was not taken", "kind", reports[i].kind, "err", err)
			h.refused(reports[i].run, fmt.Errorf("%s: %w", reports[i].kind, err))
		}
	}
	return nil
}

// errNotKept is why reports were refused that could not be kept; the log says
// why.
var errNotKept = errors.New("they could not be kept")

// reportsRefused notes that reports were not taken. An error of nil is a panic,
// which the writer tells of.
func (h *Hub) reportsRefused(reports []report, err error) {
	if store.IsFull(err) {
		return // their runs are ended for that
	}
	for i := range reports {
		h.refused(reports[i].run, errNotKept)
	}
}

// reportsLost is told by the writer that a transaction with reports failed.
func (h *Hub) reportsLost(reports []report, err error) {
	if store.IsFull(err) {
		h.health.NoRoom(err)
		return
	}
	h.reportsRefused(reports, err)
	h.log.Error("events of agents could not be kept", "err", err)
	h.health.ReportsLost(err)
}

// ReportMessage takes one event of an agent.
func (h *Hub) ReportMessage(ctx context.Context, p catalog.ReportMessageParams) error {
	token, live, err := h.speakerOf(ctx, p.SessionToken, p.TaskID)
	if err != nil || live == nil {
		return err
	}
	r := report{run: token.Run, kind: p.EventType, data: p.EventData}
	switch p.EventType {
	case catalog.EventContentDelta, catalog.EventThinkingChunk:
		err = json.Unmarshal(p.EventData, &r.delta)
		r.data = nil
	case catalog.EventFileChange: // made here, not by the writer: it may take long
		r.diff, err = h.diffOf(p.EventData)
	}
	if err != nil {
		live.refusals.add(fmt.Errorf("%s: %w", p.EventType, err))
		return err
	}
	live.shows(token.Run)
	live.reporting.take(p.Sequence, r)
	return nil
}

// shows notes what a report shows by coming at all.
func (l *liveRun) shows(run int64) {
	if taken := l.foreign.taken(run); taken != nil {
		l.reporting.take(0, *taken)
	}
}

// endMessage lets go what is held back of a run's reports.
func (h *Hub) endMessage(run int64) {
	h.mu.Lock()
	live := h.live[run]
	h.mu.Unlock()
	if live != nil {
		live.reporting.endMessage()
	}
}

// goesOn reports whether what a run's agent says is still wanted: it is not
// once the run was ended, nor while a full disk does not let it end: what room
// there is is needed for that.
func (h *Hub) goesOn(run int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, cut := h.cutShort[run]
	return h.live[run] != nil && !cut
}

// ReportProgress takes how far a task is.
func (h *Hub) ReportProgress(ctx context.Context, p catalog.ReportProgressParams) error {
	return h.report(ctx, p.SessionToken, p.TaskID, reportProgress, encode(p.Progress))
}

// ReportError takes an error that does not end the task.
func (h *Hub) ReportError(ctx context.Context, p catalog.ReportErrorParams) error {
	return h.report(ctx, p.SessionToken, p.TaskID, catalog.EventError, encode(p.Error))
}

// ReportCompletion takes the end of a task, which an executor reports before
// it answers execute_prompt. It counts if the answer does not come.
func (h *Hub) ReportCompletion(ctx context.Context, p catalog.ReportCompletionParams) error {
	_, live, err := h.speakerOf(ctx, p.SessionToken, p.TaskID)
	if err != nil || live == nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	live.reported = &catalog.ExecutePromptResult{Status: p.Status, TokenUsage: p.TokenUsage, Error: p.Error}
	return nil
}

// report takes a report that has no sequence number.
func (h *Hub) report(ctx context.Context, token, task, kind string, data json.RawMessage) error {
	known, live, err := h.speakerOf(ctx, token, task)
	if err != nil || live == nil {
		return err
	}
	live.shows(known.Run)
	live.reporting.take(0, report{run: known.Run, kind: kind, data: data})
	return nil
}

// GetExecutionContext tells an executor what a run stands on.
func (h *Hub) GetExecutionContext(ctx context.Context, p catalog.GetExecutionContextParams) (catalog.GetExecutionContextResult, error) {
	var result catalog.GetExecutionContextResult
	token, err := h.tokens.Find(p.SessionToken)
	if err != nil {
		return result, err
	}
	s, err := h.session(ctx, token.Run)
	if err != nil {
		return result, err
	}
	agent, err := h.resolveFor(wasRestricted(s.Run), s.Thread.Agent)
	if err != nil {
		return result, err
	}
	result = catalog.GetExecutionContextResult{
		SessionID: s.Thread.UUID, TaskID: s.UUID, Messages: []catalog.Message{}, MCPServers: []catalog.MCPServer{}, ContextFiles: []string{},
		NativeSessionID: s.Thread.NativeSession, SystemPrompt: joinPrompts(s.Thread.Settings), AdditionalDirectories: s.Thread.Settings.AdditionalDirectories,
	}
	if s.Thread.Model != "" {
		result.ModelConfig = &catalog.ModelConfig{Model: s.Thread.Model}
	}
	result.MCPServers = append(result.MCPServers, agent.MCPServers...)
	if s.Thread.Settings.MCPServers != nil {
		var own []catalog.MCPServer
		if err := json.Unmarshal(s.Thread.Settings.MCPServers, &own); err == nil {
			result.MCPServers = append(result.MCPServers, own...)
		}
	}
	result.Messages, err = h.transcript(ctx, s)
	return result, err
}

func joinPrompts(s domain.Settings) string {
	text := s.SystemPrompt
	for _, more := range []string{s.AppendSystemPrompt, s.CustomInstructions} {
		if more == "" {
			continue
		}
		if text != "" {
			text += "\n\n"
		}
		text += more
	}
	return text
}

// maxTranscript is how much of a conversation an agent is told, in bytes, give
// or take a run: the end of it.
const maxTranscript = 1 << 20

// transcript is the conversation before a run, as an agent can be told it.
func (h *Hub) transcript(ctx context.Context, s domain.Session) ([]catalog.Message, error) {
	chain, err := h.chain(ctx, s)
	if err != nil {
		return nil, err
	}
	chain = chain[:len(chain)-1] // without the run itself
	list, size := []catalog.Message{}, 0
	for n := len(chain) - 1; n >= 0 && size < maxTranscript; n-- {
		if chain[n].State == domain.Cancelled { // it was taken back before an agent has seen it
			continue
		}
		said, err := h.told(ctx, chain[n].ID)
		if err != nil {
			return nil, err
		}
		for _, m := range said {
			size += len(m.Content)
		}
		list = append(said, list...)
	}
	return list, nil
}

// told is what was said in a run, as an agent can be told it.
func (h *Hub) told(ctx context.Context, run int64) ([]catalog.Message, error) {
	items, err := h.items(ctx, run)
	if err != nil {
		return nil, err
	}
	var list []catalog.Message
	for _, i := range items {
		switch i.Kind {
		case kindMessage:
			list = append(list, catalog.Message{Role: i.Role, Content: i.Content, Type: "message"})
		case kindTool:
			text := i.Tool + ": " + i.Title
			if i.Status != "" {
				text += " (" + i.Status + ")"
			}
			list = append(list, catalog.Message{Role: "assistant", Content: text, Type: "tool_call"})
		}
	}
	return list, nil
}
