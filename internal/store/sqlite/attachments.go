package sqlite

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite/statement"
)

func scanAttachment(row statement.Scanner) (a domain.Attachment, err error) {
	err = row.Scan(&a.ID, &a.MIMEType, &a.Data)
	return a, err
}

// Attachment is as of [store.ItemReader].
func (q itemQueries) Attachment(ctx context.Context, id string) (domain.Attachment, error) {
	return statement.One(ctx, q.s, scanAttachment, "SELECT id, mime, data FROM attachments WHERE id = ?", id)
}

// AttachmentPart is as of [store.ItemReader].
func (q itemQueries) AttachmentPart(ctx context.Context, id string, offset int64, limit int) (domain.AttachmentInfo, []byte, error) {
	var part []byte
	info, err := statement.One(ctx, q.s, func(row statement.Scanner) (a domain.AttachmentInfo, err error) {
		err = row.Scan(&a.ID, &a.MIMEType, &a.Size, &part)
		return a, err
	}, "SELECT id, mime, length(data), substr(data, ?, ?) FROM attachments WHERE id = ?", offset+1, limit, id)
	return info, part, err
}

// PutAttachment is as of [store.ConversationWriter].
func (t *Tx) PutAttachment(a domain.Attachment) error {
	_, err := t.exec("INSERT INTO attachments (id, mime, data, created) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING", a.ID, a.MIMEType, a.Data, nano(t.Now()))
	return err
}
