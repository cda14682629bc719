package conversation

import (
	"errors"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// Late adds text that an agent sends after the end of its run. If the run ended with a message or
// thought, the text is added to it; the log then has the whole message again, under its key.
// Otherwise the text becomes another message at the end of the run. While the run has not ended,
// Late is Delta. clean redacts a text, because a secret may be split between the message and the
// late text.
func (w *Writer) Late(t store.Tx, run domain.Run, d catalog.ContentDelta, thought bool, clean func(string) string) error {
	d.Delta.Text = clean(d.Delta.Text)
	if !run.State.Ended() {
		return w.Delta(t, run.ID, d, thought)
	}
	if d.Delta.Text == "" || run.ErrorCode == domain.CodeStoreFull { // the log has the message, open
		return nil
	}
	kind := (&openMessage{thought: thought}).kind()
	item, err := t.LastItem(w.ctx, run.ID)
	isNew := errors.Is(err, store.ErrNotFound) || err == nil && !takesLate(item, kind, d)
	if err != nil && !isNew {
		return err
	}
	if isNew {
		item = newItem(t, run, domain.Item{Kind: kind, Key: messageKey(t), ParentID: d.ParentID, Role: "assistant"})
	}
	item.Content, item.Updated = clean(item.Content+d.Delta.Text), t.Now()
	meta := patched(metaOf(item.Data), d.Meta)
	item.Data = withMeta(item.Data, meta)
	if item.Seq, err = w.announceMessage(t, run, domain.MessageAdded{Type: kind, Key: item.Key, ParentID: item.ParentID, Role: item.Role, Text: item.Content, Meta: meta}); err != nil {
		return err
	}
	if kind == domain.ItemMessage {
		if isNew {
			run.Messages++
		}
		if item.ParentID == "" {
			run.Result = item.Content
		}
		if err := t.UpdateRun(run); err != nil {
			return err
		}
	}
	if isNew {
		return t.InsertItem(&item)
	}
	return t.UpdateItem(item)
}

// takesLate reports whether late text is added to an item.
func takesLate(item domain.Item, kind string, d catalog.ContentDelta) bool {
	content, _ := item.Data.(domain.MessageContent)
	return item.Kind == kind && item.Role == "assistant" && item.ParentID == d.ParentID && content.Blocks == nil && len(item.Content) < maxMessage
}
