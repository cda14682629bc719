package hub

import (
	"encoding/json"
	"fmt"
	"strings"

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
		if e.Key != f.key { // cannot be: the one before was closed
			f.text.Reset()
		}
		f.kind, f.key, f.last = foldKind(e.Type), e.Key, e.Seq
		f.text.WriteString(e.Text)
	}
	h.folds[run] = f
	return f, nil
}

// rolledBack is called by the store when a change was undone: folds may have
// what was not kept.
func (h *Hub) rolledBack() { clear(h.folds) }

func foldKind(event string) string {
	if event == EventThinking {
		return kindThinking
	}
	return kindMessage
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
		return h.applyDelta(t, r, EventDelta)
	case catalog.EventThinkingChunk:
		return h.applyDelta(t, r, EventThinking)
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
		return h.applyTaken(t, r.data, run)
	case catalog.EventMode:
		var m catalog.Mode
		if err := json.Unmarshal(r.data, &m); err != nil {
			return err
		}
		return h.announce(t, EventSettings, run, settingsData{ids: idsOf(run), EventType: "mode", AgentMode: m.Current, AgentModes: m.Available})
	case reportProgress:
		run.Progress = r.data
		if err := t.UpdateRun(run); err != nil {
			return err
		}
		return h.announce(t, EventProgress, run, withIDs(run, r.data))
	case catalog.EventError:
		return h.announce(t, EventError, run, withIDs(run, r.data))
	case catalog.EventRaw:
		return h.announce(t, EventRaw, run, rawData{idsOf(run), r.data})
	}
	return h.announce(t, EventRaw, run, rawData{idsOf(run), encode(map[string]any{"type": r.kind, "data": r.data})})
}

type rawData struct {
	ids
	Update json.RawMessage `json:"update"`
}

// withIDs is an object with the ids of a run.
func withIDs(run domain.Run, object json.RawMessage) json.RawMessage {
	b := encode(idsOf(run))
	if len(object) > 2 && object[0] == '{' {
		b = append(append(b[:len(b)-1], ','), object[1:]...)
	}
	return b
}

func (h *Hub) applyDelta(t store.Tx, r *report, event string) error {
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
	kind := foldKind(event)
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
	if f.last, err = t.Append(domain.Event{Type: event, Thread: thread, Run: r.run, Key: f.key, Text: text}); err != nil {
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
	if item.Seq, err = h.announceItem(t, *run, conversationData{
		EventType: kind, MessageID: key, Role: "assistant", Content: text, ContentType: contentType(kind),
	}); err != nil {
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

func contentType(kind string) string {
	if kind == kindMessage {
		return "text"
	}
	return kind
}

// conversationData is what clients see of an item.
type conversationData struct {
	ids
	NativeID    string          `json:"claude_session_id"`
	EventType   string          `json:"event_type"`
	MessageID   string          `json:"message_id,omitempty"`
	Role        string          `json:"role,omitempty"`
	Content     string          `json:"content,omitempty"`
	ContentType string          `json:"content_type,omitempty"`
	ToolID      string          `json:"tool_id,omitempty"`
	ToolName    string          `json:"tool_name,omitempty"`
	ToolTitle   string          `json:"tool_title,omitempty"`
	ToolKind    string          `json:"tool_kind,omitempty"`
	ToolStatus  string          `json:"tool_status,omitempty"`
	ToolInput   json.RawMessage `json:"tool_input,omitempty"`
	ToolData    json.RawMessage `json:"tool_data,omitempty"`
	ResultFor   string          `json:"tool_result_for_id,omitempty"`
	Result      string          `json:"tool_result_content,omitempty"`
	ParentID    string          `json:"parent_tool_use_id"`
	Subtype     string          `json:"subtype,omitempty"`
	Truncated   bool            `json:"truncated,omitempty"`
}

// announceItem adds conversation_updated to the log.
func (h *Hub) announceItem(t store.Tx, run domain.Run, data conversationData) (int64, error) {
	data.ids = idsOf(run)
	if s, ok := h.known(run.ID); ok {
		data.NativeID = s.Thread.NativeSession
	}
	var cut bool
	for _, text := range []*string{&data.Content, &data.Result} {
		if len(*text) > maxEventText {
			*text = strings.ToValidUTF8((*text)[:maxEventText], "")
			cut = true
		}
	}
	for _, part := range []*json.RawMessage{&data.ToolInput, &data.ToolData} {
		if len(*part) > maxEventText {
			*part, cut = nil, true
		}
	}
	data.Truncated = cut
	return t.Append(domain.Event{Type: EventConversation, Thread: run.Thread, Run: run.ID, Data: encode(data)})
}

// addPrompt makes an item of what the user said.
func (h *Hub) addPrompt(t store.Tx, run domain.Run, thread domain.Thread) error {
	item := domain.Item{Thread: run.Thread, Run: run.ID, Kind: kindMessage, Role: "user", Content: run.Prompt, Created: t.Now(), Updated: t.Now()}
	var err error
	item.Key = fmt.Sprintf("msg-%d", t.Seq()+1)
	if item.Seq, err = h.announceItem(t, run, conversationData{
		NativeID: thread.NativeSession, EventType: kindMessage, MessageID: item.Key, Role: "user", Content: run.Prompt, ContentType: "text",
	}); err != nil {
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
