package transcript

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/toolinput"
)

// Tool stores a reported tool call after the open message, and updates the turn. list is its output
// besides text, or nil if not reported. ended says that the report contains the result.
func (w *Writer) Tool(t store.Tx, turn *domain.Turn, call catalog.ToolCall, list []domain.Content, ended bool) error {
	if err := w.CloseMessage(t, turn); err != nil {
		return err
	}
	if err := Attach(t, list); err != nil {
		return err
	}
	call.ToolID = cmp.Or(call.ToolID, call.Tool) // executors of the catalog's first edition send only the tool's name
	item, err := t.ToolItem(w.ctx, turn.ID, call.ToolID)
	isNew := errors.Is(err, store.ErrNotFound)
	if err != nil && !isNew {
		return err
	}
	if isNew {
		item = newTool(t, *turn, call.ToolID)
	}
	before := item
	merge(&item, call, domain.BlocksOf(list))
	if ended && call.Status == "" {
		item.Status = "completed"
	}
	if !isNew {
		return w.changeTool(t, *turn, before, item, ended)
	}
	if item.Seq, err = w.announceTool(t, *turn, before, item, ended); err != nil {
		return err
	}
	return t.InsertItem(&item)
}

// BeginTool adds the tool call of an approval that the agent has not reported yet.
func (w *Writer) BeginTool(t store.Tx, turn domain.Turn, a domain.Approval) error {
	item := newTool(t, turn, a.ToolUseID())
	item.Tool, item.Title, item.ToolKind, item.Input, item.ParentID, item.Approval = a.Tool, a.Title, a.ToolKind, a.Input, a.ParentID, a.ID
	item.Data = domain.ToolDetails{Paths: a.Paths, Diffs: a.Diffs}
	var err error
	if item.Seq, err = w.announceTool(t, turn, item, item, false); err != nil {
		return err
	}
	return t.InsertItem(&item)
}

// RefuseTool notes at the tool call of an approval who denied it and why. It creates a tool call
// that the agent has not reported yet.
func (w *Writer) RefuseTool(t store.Tx, turn domain.Turn, a domain.Approval, why string) error {
	item, err := t.ToolItem(w.ctx, turn.ID, a.ToolUseID())
	if errors.Is(err, store.ErrNotFound) && a.CallID != a.ID {
		if err = w.BeginTool(t, turn, a); err == nil {
			item, err = t.ToolItem(w.ctx, turn.ID, a.ToolUseID())
		}
	}
	if errors.Is(err, store.ErrNotFound) { // not a tool call of the agent
		return nil
	}
	if err != nil {
		return err
	}
	before := item
	details, _ := item.Data.(domain.ToolDetails)
	details.RefusedBy, details.Refusal = a.DecidedBy, why
	item.Data, item.Approval = details, a.ID
	return w.changeTool(t, turn, before, item, false)
}

// EditTool shows the input with which the user allowed the tool call of an approval. The changes
// that the agent proposed no longer apply. A later report of the agent wins.
func (w *Writer) EditTool(t store.Tx, turn domain.Turn, a domain.Approval) error {
	item, err := t.ToolItem(w.ctx, turn.ID, a.ToolUseID())
	if errors.Is(err, store.ErrNotFound) { // not a tool call of the agent
		return nil
	}
	if err != nil {
		return err
	}
	before := item
	item.Title, item.Input = toolinput.Retitled(item.Title, a.Input, a.UpdatedInput), a.UpdatedInput
	if details, ok := item.Data.(domain.ToolDetails); ok {
		details.Diffs = nil
		item.Data = details
	}
	return w.changeTool(t, turn, before, item, false)
}

// failTools fails the unfinished tool calls of a turn. Those that the agent of a completed turn
// continues in the background stay open.
func (w *Writer) failTools(t store.Tx, turn domain.Turn) error {
	open, err := t.OpenTools(w.ctx, turn.ID)
	if err != nil || len(open) == 0 {
		return err
	}
	background := make(map[string]bool)
	if turn.State == domain.Completed {
		s, err := t.AgentSession(w.ctx, turn.Session)
		if err != nil {
			return err
		}
		for _, task := range s.Background {
			background[task.ID] = task.Kind == domain.BackgroundToolCall
		}
	}
	for _, item := range open {
		if background[item.Key] {
			continue
		}
		if err := w.failTool(t, turn, item, "the turn ended before this did"); err != nil {
			return err
		}
	}
	return nil
}

// failTool fails an unfinished tool call.
func (w *Writer) failTool(t store.Tx, turn domain.Turn, item domain.Item, why string) error {
	item.Status = "failed"
	if item.Result == "" {
		item.Result = why
		if details := detailsOf(item); details != nil && details.RefusedBy != "" {
			item.Result = "not run: " + cmp.Or(details.Refusal, "denied by "+details.RefusedBy)
		}
	}
	return w.changeTool(t, turn, item, item, true)
}

// failBackground fails the tool calls that an agent had open in the background when it ended. turn
// is the last turn of the agent; the tool calls may be of earlier ones.
func (w *Writer) failBackground(t store.Tx, turn domain.Turn, tasks []domain.BackgroundTask) error {
	for _, task := range tasks {
		if task.Kind != domain.BackgroundToolCall {
			continue
		}
		for of := turn; ; {
			item, err := t.ToolItem(w.ctx, of.ID, task.ID)
			if err == nil && item.Status != "completed" && item.Status != "failed" {
				err = w.failTool(t, of, item, "the agent ended before this did")
			}
			if err == nil {
				break
			}
			if !errors.Is(err, store.ErrNotFound) {
				return err
			}
			if of.Parent == 0 {
				break
			}
			if of, err = t.Turn(w.ctx, of.Parent); err != nil {
				return err
			}
			if of.Session != turn.Session { // turn is in a fork
				break
			}
		}
	}
	return nil
}

// newTool returns a tool call without details.
func newTool(t store.Tx, turn domain.Turn, id string) domain.Item {
	return newItem(t, turn, domain.Item{Kind: domain.ItemTool, Key: id, Role: "assistant", Status: "pending"})
}

// changeTool announces and stores a changed tool call.
func (w *Writer) changeTool(t store.Tx, turn domain.Turn, before, item domain.Item, ended bool) error {
	var err error
	item.Updated = t.Now()
	if item.Seq, err = w.announceTool(t, turn, before, item, ended); err != nil {
		return err
	}
	return t.UpdateItem(item)
}

// merge updates an item with a report.
func merge(item *domain.Item, call catalog.ToolCall, blocks []domain.Block) {
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
		item.Result = TextOf(call.Result)
	}
	if len(blocks) > 0 && len(call.Result) == 0 && item.Result == "" {
		item.Result = labels(blocks)
	}
	if call.Paths == nil && call.Diffs == nil && call.Terminal == "" && blocks == nil && call.Meta == nil {
		return
	}
	details, _ := item.Data.(domain.ToolDetails)
	if call.Paths != nil {
		details.Paths = call.Paths
	}
	if call.Diffs != nil {
		details.Diffs = call.Diffs
	}
	set(&details.Terminal, call.Terminal)
	if blocks != nil {
		details.Blocks = blocks
	}
	details.Meta = patched(details.Meta, call.Meta)
	item.Data = details
}

// patched merges a patch into _meta; null removes a member. A result above the limit changes
// nothing.
func patched(meta, patch json.RawMessage) json.RawMessage {
	var all, news map[string]json.RawMessage
	if json.Unmarshal(patch, &news) != nil || len(news) == 0 {
		return meta
	}
	if json.Unmarshal(meta, &all) != nil || all == nil {
		all = make(map[string]json.RawMessage)
	}
	for name, value := range news {
		if all[name] = value; string(value) == "null" {
			delete(all, name)
		}
	}
	now, err := json.Marshal(all)
	switch {
	case err != nil || len(now) > catalog.MaxMeta:
		return meta
	case len(all) == 0:
		return nil
	}
	return now
}

// TextOf returns the text of a JSON string, or the JSON of any other value.
func TextOf(v json.RawMessage) string {
	var text string
	if json.Unmarshal(v, &text) == nil {
		return text
	}
	return string(v)
}

// announceTool announces a tool call. The event of its end repeats input and details only if they
// have changed.
func (w *Writer) announceTool(t store.Tx, turn domain.Turn, before, item domain.Item, ended bool) (int64, error) {
	changed := domain.ToolCallChanged{
		NativeSession: w.nativeSession(turn, ""), ID: item.Key, Name: item.Tool, Title: item.Title, ToolKind: item.ToolKind,
		Status: item.Status, ParentID: item.ParentID, Ended: ended,
	}
	if ended {
		changed.Result = item.Result
		changed.Truncated = cutText(&changed.Result)
	}
	if details := detailsOf(item); !ended || details != nil && details.RefusedBy != "" || !bytes.Equal(
		before.Input, item.Input,
	) || !sameDetails(detailsOf(before), details) {
		changed.Input, changed.Details = item.Input, details
	}
	if len(changed.Input) > domain.MaxEventText {
		changed.Input, changed.Truncated = nil, true
	}
	if changed.Details != nil && changed.Details.Size() > domain.MaxEventText {
		changed.Details, changed.Truncated = nil, true
	}
	return announce(t, turn, changed)
}

// End closes the open items of an ending turn: its message, and its tool calls. They fail unless the
// agent continues them in the background.
func (w *Writer) End(t store.Tx, turn *domain.Turn) error {
	defer w.open.drop(t, turn.ID)
	if err := w.CloseMessage(t, turn); err != nil {
		return err
	}
	return w.failTools(t, *turn)
}

// detailsOf returns what a tool call touches, or nil if that was never reported.
func detailsOf(item domain.Item) *domain.ToolDetails {
	if details, ok := item.Data.(domain.ToolDetails); ok {
		return &details
	}
	return nil
}

func sameDetails(a, b *domain.ToolDetails) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Equal(*b)
}
