package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf16"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/question"
)

// asking is what an agent asks, as new_approval tells it.
type asking struct {
	ApprovalID string                 `json:"approval_id"`
	SessionID  string                 `json:"session_id"`
	Type       string                 `json:"type"`
	ToolName   string                 `json:"tool_name"`
	ToolInput  json.RawMessage        `json:"tool_input"`
	Editable   bool                   `json:"input_editable"`
	Title      string                 `json:"title"`
	Subject    string                 `json:"subject"`
	Options    []hub.PermissionOption `json:"options"`
	Diffs      []hub.FileDiff         `json:"diffs"`
	Truncated  bool                   `json:"truncated"`
	Reopened   string                 `json:"reopened"`

	sheet question.Sheet // what is shown of it
}

func askingOf(e client.Event) asking {
	var q asking
	_ = json.Unmarshal(e.Data, &q) // the hub's own
	return q
}

// lay lays out what is shown of a question whose session works in a directory.
// What was too long for the event is fetched.
func (q *asking) lay(ctx context.Context, c *client.Client, dir string) {
	var diff strings.Builder
	for _, d := range q.Diffs {
		diff.WriteString(hub.UnifiedDiff(dir, d.Path, d.OldText, &d.NewText))
	}
	a := listedApproval{Type: q.Type, Tool: q.ToolName, Title: q.Title, Subject: q.Subject, Options: q.Options, Input: q.ToolInput, Diff: diff.String(), Reopened: q.Reopened}
	if q.Truncated {
		whole, _, err := ask[struct{ Approval listedApproval }](ctx, c, "getApproval", map[string]string{"approval_id": q.ApprovalID})
		if err == nil {
			a = whole.Approval
			q.ToolInput = a.Input
		}
		a.Truncated = a.Truncated || err != nil
	}
	q.sheet = a.sheet(dir)
}

// longestTyped is the longest line, in bytes, that a terminal hands over: that of
// Linux takes 4,096, that of macOS 1,024.
const longestTyped = 1000

// typeable is JSON that can be seen, and typed again as it is: what could not be
// seen is escaped in its strings.
func typeable(raw json.RawMessage) string {
	var line bytes.Buffer
	if json.Compact(&line, raw) != nil {
		return oneLine(string(raw))
	}
	var b strings.Builder
	for _, r := range line.String() {
		switch {
		case shown.Exact("a"+string(r)) == "a"+string(r):
			b.WriteRune(r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		}
	}
	return b.String()
}
