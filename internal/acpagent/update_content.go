package acpagent

import (
	"cmp"
	"encoding/base64"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/acpagent/schema"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

// This file makes updates of the Agent Client Protocol of what the hub tells of
// a conversation: of events as they come, and of entries of a conversation that is
// replayed.
//
//   - translator.go says which update an event or an entry becomes.
//   - messages.go knows how much of each message has been sent: a message is sent
//     once, in order, whatever the hub had to leave out of its pieces.
//   - tools.go has the tool calls; terminal.go what their programs print.
//   - content.go has images and the like, and what is said in words in their place.

// block is an attachment as a content block: with its bytes, or in words where they
// cannot be had.
func (t *translator) block(a wire.Attachment) schema.Content {
	if a.Type == "resource_link" || a.ID == "" && a.URI != "" {
		return schema.Content{Type: "resource_link", URI: a.URI, Name: cmp.Or(a.Name, a.URI), Title: a.Title, MIMEType: a.MIMEType, Size: a.Size}
	}
	bytes, err := t.Bytes(a.ID)
	if err != nil {
		return schema.Text(a.Label() + "\n")
	}
	data := base64.StdEncoding.EncodeToString(bytes)
	switch a.Type {
	case "image", "audio":
		return schema.Content{Type: a.Type, Data: data, MIMEType: a.MIMEType, URI: a.URI}
	case "resource":
		r := &schema.Resource{URI: a.URI, MIMEType: a.MIMEType}
		if strings.HasPrefix(a.MIMEType, "text/") {
			text := string(bytes)
			r.Text = &text
		} else {
			r.Blob = data
		}
		return schema.Content{Type: "resource", Resource: r}
	}
	return schema.Text(a.Label() + "\n")
}

func diffs(list []wire.FileDiff) (content []schema.ToolContent) {
	for _, d := range list {
		text := d.NewText
		content = append(content, schema.ToolContent{Type: "diff", Path: d.Path, OldText: d.OldText, NewText: &text})
	}
	return content
}

func textContent(text string) schema.ToolContent {
	block := schema.Text(text)
	return schema.ToolContent{Type: "content", Content: &block}
}
