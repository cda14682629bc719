package protocol

import "github.com/duet-rpc/duet-rpc/internal/catalog"

type AttachmentParams struct {
	ID     string `json:"id" doc:"The attachment_id."`
	Offset uint   `json:"offset,omitempty" doc:"How many bytes to leave out at the beginning."`
	Limit  *uint  `json:"limit,omitempty" doc:"How many bytes; absent or 0: all that fit."`
}

func (p AttachmentParams) Check() error { return NotEmpty("id", p.ID) }

type AttachmentResult struct {
	ID         string `json:"id"`
	MIMEType   string `json:"mime_type,omitempty" doc:"As it was said first; absent: nobody said."`
	Size       int64  `json:"size" doc:"Of all of it, in bytes."`
	Data       string `json:"data" doc:"In base64."`
	NextOffset *int64 `json:"next_offset,omitempty" doc:"There is more: pass this as offset."`
}

// A PromptContent is what goes with a prompt.
type PromptContent struct {
	Content []catalog.ContentBlock `json:"content,omitempty" doc:"What goes with it, as the content blocks of the Agent Client Protocol: images, audio, resources and links to some. Texts are added to it. Images, audio and resources have at most 10 MiB each, all together 20 MiB. A session whose agent does not take them fails, and says what the agent takes; a resource becomes a link instead."`
}
