package query

import (
	"context"
	"errors"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// Attachment returns at most limit bytes of an attachment, from offset on.
func (q *Queries) Attachment(ctx context.Context, id string, offset int64, limit int) (domain.AttachmentInfo, []byte, error) {
	info, part, err := q.store.AttachmentPart(ctx, id, offset, limit)
	if errors.Is(err, store.ErrNotFound) {
		return info, nil, domain.Errorf(domain.KindAttachmentNotFound, "no attachment has the id %q", id)
	}
	return info, part, store.Explain(err)
}
