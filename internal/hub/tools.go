package hub

import (
	"bytes"
	"encoding/json"
	"errors"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/store"

	"github.com/duet-rpc/duet-rpc/internal/domain"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// toolData is the part of a tool call that is kept as JSON.
type toolData struct {
	Paths    []string   `json:"paths,omitempty"`
	Diffs    []FileDiff `json:"diffs,omitempty"`
	Terminal string     `json:"terminal,omitempty"`
}

func (h *Hub) applyTool(t store.Tx, r *report, run *domain.Run) error {
	var call catalog.ToolCall
	if err := json.Unmarshal(r.data, &call); err != nil {
		return err
	}
	if err := h.closeMessage(t, run); err != nil {
		return err
	}
	if call.ToolID == "" {
		call.ToolID = call.Tool // the seed's examples have no id
	}
	item, err := t.ToolItem(h.ctx, run.ID, call.ToolID)
	isNew := errors.Is(err, store.ErrNotFound)
	if err != nil && !isNew {
		return err
	}
	if isNew {
		item = newTool(*run, call.ToolID, t.Now())
	}
	before := item
	mergeTool(&item, call)
	event := "tool_call"
	if r.kind == catalog.EventToolResult {
		event = "tool_result"
		if call.Status == "" {
			item.Status = "completed"
		}
	}
	if isNew {
		if item.Seq, err = h.announceTool(t, *run, before, item, event); err != nil {
			return err
		}
		return t.InsertItem(&item)
	}
	return h.changeTool(t, *run, before, &item, event)
}

// newTool is a tool call of which nothing is known yet.
func newTool(run domain.Run, id string, now time.Time) domain.Item {
	return domain.Item{Thread: run.Thread, Run: run.ID, Kind: kindTool, Key: id, Role: "assistant", Status: "pending", Created: now, Updated: now}
}

// beginTool adds the tool call that an approval is about, of which the agent has
// not told yet.
func (h *Hub) beginTool(t store.Tx, run domain.Run, a domain.Approval) error {
	item := newTool(run, a.ToolUseID(), t.Now())
	item.Tool, item.Title, item.ToolKind, item.Input, item.Approval = a.Tool, a.Title, a.ToolKind, a.Input, a.ID
	data := toolData{Paths: a.Paths}
	_ = json.Unmarshal(a.Diffs, &data.Diffs) // ours, or absent
	item.Data = encode(data)
	var err error
	if item.Seq, err = h.announceTool(t, run, item, item, "tool_call"); err != nil {
		return err
	}
	return t.InsertItem(&item)
}

// changeTool announces and keeps a tool call that has changed.
func (h *Hub) changeTool(t store.Tx, run domain.Run, before domain.Item, item *domain.Item, event string) error {
	var err error
	item.Updated = t.Now()
	if item.Seq, err = h.announceTool(t, run, before, *item, event); err != nil {
		return err
	}
	return t.UpdateItem(*item)
}

// mergeTool takes into an item what a report says of it.
func mergeTool(item *domain.Item, call catalog.ToolCall) {
	set := func(field *string, value string) {
		if value != "" {
			*field = value
		}
	}
	set(&item.Tool, call.Tool)
	set(&item.Title, call.Title)
	set(&item.ToolKind, call.Kind)
	set(&item.Status, call.Status)
	set(&item.ParentID, call.ParentID)
	if len(call.Input) > 0 && string(call.Input) != "{}" {
		item.Input = call.Input
	}
	if len(call.Result) > 0 {
		item.Result = textOf(call.Result)
	}
	if call.Paths == nil && call.Diffs == nil && call.Terminal == "" {
		return
	}
	var data toolData
	_ = json.Unmarshal(item.Data, &data) // absent, or ours
	if call.Paths != nil {
		data.Paths = call.Paths
	}
	if call.Diffs != nil {
		data.Diffs = call.Diffs
	}
	set(&data.Terminal, call.Terminal)
	item.Data = encode(data)
}

// textOf is a JSON string's text, or the JSON of anything else.
func textOf(v json.RawMessage) string {
	var text string
	if json.Unmarshal(v, &text) == nil {
		return text
	}
	return string(v)
}

// announceTool tells of a tool call. Its end tells again what it gets and does
// only where that is another thing than before.
func (h *Hub) announceTool(t store.Tx, run domain.Run, before, item domain.Item, event string) (int64, error) {
	changed := domain.ToolCallChanged{
		NativeSession: h.nativeSession(run, ""), ID: item.Key, Name: item.Tool, Title: item.Title, ToolKind: item.ToolKind,
		Status: item.Status, ParentID: item.ParentID, Ended: event == "tool_result",
	}
	if changed.Ended {
		changed.Result = item.Result
		changed.Truncated = cutText(&changed.Result)
	}
	if !changed.Ended || !bytes.Equal(before.Input, item.Input) || !bytes.Equal(before.Data, item.Data) {
		changed.Input, changed.Details = item.Input, item.Data
	}
	for _, part := range []*json.RawMessage{&changed.Input, &changed.Details} {
		if len(*part) > maxEventText {
			*part, changed.Truncated = nil, true
		}
	}
	return t.Append(eventOf(run, changed))
}
