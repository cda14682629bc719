package dialect

import (
	"encoding/json"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// An Attachment is content that is no text, as clients see it: getAttachment has
// its bytes.
type Attachment struct {
	Type        string          `json:"type"`
	ID          string          `json:"attachment_id,omitempty"`
	MIMEType    string          `json:"mime_type,omitempty"`
	Size        int64           `json:"size,omitempty"`
	Name        string          `json:"name,omitempty"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	URI         string          `json:"uri,omitempty"`
	Annotations json.RawMessage `json:"annotations,omitempty"`
	Meta        json.RawMessage `json:"_meta,omitempty"`
}

func attachments(blocks []domain.Block) []Attachment {
	if blocks == nil {
		return nil
	}
	list := make([]Attachment, len(blocks))
	for i, b := range blocks {
		list[i] = Attachment{b.Type, b.Attachment, b.MIMEType, b.Size, b.Name, b.Title, b.Description, b.URI, b.Annotations, b.Meta}
	}
	return list
}

type messageContent struct {
	Attachments []Attachment    `json:"attachments,omitempty"`
	Meta        json.RawMessage `json:"_meta,omitempty"`
}
