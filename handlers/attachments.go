package handlers

import (
	"context"
	"encoding/base64"
	"fmt"
	"math"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/conversation"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/server"
)

// registerAttachments registers what has the bytes of content. Ours.
func registerAttachments(reg *server.Registry, d Domain) {
	handle(reg, d, sessionFamily, "getAttachment", getAttachment,
		server.Doc("Has the bytes of an image, a sound or a resource that an event or a conversation names by its attachment_id. If not all fits, next_offset says how to go on."))
}

type attachmentParams struct {
	ID     string `json:"id" doc:"The attachment_id."`
	Offset uint   `json:"offset,omitempty" doc:"How many bytes to leave out at the beginning."`
	Limit  *uint  `json:"limit,omitempty" doc:"How many bytes; absent or 0: all that fit."`
}

func (p attachmentParams) check() error { return need("id", p.ID) }

type attachmentResult struct {
	ID         string `json:"id"`
	MIMEType   string `json:"mime_type,omitempty" doc:"As it was said first; absent: nobody said."`
	Size       int64  `json:"size" doc:"Of all of it, in bytes."`
	Data       string `json:"data" doc:"In base64."`
	NextOffset *int64 `json:"next_offset,omitempty" doc:"There is more: pass this as offset."`
}

func getAttachment(ctx context.Context, h *hub.Hub, p attachmentParams) (attachmentResult, error) {
	const envelope = 1024 // what stands around the data
	most := max(base64.StdEncoding.DecodedLen(max(room(ctx)-envelope, 0))-3, 1)
	if p.Limit != nil && *p.Limit > 0 {
		most = int(min(*p.Limit, uint(most)))
	}
	offset := int64(min(p.Offset, math.MaxInt32))
	info, part, err := h.Query().Attachment(ctx, p.ID, offset, most)
	if err != nil {
		return attachmentResult{}, err
	}
	r := attachmentResult{ID: info.ID, MIMEType: info.MIMEType, Size: info.Size, Data: base64.StdEncoding.EncodeToString(part)}
	if next := offset + int64(len(part)); next < info.Size && len(part) > 0 {
		r.NextOffset = &next
	}
	return r, nil
}

// A promptContent is what goes with a prompt.
type promptContent struct {
	Content []catalog.ContentBlock `json:"content,omitempty" doc:"What goes with it, as the content blocks of the Agent Client Protocol: images, audio, resources and links to some. Texts are added to it. Images, audio and resources have at most 10 MiB each, all together 20 MiB. A session whose agent does not take them fails, and says what the agent takes; a resource becomes a link instead."`
}

func (p promptContent) check() error {
	_, err := p.with("")
	return err
}

// A fullPrompt is a text and what goes with it.
type fullPrompt struct {
	text    string
	content []domain.Content
}

// with is a prompt and its content. An error names the block.
func (p promptContent) with(text string) (fullPrompt, error) {
	list, texts, wrong := conversation.ReadPrompt(p.Content)
	if wrong != nil {
		param := "content"
		if wrong.Index >= 0 {
			param = fmt.Sprintf("content[%d].%s", wrong.Index, wrong.Member)
		}
		return fullPrompt{}, server.InvalidParam(server.ParamError{Param: param, Expected: wrong.Expected, Received: wrong.Received})
	}
	if texts != "" && text != "" {
		texts = "\n\n" + texts
	}
	return fullPrompt{text + texts, list}, nil
}
