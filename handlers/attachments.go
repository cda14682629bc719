package handlers

import (
	"context"
	"encoding/base64"
	"fmt"
	"math"

	"github.com/duet-rpc/duet-rpc/internal/conversation"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/server"
)

// registerAttachments registers what has the bytes of content. Ours.
func registerAttachments(reg *server.Registry, d Domain) {
	handle(reg, d, sessionFamily, "getAttachment", getAttachment,
		server.Doc("Has the bytes of an image, a sound or a resource that an event or a conversation names by its attachment_id. If not all fits, next_offset says how to go on."))
}

func getAttachment(ctx context.Context, h *hub.Hub, p protocol.AttachmentParams) (protocol.AttachmentResult, error) {
	const envelope = 1024 // what stands around the data
	most := max(base64.StdEncoding.DecodedLen(max(room(ctx)-envelope, 0))-3, 1)
	if p.Limit != nil && *p.Limit > 0 {
		most = int(min(*p.Limit, uint(most)))
	}
	offset := int64(min(p.Offset, math.MaxInt32))
	info, part, err := h.Query().Attachment(ctx, p.ID, offset, most)
	if err != nil {
		return protocol.AttachmentResult{}, err
	}
	r := protocol.AttachmentResult{ID: info.ID, MIMEType: info.MIMEType, Size: info.Size, Data: base64.StdEncoding.EncodeToString(part)}
	if next := offset + int64(len(part)); next < info.Size && len(part) > 0 {
		r.NextOffset = &next
	}
	return r, nil
}

func checkContent(p protocol.PromptContent) error {
	_, err := promptWith(p, "")
	return err
}

// A fullPrompt is a text and what goes with it.
type fullPrompt struct {
	text    string
	content []domain.Content
}

// promptWith is a prompt and its content. An error names the block.
func promptWith(p protocol.PromptContent, text string) (fullPrompt, error) {
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
