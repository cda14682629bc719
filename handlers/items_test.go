package handlers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

// varied is a turn with an item of each kind that an agent reports. It writes a file with a text.
func varied(after string) play {
	return func(_ context.Context, x *turn) catalog.ExecutePromptResult {
		before := "one\n"
		x.report(catalog.EventThinkingChunk, catalog.ContentDelta{Delta: catalog.Delta{Text: "Hm."}})
		x.report(catalog.EventPlan, catalog.Plan{Entries: []domain.PlanEntry{{Content: "Look", Status: "completed"}}})
		x.report(catalog.EventToolCall, catalog.ToolCall{ToolID: "t", Tool: "Bash", Input: json.RawMessage(`{"command":"ls"}`)})
		x.report(catalog.EventToolResult, catalog.ToolCall{ToolID: "t", Status: "completed", Result: json.RawMessage(`"a.txt"`)})
		x.report(catalog.EventFileChange, catalog.FileChange{Path: filepath.Join(x.CWD, "a.txt"), Before: &before, After: &after})
		x.say("Done: " + x.Prompt)
		return done
	}
}

// The items of a session have what was said and done, each with its turn. A tool call and its result are
// one item.
func TestItemsOfASession(t *testing.T) {
	w := newWorld(t, varied("two\n"))
	c := w.connect(frame.LSP)
	w.ended(answer[protocol.Started](c, "session.start", `{"prompt":"one"}`).ID)
	w.ended(answer[protocol.Started](c, "session.prompt", `{"session":1,"prompt":"two"}`).ID)
	told := func(params string) (list []string, r protocol.ItemList) {
		r = answer[protocol.ItemList](c, "session.items", params)
		for _, i := range r.Items {
			assert.Positive(t, i.ID)
			assert.Equal(t, domain.Completed, i.TurnState)
			text := strings.TrimSpace(strings.Join([]string{i.Turn, string(i.Type), i.Role, i.Text, i.ToolName, string(i.ToolInput), string(i.Status), i.Result}, " "))
			if i.Change != nil {
				text += fmt.Sprint(" +", i.Change.Added)
			}
			list = append(list, strings.Join(strings.Fields(strings.ReplaceAll(text, w.dir, "DIR")), " ")+fmt.Sprintf(" %d", len(i.Entries)))
		}
		return list, r
	}
	turn := func(n int, prompt string) (list []string) {
		for _, text := range []string{
			"message user " + prompt + " 0", "plan assistant - [x] Look 1", "thought assistant Hm. 0",
			`tool_call Bash {"command":"ls"} completed a.txt 0`, "change assistant DIR/a.txt +1 0", "message assistant Done: " + prompt + " 0",
		} {
			list = append(list, fmt.Sprintf("1.%d %s", n, text))
		}
		return list
	}
	all, r := told(`{"session":1}`)
	assert.Equal(t, append(turn(1, "one"), turn(2, "two")...), all)
	assert.Zero(t, r.NextBefore+r.NextAfter)
	upTo, _ := told(`{"session":"1.1"}`)
	assert.Equal(t, turn(1, "one"), upTo)
	only, r := told(`{"turn":"1.2"}`)
	assert.Equal(t, turn(2, "two"), only)
	called, _ := told(`{"turn":"1.2","key":"t"}`)
	assert.Equal(t, turn(2, "two")[3:4], called)
	first, _ := told(`{"turn":"1.2","after":0,"limit":1}`)
	assert.Equal(t, turn(2, "two")[:1], first)

	// Pages in both directions have each item once.
	for _, limit := range []int{1, 2, 5, 12, 13} {
		var back, forth []string
		for before := ""; ; {
			page, r := told(fmt.Sprintf(`{"session":1,"limit":%d%s}`, limit, before))
			back = append(page, back...)
			if r.NextBefore == 0 {
				break
			}
			before = fmt.Sprintf(`,"before":%d`, r.NextBefore)
		}
		for after := int64(0); ; {
			page, r := told(fmt.Sprintf(`{"session":1,"limit":%d,"after":%d}`, limit, after))
			forth = append(forth, page...)
			if after = r.NextAfter; after == 0 {
				break
			}
		}
		assert.Equal(t, all, back, limit)
		assert.Equal(t, all, forth, limit)
	}

	for _, hit := range answer[protocol.SearchResult](c, "session.search", `{"query":"hm"}`).Hits {
		found := answer[protocol.ItemList](c, "session.items", `{"turn":"`+hit.Turn+`","key":"`+hit.Key+`"}`).Items
		require.Len(t, found, 1)
		assert.Equal(t, []any{hit.Item, protocol.ItemThought, hit.Type}, []any{found[0].ID, found[0].Type, protocol.ItemThought})
	}

	c.failsAs("session.items", `{"session":"99"}`, -32050, "not_found")
	c.failsAs("session.items", `{"session":1,"before":999}`, -32050, "item_not_found")
	c.failsAs("session.items", `{"agent_session_id":"x"}`, -32050, "not_found")
	c.rejects("session.items", `{}`, "session")
	c.rejects("session.items", `{"session":1,"agent_session_id":"x"}`, "agent_session_id")
	c.rejects("session.items", `{"turn":"1.1","agent_session_id":"x"}`, "turn")
	c.rejects("session.items", `{"session":1,"turn":"1.1"}`, "turn")
	c.rejects("session.items", `{"session":1,"key":"t"}`, "turn")
	c.rejects("session.items", `{"session":1,"before":1,"after":0}`, "after")
}

// A fork begins with the items of the turns before it.
func TestItemsOfAFork(t *testing.T) {
	w := newWorld(t, quick)
	c := w.connect(frame.LSP)
	w.ended(answer[protocol.Started](c, "session.start", `{"prompt":"one"}`).ID)
	w.ended(answer[protocol.Started](c, "session.prompt", `{"session":1,"prompt":"two"}`).ID)
	w.ended(answer[protocol.Started](c, "session.fork", `{"turn":"1.1","prompt":"another"}`).ID)
	said := func(params string) (list []string) {
		for _, i := range answer[protocol.ItemList](c, "session.items", params).Items {
			list = append(list, i.Turn+" "+i.Text)
		}
		return list
	}
	fork := []string{"1.1 one", "1.1 Done: one", "2.1 another", "2.1 Done: another"}
	assert.Equal(t, fork, said(`{"session":2}`))
	assert.Equal(t, fork[1:3], said(`{"session":2,"before":`+itoa(answer[protocol.ItemList](c, "session.items", `{"session":2}`).Items[3].ID)+`,"limit":2}`))
	foreign := answer[protocol.ItemList](c, "session.items", `{"turn":"1.2"}`).Items[0].ID
	c.failsAs("session.items", `{"session":2,"before":`+itoa(foreign)+`}`, -32050, "item_not_found")
}

// The message that an agent is writing is the last item, without an id.
func TestAnUnfinishedMessageIsAnItem(t *testing.T) {
	goOn, wrote := make(chan struct{}), make(chan struct{})
	w := newWorld(t, func(_ context.Context, x *turn) catalog.ExecutePromptResult {
		x.say("Half ")
		close(wrote)
		<-goOn
		x.say("and whole.")
		return done
	})
	c := w.connect(frame.LSP)
	turn := answer[protocol.Started](c, "session.start", `{"prompt":"go"}`).ID
	<-wrote
	last := func() *protocol.SessionItem {
		list := answer[protocol.ItemList](c, "session.items", `{"session":1,"limit":1}`).Items
		require.NotEmpty(t, list)
		return list[len(list)-1]
	}
	w.until(func() bool { return last().Text == "Half " }, "the message begins")
	assert.Equal(t, []any{int64(0), true, domain.Running}, []any{last().ID, last().Open, last().TurnState})
	assert.Len(t, answer[protocol.ItemList](c, "session.items", `{"turn":"1.1","key":"`+last().Key+`"}`).Items, 1)

	// A page does not end at it, because the next one begins at an id.
	waiting := answer[protocol.Started](c, "session.prompt", `{"session":1,"prompt":"later"}`).ID
	all := []string{"go", "Half ", "later"}
	for _, limit := range []int{1, 2, 3} {
		var back, forth []string
		for before := ""; ; {
			r := answer[protocol.ItemList](c, "session.items", fmt.Sprintf(`{"session":1,"limit":%d%s}`, limit, before))
			var texts []string
			for _, i := range r.Items {
				texts = append(texts, i.Text)
			}
			back = append(texts, back...)
			if r.NextBefore == 0 {
				break
			}
			before = `,"before":` + itoa(r.NextBefore)
		}
		for after := int64(0); ; {
			r := answer[protocol.ItemList](c, "session.items", fmt.Sprintf(`{"session":1,"limit":%d,"after":%d}`, limit, after))
			for _, i := range r.Items {
				forth = append(forth, i.Text)
			}
			if after = r.NextAfter; after == 0 {
				break
			}
		}
		assert.Equal(t, all, back, limit)
		assert.Equal(t, all, forth, limit)
	}
	c.ask("turn.interrupt", `{"turn":"`+waiting+`"}`)
	close(goOn)
	w.ended(turn)
	said := answer[protocol.ItemList](c, "session.items", `{"turn":"1.1","limit":1}`).Items[0]
	assert.Equal(t, []any{"Half and whole.", true, false}, []any{said.Text, said.ID > 0, said.Open})
}

// Items are whole: a page has as many as fit into a message. One that is too long alone is cut, and says
// so.
func TestLongItems(t *testing.T) {
	long := strings.Repeat("long text ", 20_000)
	w := newWorld(t, func(_ context.Context, x *turn) catalog.ExecutePromptResult {
		for range 8 {
			x.report(catalog.EventMessageStart, catalog.MessageMark{})
			x.say(long)
			x.report(catalog.EventMessageStop, catalog.MessageMark{})
		}
		x.report(catalog.EventToolCall, catalog.ToolCall{ToolID: "t", Tool: "Write", Input: json.RawMessage(`{"content":"` + strings.Repeat("y", 1<<20) + `"}`)})
		return done
	})
	c := w.connect(frame.NDJSON) // its messages have at most 1 MiB
	w.ended(answer[protocol.Started](c, "session.start", `{"prompt":"talk"}`).ID)
	var texts []string
	for before := ""; ; {
		r := answer[protocol.ItemList](c, "session.items", `{"session":1`+before+`}`)
		for n := len(r.Items) - 1; n >= 0; n-- {
			i := r.Items[n]
			assert.Equal(t, i.Type == protocol.ItemToolCall, i.Truncated, "of a %s", i.Type)
			texts = append(texts, i.Text)
		}
		if r.NextBefore == 0 {
			break
		}
		before = `,"before":` + itoa(r.NextBefore)
	}
	require.Len(t, texts, 10)
	for _, text := range texts[1:9] {
		assert.Equal(t, long, text)
	}
	assert.Less(t, c.longest, 1<<20)
}

// An item of many parts that do not fit into a message is cut to what it is, and the pages go on.
func TestAnItemOfManyParts(t *testing.T) {
	for name, size := range map[string]struct{ entries, each int }{"long steps": {300, 6000}, "many steps": {60_000, 10}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(_ context.Context, x *turn) catalog.ExecutePromptResult {
				var plan catalog.Plan
				for n := range size.entries {
					plan.Entries = append(plan.Entries, domain.PlanEntry{Content: fmt.Sprint(n, strings.Repeat("x", size.each)), Status: "pending"})
				}
				x.report(catalog.EventPlan, plan)
				x.say("Done.")
				return done
			})
			c := w.connect(frame.NDJSON)
			w.ended(answer[protocol.Started](c, "session.start", `{"prompt":"plan"}`).ID)
			var types []string
			for after := int64(0); ; {
				r := answer[protocol.ItemList](c, "session.items", fmt.Sprintf(`{"session":1,"after":%d}`, after))
				for _, i := range r.Items {
					types = append(types, i.Turn+" "+string(i.Type))
					assert.Equal(t, i.Type == protocol.ItemPlan, i.Truncated)
				}
				if after = r.NextAfter; after == 0 {
					break
				}
			}
			assert.Equal(t, []string{"1.1 message", "1.1 plan", "1.1 message"}, types)
			assert.Less(t, c.longest, 1<<20)
		})
	}
}

func itoa(n int64) string { return fmt.Sprint(n) }
