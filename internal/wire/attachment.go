package wire

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/duet-rpc/duet-rpc/client"
)

// An Attachment is content that is no text: an image, a sound, a resource, or a
// link to one.
type Attachment struct {
	Type     string `json:"type"`
	ID       string `json:"attachment_id"` // "": it has no bytes
	MIMEType string `json:"mime_type"`
	Size     int64  `json:"size"`
	Name     string `json:"name"`
	Title    string `json:"title"`
	URI      string `json:"uri"`
}

// WriteAttachment writes the bytes of an attachment that the hub has, part by part.
func WriteAttachment(ctx context.Context, c *client.Client, out io.Writer, id string) error {
	for offset := int64(0); ; {
		part, _, err := Call[struct {
			Data []byte `json:"data"`
			Next int64  `json:"next_offset"` // 0: that is all
		}](ctx, c, "getAttachment", map[string]any{"id": id, "offset": offset})
		if err != nil {
			return err
		}
		if _, err := out.Write(part.Data); err != nil {
			return fmt.Errorf("writing it: %w", err)
		}
		if part.Next <= offset {
			return nil
		}
		offset = part.Next
	}
}

// Label says in a line what it is, such as [image image/png 12 KB].
func (a Attachment) Label() string {
	parts := []string{strings.ReplaceAll(a.Type, "_", " ")}
	for _, part := range []string{a.Name, a.MIMEType} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	switch {
	case a.Size >= 1e6:
		parts = append(parts, fmt.Sprintf("%.1f MB", float64(a.Size)/1e6))
	case a.Size >= 1000:
		parts = append(parts, fmt.Sprintf("%d KB", (a.Size+500)/1000))
	case a.Size > 0:
		parts = append(parts, fmt.Sprintf("%d B", a.Size))
	}
	if a.ID == "" && a.URI != "" {
		parts = append(parts, a.URI)
	}
	return "[" + strings.Join(parts, " ") + "]"
}
