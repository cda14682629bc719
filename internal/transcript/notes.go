package transcript

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// NoteApproval notes in a turn's transcript what became of an approval, and replaces its earlier
// note. note is for programs.
func (w *Writer) NoteApproval(t store.Tx, turn domain.Turn, id, text string, note domain.ApprovalNote) error {
	return w.note(t, turn, domain.ItemApproval, id, text, note)
}

// Plan stores and announces the plan of a turn's agent. It changes the turn.
func (w *Writer) Plan(t store.Tx, turn domain.Turn, plan catalog.Plan) error {
	whole := domain.Plan{Entries: plan.Entries}
	if whole.Entries == nil {
		whole.Entries = []domain.PlanEntry{}
	}
	if _, err := announce(t, turn, domain.PlanChanged(whole)); err != nil {
		return err
	}
	if err := w.note(t, turn, domain.ItemPlan, "", planText(whole), whole); err != nil {
		return err
	}
	members := map[string]json.RawMessage{}
	_ = json.Unmarshal(turn.Metadata, &members) // absent, or written by the hub
	members["plan"] = encode(whole.Entries)
	turn.Metadata = encode(members)
	return t.UpdateTurn(turn)
}

// planText returns a plan as text, for search and for clients that show only text.
func planText(plan domain.Plan) string {
	var b strings.Builder
	for _, e := range plan.Entries {
		tick := " "
		if e.Status == "completed" {
			tick = "x"
		}
		fmt.Fprintf(&b, "- [%s] %s\n", tick, e.Content)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// FileChange is a file that a turn changed, with its unified diff.
type FileChange struct {
	catalog.FileChange
	Diff           string
	Added, Removed int // lines
	// OldMode and NewMode are as in [domain.Change].
	OldMode, NewMode uint32
}

// File stores and announces a file that a turn has changed.
func (w *Writer) File(t store.Tx, turn domain.Turn, c FileChange) error {
	change := domain.Change{
		Turn: turn.ID, Path: c.Path, Before: c.Before, After: c.After, Binary: c.Binary, Seq: t.Seq() + 1, Updated: t.Now(),
		OldMode: c.OldMode, NewMode: c.NewMode,
	}
	if err := t.PutChange(change); err != nil {
		return err
	}
	changed := domain.FileChanged{Path: c.Path, Diff: c.Diff, Added: c.Added, Removed: c.Removed, Binary: c.Binary}
	if len(changed.Diff) > domain.MaxEventText {
		cut := strings.LastIndexByte(changed.Diff[:domain.MaxEventText], '\n') + 1
		changed.Diff, changed.Truncated = changed.Diff[:cut], true
	}
	if _, err := announce(t, turn, changed); err != nil {
		return err
	}
	note := domain.FileNote{Path: c.Path, Added: c.Added, Removed: c.Removed, Binary: c.Binary}
	if c.NewMode != 0 {
		note.Mode = fmt.Sprintf("%o", c.NewMode)
	}
	return w.note(t, turn, domain.ItemFile, c.Path, c.Path, note)
}

// note stores the note of the last announced event in a turn's transcript: a new note at its end,
// an existing one in its place.
func (w *Writer) note(t store.Tx, turn domain.Turn, kind, key, text string, data domain.ItemData) error {
	item, err := t.NotedItem(w.ctx, turn.ID, kind, key)
	isNew := errors.Is(err, store.ErrNotFound)
	if err != nil && !isNew {
		return err
	}
	if isNew {
		role := "assistant"
		if kind == domain.ItemApproval {
			role = "user"
		}
		item = newItem(t, turn, domain.Item{Kind: kind, Key: key, Role: role})
	}
	item.Seq, item.Content, item.Data, item.Updated = t.Seq(), text, data, t.Now()
	if isNew {
		return t.InsertItem(&item)
	}
	return t.UpdateItem(item)
}

// Transcript returns the messages and the used tools of a session, for an agent.
func Transcript(items []domain.Item) []catalog.Message {
	var list []catalog.Message
	for _, i := range items {
		switch i.Kind {
		case domain.ItemMessage:
			text := i.Content
			if more, ok := i.Data.(domain.MessageContent); ok && i.Role == "user" && len(more.Blocks) > 0 { // an agent's content is already in its text
				text += "\n" + labels(more.Blocks)
			}
			list = append(list, catalog.Message{Role: i.Role, Content: text, Type: "message"})
		case domain.ItemTool:
			text := i.Tool + ": " + i.Title
			if i.Status != "" {
				text += " (" + i.Status + ")"
			}
			list = append(list, catalog.Message{Role: "assistant", Content: text, Type: "tool_call"})
		}
	}
	return list
}
