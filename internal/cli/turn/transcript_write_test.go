package turn

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

func itemsOf(list ...protocol.Item) (items []*protocol.SessionItem) {
	for _, i := range list {
		items = append(items, &protocol.SessionItem{Item: i})
	}
	return items
}

// A transcript has notes of the hub at their time, for example about an agent's errors during its
// silence.
func TestTranscriptHasNotes(t *testing.T) {
	c := Transcript{Items: itemsOf(
		protocol.Item{Type: "message", Role: "user", Text: "go"},
		protocol.Item{Type: "notice", Text: "claude said nothing for 9 s: API error 429\ntrying again\x1b[2J"},
		protocol.Item{Type: "message", Role: "assistant", Text: "Done."},
	)}
	assert.Equal(t, "❯ go\n\n— claude said nothing for 9 s: API error 429\n  trying again<U+001B>[2J\n\nDone.\n\n", normal(c.Text(Look{})))
}

// A terminal with colours shows rendered Markdown, and faint thoughts.
func TestTranscriptOnTerminal(t *testing.T) {
	c := Transcript{Diff: "--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n", Items: itemsOf(
		protocol.Item{Type: "message", Role: "user", Text: "go *on*"},
		protocol.Item{Type: "thought", Text: "**Hm**, `x`"},
		protocol.Item{Type: "tool_call", Title: "Bash", ToolInput: json.RawMessage(`{"command":"make"}`), Result: "\x1b[31mno\x1b[0m\nway\x1b[2J"},
		protocol.Item{Type: "answer"},
		protocol.Item{Type: "message", Role: "assistant", Text: "It is **done**, all of it.\n\n```go\nfunc x()\n```"},
	)}
	c.Items[3].Answer = &protocol.AnswerNote{Title: "Bash", Status: "denied", DecidedBy: "user"}
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

// Entries of a sub-agent are below its call. Each attachment has the command that saves it.
func TestSubAgentIsIndented(t *testing.T) {
	image := []protocol.Attachment{{Type: "image", ID: "a", MIMEType: "image/png", Size: 3}}
	c := Transcript{Items: itemsOf(
		protocol.Item{Type: "message", Role: "user", Text: "look", Attachments: image},
		protocol.Item{Type: "tool_call", Key: "1", Title: "Task", Result: "fine"},
		protocol.Item{Type: "tool_call", Key: "2", ParentID: "1", Title: "Read", Details: &protocol.ToolDetails{Attachments: image}, Result: "seen\nit"},
		protocol.Item{Type: "message", Role: "assistant", ParentID: "1", Text: "One\n\ntwo"},
		protocol.Item{Type: "message", Role: "assistant", ParentID: "1", Text: "[image]", Attachments: image},
		protocol.Item{Type: "tool_call", Key: "3", ParentID: "2", Title: "Deep"},
		protocol.Item{Type: "message", Role: "assistant", Text: "Done"},
	)}
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

// A tool call is followed by its command, or else by its file, unless the title has it.
func TestInputOfAToolCall(t *testing.T) {
	for input, want := range map[string]string{
		`{"command":"go test"}`:              ": go test",
		`{"file_path":"/p/a.go"}`:            ": /p/a.go",
		`{"file_path":"read a.go"}`:          "",
		`{"command":"make","file_path":"b"}`: ": make",
		`{"path":"/p/a.go"}`:                 "",
		`{"command":["a"],"b":"c"}`:          "",
		`{"command":"","file_path":`:         "",
	} {
		assert.Equal(t, want, inputOf(&protocol.SessionItem{Item: protocol.Item{Title: "to read a.go", ToolInput: json.RawMessage(input)}}), input)
	}
}
