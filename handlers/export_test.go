package handlers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

// exportPart requests a part of a document, of one member, such as "session":1, and a format.
func exportPart(c *client, of, format, after string) protocol.Exported {
	c.t.Helper()
	return answer[protocol.Exported](c, "session.export", fmt.Sprintf(`{%s,"format":%q,"after":%q}`, of, format, after))
}

// exportFrom returns the rest of a document behind a part, and the number of parts.
func exportFrom(c *client, of, format string, part protocol.Exported) (text string, parts int) {
	c.t.Helper()
	for text, parts = part.Text, 1; part.Next != ""; parts++ {
		part = exportPart(c, of, format, part.Next)
		text += part.Text
	}
	return text, parts
}

func exported(c *client, of, format string) (text string, parts int) {
	c.t.Helper()
	return exportFrom(c, of, format, exportPart(c, of, format, ""))
}

// asOneObject returns the document in JSON that other methods' results make.
func asOneObject(c *client, of, turn string) string {
	c.t.Helper()
	items := []json.RawMessage{}
	for after := int64(0); ; {
		page := answer[struct {
			Items []json.RawMessage
			Next  int64 `json:"next_after"`
		}](c, "session.items", fmt.Sprintf(`{%s,"after":%d,"limit":1000}`, of, after))
		items = append(items, page.Items...)
		if after = page.Next; after == 0 {
			break
		}
	}
	of = `{"turn":"` + turn + `"}`
	changed := answer[struct {
		Changes []json.RawMessage
		Diff    string
	}](c, "change.list", of)
	raw, err := json.MarshalIndent(struct {
		Format  string            `json:"format"`
		Version int               `json:"version"`
		Turn    json.RawMessage   `json:"turn"`
		Items   []json.RawMessage `json:"items"`
		Files   []json.RawMessage `json:"files"`
		Diff    string            `json:"diff"`
	}{"duet-session", 1, answer[struct{ Turn json.RawMessage }](c, "turn.get", of).Turn, items, changed.Changes, changed.Diff}, "", "  ")
	require.NoError(c.t, err)
	return string(raw) + "\n"
}

// An exported document has the whole session, in both formats, up to a turn, and of one turn alone.
func TestASessionIsExported(t *testing.T) {
	w := newWorld(t, varied("two <b>\n"))
	c := w.connect(frame.LSP)
	w.ended(answer[protocol.Started](c, "session.start", `{"prompt":"one"}`).ID)
	w.ended(answer[protocol.Started](c, "session.prompt", `{"session":1,"prompt":"two"}`).ID)
	w.ended(answer[protocol.Started](c, "session.fork", `{"turn":"1.1","prompt":"three"}`).ID)
	for of, turn := range map[string]string{
		`"session":1`: "1.2", `"session":"1.1"`: "1.1", `"turn":"1.2"`: "1.2", `"session":2`: "2.1", `"session":"last"`: "2.1",
	} {
		text, parts := exported(c, of, "json")
		assert.Equal(t, 1, parts)
		assert.Equal(t, asOneObject(c, of, turn), text, of)
	}
	text, _ := exported(c, `"session":1`, "md")
	text = text[strings.Index(text, "\n## "):]
	turn := func(prompt string) string {
		return "\n## User\n\n" + prompt + "\n\n## Thoughts\n\nHm.\n" +
			"\n### Tool: Bash\n\n```json\n{\n  \"command\": \"ls\"\n}\n```\n\nResult (completed):\n\n" +
			"```\na.txt\n```\n\n## Agent\n\nDone: " + prompt + "\n"
	}
	want := turn("one") + turn("two") + "\n## Changes\n\n### " + w.dir + "/a.txt\n\n```diff\n"
	assert.Equal(t, want, text[:min(len(want), len(text))])
	assert.Contains(t, text, "\n-one\n+two <b>\n")
	withDefault := answer[protocol.Exported](c, "session.export", `{"session":1}`).Text
	assert.Equal(t, text, withDefault[len(withDefault)-len(text):])

	draft := answer[protocol.Exported](c, "session.export", `{"session":"`+c.launch(`{"query":"x","draft":true}`)+`","format":"json"}`)
	assert.Contains(t, draft.Text, "\n  \"files\": [],\n  \"diff\": \"\"\n}\n")
}

func TestWhatCannotBeExported(t *testing.T) {
	w := newWorld(t, quick)
	c := w.connect(frame.LSP)
	w.ended(answer[protocol.Started](c, "session.start", `{"prompt":"one"}`).ID)
	c.failsAs("session.export", `{"session":99}`, -32050, "not_found")
	c.failsAs("session.export", `{"turn":"1.9"}`, -32050, "not_found")
	c.rejects("session.export", `{}`, "session")
	c.rejects("session.export", `{"session":1,"turn":"1.1"}`, "turn")
	c.rejects("session.export", `{"session":1,"format":"pdf"}`, "format")
	for _, after := range []string{"x", "e30", "!", "eyJmIjoibWQiLCJ0IjoieCIsInMiOjl9"} { // e30 is {}; the last one has a stage that no document has
		c.rejects("session.export", `{"session":1,"after":"`+after+`"}`, "after", after)
	}
}

// A long document comes in parts, whose texts make the same document on every connection. A character is
// never cut.
func TestALongSessionIsExportedInParts(t *testing.T) {
	long := strings.Repeat("é\"\\ <a> €\n", 70_000) // longer than a line
	w := newWorld(t, func(_ context.Context, x *turn) catalog.ExecutePromptResult {
		for n := range 250 {
			x.report(catalog.EventToolCall, catalog.ToolCall{ToolID: fmt.Sprint(n), Tool: "Bash", Input: json.RawMessage(`{"command":"ls"}`)})
			x.report(catalog.EventToolResult, catalog.ToolCall{
				ToolID: fmt.Sprint(n), Status: "completed", Result: json.RawMessage(`"` + strings.Repeat("x", 10_000) + `"`),
			})
		}
		x.say(long)
		return done
	})
	c, lines := w.connect(frame.LSP), w.connect(frame.NDJSON)
	w.ended(answer[protocol.Started](c, "session.start", `{"prompt":"one"}`).ID)
	whole := asOneObject(c, `"session":1`, "1.1")
	for _, format := range []string{"json", "md"} {
		text, parts := exported(c, `"session":1`, format)
		inLines, more := exported(lines, `"session":1`, format)
		assert.Greater(t, parts, 3)
		assert.Greater(t, more, parts, "a line has less room than a frame for a long item")
		assert.True(t, text == inLines, "the same document")
		assert.True(t, format == "md" || text == whole, "the whole document")
		assert.NotContains(t, text, "\uFFFD")
	}
	assert.LessOrEqual(t, lines.longest, 1<<20)

	part := exportPart(c, `"session":1`, "md", "")
	c.rejects("session.export", `{"session":1,"format":"json","after":"`+part.Next+`"}`, "after", "a part of another format")
}

// What a session gets between two parts is not in the document.
func TestAnExportedSessionGrows(t *testing.T) {
	more, grown := make(chan struct{}), make(chan struct{})
	w := newWorld(t, func(_ context.Context, x *turn) catalog.ExecutePromptResult {
		call := func(id string) {
			input := json.RawMessage(`{"command":"` + strings.Repeat("x", 700_000) + `"}`)
			x.report(catalog.EventToolCall, catalog.ToolCall{ToolID: id, Tool: "Bash", Input: input})
			x.report(catalog.EventToolResult, catalog.ToolCall{ToolID: id, Status: "completed"})
		}
		call("first")
		call("second")
		x.say("And ")
		if x.Prompt == "one" {
			<-more
			call("late")
			x.say("more.")
			close(grown)
		}
		return done
	})
	c := w.connect(frame.LSP)
	turn := answer[protocol.Started](c, "session.start", `{"prompt":"one"}`).ID
	w.until(func() bool {
		list := answer[protocol.ItemList](c, "session.items", `{"session":1}`).Items
		return len(list) == 4 && list[3].Text == "And "
	}, "the message begins")
	whole, _ := exported(c, `"session":1`, "md")
	assert.Contains(t, whole, "## Agent\n\nAnd \n", "the unfinished message is the last item")

	first := exportPart(c, `"session":1`, "md", "")
	close(more)
	<-grown
	w.ended(turn)
	w.ended(answer[protocol.Started](c, "session.prompt", `{"session":1,"prompt":"two"}`).ID)
	text, parts := exportFrom(c, `"session":1`, "md", first)
	assert.Equal(t, 2, parts)
	assert.True(t, strings.HasPrefix(whole, text), "only the unfinished message is missing")
	assert.Equal(t, "\n## Agent\n\nAnd \n", whole[len(text):])
}

// The message that an agent is writing is in the document once, wherever the pages of items end.
func TestAnUnfinishedMessageIsExportedOnce(t *testing.T) {
	goOn := make(chan struct{})
	w := newWorld(t, func(_ context.Context, x *turn) catalog.ExecutePromptResult {
		calls, _ := strconv.Atoi(x.Prompt)
		for n := range calls {
			x.report(catalog.EventToolCall, catalog.ToolCall{ToolID: fmt.Sprint(n), Tool: "Bash", Input: json.RawMessage(`{}`)})
		}
		x.say("Half")
		<-goOn
		return done
	})
	c := w.connect(frame.LSP)
	var turns []string
	for n, calls := range []int{97, 98, 99} { // and the prompt: a page has 100 items
		turns = append(turns, answer[protocol.Started](c, "session.start", fmt.Sprintf(`{"prompt":"%d"}`, calls)).ID)
		of := fmt.Sprintf(`"session":%d`, n+1)
		w.until(func() bool {
			list := answer[protocol.ItemList](c, "session.items", `{`+of+`,"limit":1}`).Items
			return len(list) > 0 && list[len(list)-1].Text == "Half"
		}, "the message begins")
		text, _ := exported(c, of, "md")
		assert.Equal(t, []int{1, calls}, []int{strings.Count(text, "\nHalf\n"), strings.Count(text, "### Tool")})
	}
	close(goOn)
	for _, turn := range turns {
		w.ended(turn)
	}
}

// If the place at which a part was cut has changed, the document cannot go on.
func TestAnItemThatIsExportedInPartsChanges(t *testing.T) {
	ends := make(chan struct{})
	w := newWorld(t, func(_ context.Context, x *turn) catalog.ExecutePromptResult {
		input := json.RawMessage(`{"command":"` + strings.Repeat("x", 1_500_000) + `"}`)
		x.report(catalog.EventToolCall, catalog.ToolCall{ToolID: "t", Tool: "Bash", Title: "before", Input: input})
		<-ends
		x.report(catalog.EventToolCall, catalog.ToolCall{ToolID: "t", Tool: "Bash", Title: "after", Input: input})
		return done
	})
	c, other := w.connect(frame.NDJSON), w.connect(frame.LSP)
	turn := answer[protocol.Started](c, "session.start", `{"prompt":"one"}`).ID
	w.until(func() bool { return len(answer[protocol.ItemList](other, "session.items", `{"session":1}`).Items) == 2 }, "the tool call")
	part := exportPart(c, `"session":1`, "md", "")
	if !bytes.Contains([]byte(part.Text), []byte("before")) { // a long piece has a part of its own
		part = exportPart(c, `"session":1`, "md", part.Next)
	}
	text, _ := exportFrom(c, `"session":1`, "md", part)
	assert.Contains(t, text, "Tool: before")
	close(ends)
	w.ended(turn)
	e := c.failsAs("session.export", `{"session":1,"format":"md","after":"`+part.Next+`"}`, -32051, "changed_since")
	assert.Contains(t, e.Message, "export it again from the beginning")
	text, _ = exported(c, `"session":1`, "md")
	assert.Contains(t, text, "Tool: after")
}
