package conversation

import (
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// Transcript returns the messages and the used tools of a conversation, for an agent.
func Transcript(items []domain.Item) []catalog.Message {
	var list []catalog.Message
	for _, i := range items {
		switch i.Kind {
		case domain.ItemMessage:
			text := i.Content
			if more, ok := i.Data.(domain.MessageContent); ok && i.Role == "user" && len(more.Blocks) > 0 { // an agent's content is already in its text
				text += "\n" + labels(more.Blocks)
			}
			list = append(list, catalog.Message{Role: i.Role, Content: text, Type: "message"})
		case domain.ItemTool:
			text := i.Tool + ": " + i.Title
			if i.Status != "" {
				text += " (" + i.Status + ")"
			}
			list = append(list, catalog.Message{Role: "assistant", Content: text, Type: "tool_call"})
		}
	}
	return list
}
