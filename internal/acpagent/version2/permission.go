package version2

import (
	"cmp"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/acpagent/schema"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

type permission struct {
	SessionID   string                    `json:"sessionId"`
	Title       string                    `json:"title"`
	Description string                    `json:"description,omitempty"`
	Subject     any                       `json:"subject,omitempty"`
	Options     []schema.PermissionOption `json:"options"`
}

// Permission is the request for the answer to a question. Its subject is the tool call
// that it is about, if there is one.
func Permission(q wire.Approval, r schema.PermissionRequest) any {
	p := permission{SessionID: r.SessionID, Title: cmp.Or(q.Title, q.Subject, q.Tool, "The agent asks."), Options: r.Options}
	var texts []string
	for _, text := range []string{q.Details, q.Reopened} {
		if text != "" {
			texts = append(texts, text)
		}
	}
	p.Description = strings.Join(texts, "\n\n")
	if q.ToolUseID != "" || q.Type != wire.HumanContact {
		p.Subject = object{"type": "tool_call", "toolCall": toolCall(r.ToolCall)}
	}
	return p
}
