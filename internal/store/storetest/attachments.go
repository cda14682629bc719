package storetest

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

func testAttachmentsAreStoredOnce(t *testing.T, k kind) {
	s := k.openNew(t)
	data := []byte("\x89PNG\x00\xff 123")
	kept := domain.Attachment{ID: domain.AttachmentID(data), MIMEType: "image/png", Data: data}
	Write(t, s, func(tx store.Tx) error { return tx.PutAttachment(kept) })
	again := kept
	again.MIMEType = "image/other"
	Write(t, s, func(tx store.Tx) error { return tx.PutAttachment(again) })
	got, err := s.Attachment(ctx, kept.ID)
	require.NoError(t, err)
	assert.Equal(t, kept, got)
	for _, c := range []struct {
		offset int64
		limit  int
		want   string
	}{{0, 100, string(data)}, {0, 4, "\x89PNG"}, {4, 2, "\x00\xff"}, {8, 10, "23"}, {10, 1, ""}} {
		info, part, err := s.AttachmentPart(ctx, kept.ID, c.offset, c.limit)
		require.NoError(t, err)
		assert.Equal(t, domain.AttachmentInfo{ID: kept.ID, MIMEType: "image/png", Size: int64(len(data))}, info)
		assert.Equal(t, c.want, string(part))
	}
	_, err = s.Attachment(ctx, "nothing")
	assert.ErrorIs(t, err, store.ErrNotFound)
	_, _, err = s.AttachmentPart(ctx, "nothing", 0, 1)
	assert.ErrorIs(t, err, store.ErrNotFound)

	session := NewSession(t, s, "")
	turn := AddTurn(t, s, session.ID, domain.Draft, func(r *domain.Turn) { r.Content = blocks() })
	found, err := s.Turn(ctx, turn.ID)
	require.NoError(t, err)
	assert.Equal(t, blocks(), found.Content)
	Write(t, s, func(tx store.Tx) error { return tx.SetPrompt(turn.ID, "other", nil) })
	found, err = s.Turn(ctx, turn.ID)
	require.NoError(t, err)
	assert.Nil(t, found.Content)

	item := domain.Item{Session: session.ID, Turn: turn.ID, Kind: domain.ItemTool, Key: "t", Data: domain.ToolDetails{Blocks: blocks()}}
	Write(t, s, func(tx store.Tx) error {
		if err := tx.InsertItem(&item); err != nil {
			return err
		}
		item.ParentID = "task" // reported after the question
		return tx.UpdateItem(item)
	})
	tool, err := s.ToolItem(ctx, turn.ID, "t")
	require.NoError(t, err)
	assert.Equal(t, item.Data, tool.Data)
	assert.Equal(t, "task", tool.ParentID)
}
