package hub

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/intake"
	"github.com/duet-rpc/duet-rpc/internal/store"

	"github.com/duet-rpc/duet-rpc/internal/domain"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// Kinds of items.
const (
	kindMessage  = "message"
	kindThinking = "thinking"
	kindTool     = "tool_call"
	kindSystem   = "system"
	kindPlan     = "plan"
	kindDiff     = "diff"     // that a run has changed a file
	kindApproval = "approval" // what a human was asked and has answered
)

// maxEventText is how much of a text an event carries; the item has all of
// it.
const maxEventText = 128 << 10

// maxMessage is how long a message may get, give or take a delta: what an
// agent says beyond it becomes another message, so that one is never too long
// to be held, sent and found.
const maxMessage = 1 << 20

// A fold is what a run's events have added up to and no item holds yet: the
// message that is being written. It belongs to the writer's goroutine. If a
// transaction fails it is thrown away, and made again from the log.
type fold struct {
	kind  string // message or thinking; "" if nothing is open
	key   string // our id of the message
	agent string // the agent's id of it
	text  strings.Builder
	last  int64 // seq of the last delta
}

// foldOf is the fold of a run, from the log if it is not in memory.
func (h *Hub) foldOf(t store.Tx, run int64) (*fold, error) {
	if f := h.folds[run]; f != nil {
		return f, nil
	}
	f := &fold{}
	open, err := t.OpenDeltas(h.ctx, run)
	if err != nil {
		return nil, err
	}
	for _, e := range open {
		delta, ok := e.Payload.(domain.MessageDelta)
		if !ok {
			continue // cannot be: all of them are
		}
		if delta.Key != f.key { // cannot be: the one before was closed
			f.text.Reset()
		}
		f.kind, f.key, f.last = foldKind(delta.Thought), delta.Key, e.Seq
		f.text.WriteString(delta.Text)
	}
	h.folds[run] = f
	return f, nil
}

// rolledBack is called by the store when a change was undone: folds may have
// what was not kept.
func (h *Hub) rolledBack() { clear(h.folds) }

func foldKind(thought bool) string {
	if thought {
		return kindThinking
	}
	return kindMessage
}

// A report is something that an executor said about a run.
type report struct {
	run   int64
	kind  string // catalog.Event…, or intake.KindProgress
	data  json.RawMessage
	delta catalog.ContentDelta // of a delta: already decoded
	diff  *fileDiff            // of a file change: already computed
}

// applyReport makes an event, and where need be an item, of one report.
func (h *Hub) applyReport(t store.Tx, r *report) (err error) {
	defer func() {
		if err != nil {
			delete(h.folds, r.run)
		}
	}()
	switch r.kind {
	case catalog.EventContentDelta:
		return h.applyDelta(t, r, false)
	case catalog.EventThinkingChunk:
		return h.applyDelta(t, r, true)
	}
	run, err := t.Run(h.ctx, r.run)
	if err != nil {
		return err
	}
	if run.State.Ended() && r.kind != catalog.EventProcess { // it is told already how it ended
		return nil
	}
	switch r.kind {
	case catalog.EventMessageStart, catalog.EventMessageStop:
		return h.closeMessage(t, &run)
	case catalog.EventToolCall, catalog.EventToolUpdate, catalog.EventToolResult:
		return h.applyTool(t, r, &run)
	case catalog.EventPlan:
		return h.applyPlan(t, r, run)
	case catalog.EventUsage:
		return h.applyUsage(t, r, run)
	case catalog.EventFileChange:
		return h.applyChange(t, r, run)
	case catalog.EventNativeSession:
		return h.applyNative(t, r, run)
	case catalog.EventProcess:
		var p catalog.Process
		if err := json.Unmarshal(r.data, &p); err != nil {
			return err
		}
		return t.PutProcess(domain.Process{PID: p.PID, Mark: p.Mark, Run: run.ID})
	case catalog.EventPermissionTaken:
		var p catalog.PermissionTaken
		if err := json.Unmarshal(r.data, &p); err != nil {
			return err
		}
		return h.approvals.Taken(t, run.ID, p.ApprovalIDs)
	case catalog.EventMode:
		var m catalog.Mode
		if err := json.Unmarshal(r.data, &m); err != nil {
			return err
		}
		return h.announce(t, run, domain.AgentModeChanged{Mode: m.Current, Modes: m.Available})
	case intake.KindProgress:
		run.Progress = r.data
		if err := t.UpdateRun(run); err != nil {
			return err
		}
		return h.announce(t, run, domain.ProgressReported{Report: object(r.data)})
	case catalog.EventError:
		return h.announce(t, run, domain.AgentErrorReported{Report: object(r.data)})
	case catalog.EventRaw:
		if len(r.data) == 0 {
			return h.announce(t, run, domain.AgentUpdated{})
		}
		return h.announce(t, run, domain.AgentUpdated{Update: r.data})
	}
	return h.announce(t, run, domain.AgentUpdated{Update: encode(map[string]any{"type": r.kind, "data": r.data})})
}

// object is raw JSON if it is an object that has members, else nil.
func object(raw json.RawMessage) json.RawMessage {
	if len(raw) > 2 && raw[0] == '{' {
		return raw
	}
	return nil
}

func (h *Hub) applyDelta(t store.Tx, r *report, thought bool) error {
	text := r.delta.Delta.Text
	if text == "" {
		return nil
	}
	if h.folds[r.run] == nil {
		if run, err := t.Run(h.ctx, r.run); err != nil || run.State.Ended() {
			return err
		}
	}
	f, err := h.foldOf(t, r.run)
	if err != nil {
		return err
	}
	kind := foldKind(thought)
	if f.kind != "" && (f.kind != kind || f.text.Len() >= maxMessage || r.delta.MessageID != "" && f.agent != "" && r.delta.MessageID != f.agent) {
		run, err := t.Run(h.ctx, r.run)
		if err != nil {
			return err
		}
		if err := h.closeMessage(t, &run); err != nil {
			return err
		}
	}
	if f.kind == "" {
		f.kind, f.key = kind, fmt.Sprintf("msg-%d", t.Seq()+1)
	}
	if r.delta.MessageID != "" {
		f.agent = r.delta.MessageID
	}
	thread, err := h.threadOf(t, r.run)
	if err != nil {
		return err
	}
	if f.last, err = t.Append(domain.Event{Thread: thread, Run: r.run, Payload: domain.MessageDelta{Key: f.key, Text: text, Thought: thought}}); err != nil {
		return err
	}
	f.text.WriteString(text)
	return nil
}

// threadOf is the thread of a run that has a fold.
func (h *Hub) threadOf(t store.Tx, run int64) (int64, error) {
	if s, ok := h.known(run); ok {
		return s.Run.Thread, nil
	}
	r, err := t.Run(h.ctx, run)
	return r.Thread, err
}

// closeMessage makes an item of the message that is open, and changes run to
// what is known then.
func (h *Hub) closeMessage(t store.Tx, run *domain.Run) error {
	f, err := h.foldOf(t, run.ID)
	if err != nil || f.kind == "" {
		return err
	}
	text := f.text.String()
	item := domain.Item{
		Thread: run.Thread, Run: run.ID, Kind: f.kind, Key: f.key, Role: "assistant", Content: text,
		Created: t.Now(), Updated: t.Now(),
	}
	kind, key := f.kind, f.key
	delete(h.folds, run.ID)
	if item.Seq, err = h.announceMessage(t, *run, domain.MessageAdded{Type: kind, Key: key, Role: "assistant", Text: text}); err != nil {
		return err
	}
	if kind == kindMessage {
		run.Messages++
		run.Result = text
		if err := t.UpdateRun(*run); err != nil {
			return err
		}
	}
	*f = fold{}
	h.folds[run.ID] = f
	return t.InsertItem(&item)
}

// announceMessage adds a message to the log, cut to what an event carries.
func (h *Hub) announceMessage(t store.Tx, run domain.Run, m domain.MessageAdded) (int64, error) {
	m.NativeSession = h.nativeSession(run, m.NativeSession)
	m.Truncated = cutText(&m.Text)
	return t.Append(eventOf(run, m))
}

// nativeSession is the agent's own session that a run is in, as far as that is
// known, or else the one given.
func (h *Hub) nativeSession(run domain.Run, unless string) string {
	if s, ok := h.known(run.ID); ok {
		return s.Thread.NativeSession
	}
	return unless
}

// cutText cuts a text to what an event carries, and reports whether it did.
func cutText(text *string) bool {
	if len(*text) <= maxEventText {
		return false
	}
	*text = strings.ToValidUTF8((*text)[:maxEventText], "")
	return true
}

// addPrompt makes an item of what the user said.
func (h *Hub) addPrompt(t store.Tx, run domain.Run, thread domain.Thread) error {
	item := domain.Item{Thread: run.Thread, Run: run.ID, Kind: kindMessage, Role: "user", Content: run.Prompt, Created: t.Now(), Updated: t.Now()}
	var err error
	item.Key = fmt.Sprintf("msg-%d", t.Seq()+1)
	if item.Seq, err = h.announceMessage(t, run, domain.MessageAdded{NativeSession: thread.NativeSession, Type: kindMessage, Key: item.Key, Role: "user", Text: run.Prompt}); err != nil {
		return err
	}
	return t.InsertItem(&item)
}

// closeFold closes what is open when a run ends.
func (h *Hub) closeFold(t store.Tx, run *domain.Run) error {
	defer delete(h.folds, run.ID)
	if err := h.closeMessage(t, run); err != nil {
		return err
	}
	open, err := t.OpenTools(h.ctx, run.ID)
	if err != nil {
		return err
	}
	for _, item := range open {
		item.Status = "failed"
		if item.Result == "" {
			item.Result = "the run ended before this did"
		}
		if err := h.changeTool(t, *run, item, &item, "tool_result"); err != nil {
			return err
		}
	}
	return nil
}
