package transcript

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/internal/wire"
)

// What the hub has to say of a conversation, such as what an agent complained of while
// it was silent, stands where it happened.
func TestNotesStandInATranscript(t *testing.T) {
	c := Conversation{Entries: []wire.Entry{
		{EventType: "message", Role: "user", Content: "go"},
		{EventType: "system", Content: "claude said nothing for 9 s: API error 429\ntrying again\x1b[2J"},
		{EventType: "message", Role: "assistant", Content: "Done."},
	}}
	assert.Equal(t, "❯ go\n\n— claude said nothing for 9 s: API error 429\n  trying again<U+001B>[2J\n\nDone.\n\n", normal(c.Text(Look{})))
	assert.Contains(t, c.Markdown(), "\n## User\n\ngo\n\n> Note: claude said nothing for 9 s: API error 429 trying again\x1b[2J\n\n## Agent\n\nDone.\n")
}

// On a terminal that shows colours Markdown is rendered, and thoughts are faint.
func TestATranscriptOnATerminal(t *testing.T) {
	c := Conversation{Diff: "--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n", Entries: []wire.Entry{
		{EventType: "message", Role: "user", Content: "go *on*"},
		{EventType: "thinking", Content: "**Hm**, `x`"},
		{EventType: "tool_call", Title: "Bash", ToolInput: `{"command":"make"}`},
		{EventType: "tool_result", Result: "\x1b[31mno\x1b[0m\nway\x1b[2J"},
		{EventType: "approval", Data: []byte(`{"title":"Bash","decision":"denied"}`)},
		{EventType: "message", Role: "assistant", Content: "It is **done**, all of it.\n\n```go\nfunc x()\n```"},
	}}
	assert.Equal(t, "❯ go *on*\n\n  (**Hm**, `x`)\n\n● Bash: make\n  no\n  way<U+001B>[2J\n\n? Bash denied\n\nIt is **done**, all of it.\n\n```go\nfunc x()\n```\n\n"+c.Diff, normal(c.Text(Look{Columns: 20})))
	assert.Equal(t, `^[1m❯ go *on*^[0m

^[1;2mHm^[0m^[2m, ^[0m^[36;2mx^[0m

^[1m● Bash: make^[0m
^[2m  no^[0m
^[2m  way<U+001B>[2J^[0m

^[2m? Bash denied^[0m

It is ^[1mdone^[0m, all of
it.

^[35mfunc^[0m^[36m x()^[0m

^[1m--- a^[0m
^[1m+++ b^[0m
^[36m@@ -1 +1 @@^[0m
^[31m-x^[0m
^[32m+y^[0m
`, normal(strings.ReplaceAll(c.Text(Look{Columns: 20, Color: true}), "\x1b", "^")))
}

// What a sub-agent says and does stands below its call, and what came beside text is
// named with how to get it.
func TestASubAgentIsIndented(t *testing.T) {
	image := json.RawMessage(`{"attachments":[{"type":"image","attachment_id":"a","mime_type":"image/png","size":3}]}`)
	c := Conversation{Entries: []wire.Entry{
		{EventType: "message", Role: "user", Content: "look", Data: image},
		{EventType: "tool_call", ToolID: "1", Title: "Task"},
		{EventType: "tool_result", ResultFor: "1", Result: "fine"},
		{EventType: "tool_call", ToolID: "2", ParentTool: "1", Title: "Read", Data: image},
		{EventType: "tool_result", ResultFor: "2", ParentTool: "1", Result: "seen\nit"},
		{EventType: "message", Role: "assistant", ParentTool: "1", Content: "One\n\ntwo"},
		{EventType: "message", Role: "assistant", ParentTool: "1", Content: "[image]", Data: image},
		{EventType: "tool_call", ToolID: "3", ParentTool: "2", Title: "Deep"},
		{EventType: "message", Role: "assistant", Content: "Done"},
	}}
	assert.Equal(t, `❯ look
  [image image/png 3 B] · duet-rpc session attachment a > FILE

● Task
  ● Read
  One

  two

  [image image/png 3 B] · duet-rpc session attachment a > FILE

    ● Deep
    seen
    it
    [image image/png 3 B] · duet-rpc session attachment a > FILE

  fine

Done

`, c.Text(Look{Columns: 60}))
}

// normal is text with unseen characters written as where the locale is not UTF-8.
func normal(text string) string { return strings.NewReplacer("⟨", "<", "⟩", ">").Replace(text) }
