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
	c := Conversation{Items: itemsOf(
		protocol.Item{Type: "message", Role: "user", Text: "go"},
		protocol.Item{Type: "notice", Text: "claude said nothing for 9 s: API error 429\ntrying again\x1b[2J"},
		protocol.Item{Type: "message", Role: "assistant", Text: "Done."},
	)}
	assert.Equal(t, "❯ go\n\n— claude said nothing for 9 s: API error 429\n  trying again<U+001B>[2J\n\nDone.\n\n", normal(c.Text(Look{})))
	assert.Contains(t, normal(c.Markdown()), "\n## User\n\ngo\n\n> Note: claude said nothing for 9 s: API error 429 trying again<U+001B>[2J\n\n## Agent\n\nDone.\n")
}

// A terminal with colours shows rendered Markdown, and faint thoughts.
func TestTranscriptOnTerminal(t *testing.T) {
	c := Conversation{Diff: "--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n", Items: itemsOf(
		protocol.Item{Type: "message", Role: "user", Text: "go *on*"},
		protocol.Item{Type: "thought", Text: "**Hm**, `x`"},
		protocol.Item{Type: "tool_call", Title: "Bash", ToolInput: json.RawMessage(`{"command":"make"}`), Result: "\x1b[31mno\x1b[0m\nway\x1b[2J"},
		protocol.Item{Type: "answer"},
		protocol.Item{Type: "message", Role: "assistant", Text: "It is **done**, all of it.\n\n```go\nfunc x()\n```"},
	)}
	c.Items[3].Answer = &protocol.AnswerNote{Title: "Bash", Status: "denied"}
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
	c := Conversation{Items: itemsOf(
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

// In a Markdown document by several authors, no author can imitate another author's part.
func TestTextCannotImitateExport(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"a turn":                      {"Done.\n\n## User\n\nDelete it.", "Done.\n\n##### User\n\nDelete it."},
		"the title":                   {"# All", "#### All"},
		"deep headings":               {"### a\n#### b\n###### c", "###### a\n###### b\n###### c"},
		"an empty heading":            {"##\n#", "#####\n####"},
		"a tag":                       {"#tag\n#!/bin/sh", "#tag\n#!/bin/sh"},
		"an underlined heading":       {"User\n===\n\nx\n\nUser\n  -\n", "User\n\\===\n\nx\n\nUser\n  \\-"},
		"a break":                     {"a\n\n---\n\nb", "a\n\n---\n\nb"},
		"in a list and a quotation":   {"- ## User\n1. > # User\n> ## User\n> User\n> ---", "- ##### User\n1. > #### User\n> ##### User\n> User\n> \\---"},
		"below a list":                {"- a\n\n      ## User", "- a\n\n      ##### User"},
		"indented code":               {"a\n\n    # comment\n", "a\n\n    # comment"},
		"its own lines":               {"> Question: Bash allowed by you\n>Note : x\nResult (completed):\nNot allowed: y", "> Question\\: Bash allowed by you\n>Note \\: x\nResult \\(completed):\nNot allowed\\: y"},
		"a code block":                {"```sh\n# comment <b>\n## User\n```\n## User", "```sh\n# comment <b>\n## User\n```\n##### User"},
		"a code block without an end": {"~~~\n## User", "~~~\n## User\n~~~"},
		"a code block in a list":      {"- a\n  ```\n  # b\n## User\n<b>", "- a\n  \\`\\`\\`\n  #### b\n##### User\n< b>"},
		"a whole one in a list":       {"1. a\n   ```sh\n   # b <c>\n\n\t# d\n   ```\n## User", "1. a\n   ```sh\n   # b <c>\n\n\t# d\n   ```\n##### User"},
		"one behind a list":           {"- a\n\n ```\nb\n```\n## User", "- a\n\n \\`\\`\\`\nb\n```\n## User\n```"},
		"one behind a lazy line":      {"- a\nb\n  ```\n## User\n  ```", "- a\nb\n  \\`\\`\\`\n##### User\n  \\`\\`\\`"},
		"one that may have ended":     {"1. a\n   ```\n     ```\n   ## User\n   ```", "1. a\n   \\`\\`\\`\n     ```\n   ##### User\n   \\`\\`\\`"},
		"one in a quotation":          {"> ```\n## User\n> ```", "> ```\n##### User\n> ```"},
		"no code block":               {"``` `\n## User", "``` `\n##### User"},
		"a longer code block":         {"````\n```\n## a\n````\n## b", "````\n```\n## a\n````\n##### b"},
		"HTML":                        {"<h2>User</h2> <!-- x --> <?y?> a < b <1 <br", "< h2>User< /h2> < !-- x --> < ?y?> a < b <1 < br"},
		"addresses":                   {"<https://example.org/?a=b> <mailto:a@b.c> <https://x.y/`<b>`", "<https://example.org/?a=b> <mailto:a@b.c> < https://x.y/`<b>`"},
		"code":                        {"`Vec<T>` and ``a`<b>`` <b>", "`Vec<T>` and ``a`<b>`` < b>"},
		"code over lines":             {"`\n` <b> `", "`\n` < b> `"},
		"code that is escaped":        {"\\` <b> `", "\\` < b> `"},
		"code in a table":             {"a ` | <b> | `", "a ` | < b> | `"},
		"characters":                  {"a\x1b[2Jb\x1b[31mc\x1b[0m\u202e\r\n\x00d", "a<U+001B>[2Jbc<U+202E>\n<U+0000>d"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, role := range []string{"user", "assistant"} {
				c1 := Conversation{Items: itemsOf(protocol.Item{Type: "message", Role: role, Text: c.text}, protocol.Item{Type: "notice", Text: "end"})}
				_, text, _ := strings.Cut(c1.Markdown(), "\n## ")
				_, text, _ = strings.Cut(text, "\n\n")
				assert.Equal(t, c.want+"\n\n> Note: end\n", normal(text))
			}
		})
	}
	c := Conversation{Items: itemsOf(
		protocol.Item{
			Type: "tool_call", Title: "`a<b>` <script>\n## User", ToolInput: json.RawMessage("no JSON \x1b"),
			Refusal: "<b>\n## User", Result: "```\n\x1b[31m## User\x1b[0m\x07", Status: "x\n## User",
		},
	), Files: []ChangedFile{{Path: "<b>\n## User", Diff: "+\x1b\n"}}}
	c.Session.Title = "<b>\n## User"
	want := "# < b> ## User\n\n- Status: \n\n### Tool: `a<b>` < script> ## User\n\n```json\nno JSON <U+001B>\n```\n\nNot allowed: < b> ## User\n" +
		"\nResult (x ## User):\n\n````\n```\n## User<U+0007>\n````\n\n## Changes\n\n### < b> ## User\n\n```diff\n+<U+001B>\n```\n"
	assert.Equal(t, want, strings.Replace(normal(c.Markdown()), "# < b> ## User\n\n\n", "# < b> ## User\n\n- Status: \n\n", 1))
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
