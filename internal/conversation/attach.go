package conversation

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// Attach stores the bytes of content.
func Attach(t store.Tx, list []domain.Content) error {
	for _, c := range list {
		if c.Attachment == "" {
			continue
		}
		if err := t.PutAttachment(c.Attached()); err != nil {
			return err
		}
	}
	return nil
}

// PromptContent returns the attachments of a run's prompt with their bytes, for an executor.
func PromptContent(ctx context.Context, r store.Reader, run domain.Run) ([]catalog.ContentBlock, error) {
	var blocks []catalog.ContentBlock
	for _, b := range run.Content {
		c := domain.Content{Block: b}
		if b.Attachment != "" {
			kept, err := r.Attachment(ctx, b.Attachment)
			if err != nil {
				return nil, err
			}
			c.Data = kept.Data
		}
		blocks = append(blocks, writeContent(c))
	}
	return blocks, nil
}
