package export_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/export"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

// inMarkdown returns items as Markdown, with the brackets of locales without UTF-8.
func inMarkdown(t *testing.T, items ...protocol.Item) (all string) {
	t.Helper()
	for _, i := range items {
		text, err := export.In(protocol.ExportMarkdown).Item(&protocol.SessionItem{Item: i}, false)
		require.NoError(t, err)
		all += text
	}
	return normal(all)
}

func normal(text string) string { return strings.NewReplacer("⟨", "<", "⟩", ">").Replace(text) }

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
				text := inMarkdown(t, protocol.Item{Type: "message", Role: role, Text: c.text}, protocol.Item{Type: "notice", Text: "end"})
				_, text, _ = strings.Cut(text, "\n## ")
				_, text, _ = strings.Cut(text, "\n\n")
				assert.Equal(t, c.want+"\n\n> Note: end\n", text)
			}
		})
	}
	head, err := export.In("md").Head(&protocol.Turn{Title: "<b>\n## User"})
	require.NoError(t, err)
	tail, err := export.In("md").Tail(protocol.ChangeList{Changes: []*protocol.Change{{Path: "<b>\n## User", Diff: "+\x1b\n"}}}, false)
	require.NoError(t, err)
	item := inMarkdown(t, protocol.Item{
		Type: "tool_call", Title: "`a<b>` <script>\n## User", ToolInput: json.RawMessage("no JSON \x1b"),
		Refusal: "<b>\n## User", Result: "```\n\x1b[31m## User\x1b[0m\x07", Status: "x\n## User",
	})
	assert.Equal(t, "# < b> ## User\n\n", head)
	assert.Equal(t, "\n### Tool: `a<b>` < script> ## User\n\n```json\nno JSON <U+001B>\n```\n\nNot allowed: < b> ## User\n"+
		"\nResult (x ## User):\n\n````\n```\n## User<U+0007>\n````\n", item)
	assert.Equal(t, "\n## Changes\n\n### < b> ## User\n\n```diff\n+<U+001B>\n```\n", normal(tail))
}

// A note of the hub is one line.
func TestANoteIsOneLine(t *testing.T) {
	text := inMarkdown(t, protocol.Item{Type: "message", Role: "user", Text: "go"},
		protocol.Item{Type: "notice", Text: "claude said nothing for 9 s: API error 429\ntrying again\x1b[2J"},
		protocol.Item{Type: "message", Role: "assistant", Text: "Done."})
	assert.Equal(t, "\n## User\n\ngo\n"+
		"\n> Note: claude said nothing for 9 s: API error 429 trying again<U+001B>[2J\n\n## Agent\n\nDone.\n", text)
}

// The JSON is one object, with control characters of terminals escaped.
func TestJSONInPiecesIsAnObject(t *testing.T) {
	form := export.In(protocol.ExportJSON)
	piece := func(text string, err error) string {
		t.Helper()
		require.NoError(t, err)
		return text
	}
	for n := range 3 {
		doc := piece(form.Head(&protocol.Turn{Name: "1.1", Prompt: "<a> \u009b"}))
		for i := range n {
			doc += piece(form.Item(&protocol.SessionItem{Item: protocol.Item{Type: "message", Text: "\x7f"}}, i == 0))
		}
		doc += piece(form.Tail(protocol.ChangeList{Diff: "+a\n"}, n == 0))
		var read struct {
			Format  string
			Version int
			Turn    protocol.Turn
			Items   []json.RawMessage
			Files   []json.RawMessage
			Diff    string
		}
		require.NoError(t, json.Unmarshal([]byte(doc), &read), doc)
		assert.Equal(t, []any{"duet-session", 1, "<a> \u009b", n, "+a\n"},
			[]any{read.Format, read.Version, read.Turn.Prompt, len(read.Items), read.Diff})
		assert.NotContains(t, doc, "\u009b")
		assert.NotContains(t, doc, "\x7f")
		var whole bytes.Buffer
		require.NoError(t, json.Indent(&whole, []byte(doc), "", "  "))
		assert.Equal(t, whole.String(), doc, "indented as a whole")
	}
}
