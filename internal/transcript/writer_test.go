package transcript_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite"
	"github.com/duet-rpc/duet-rpc/internal/transcript"
)

// book is a writer, its store, and one turn.
type book struct {
	*transcript.Writer
	store store.Store
	turn  domain.Turn
}

func newBook(t *testing.T) *book {
	t.Helper()
	b := &book{}
	var err error
	path := filepath.Join(t.TempDir(), "duet.db")
	b.store, err = sqlite.Opener(path)(t.Context(), store.Options{RolledBack: func() { b.RolledBack() }})
	require.NoError(t, err)
	t.Cleanup(func() { b.store.Close() })
	b.reopen()
	b.write(t, func(tx store.Tx) error {
		session := domain.Session{UUID: "session", CWD: "/", Agent: "fake", Mode: "default", Created: tx.Now(), Active: tx.Now()}
		if err := tx.InsertSession(&session); err != nil {
			return err
		}
		b.turn = domain.Turn{UUID: "turn", HumanLayerSession: "session_id", HumanLayerRun: "run_id", Session: session.ID, State: domain.Running, Created: tx.Now(), Active: tx.Now()}
		return tx.InsertTurn(&b.turn)
	})
	return b
}

// reopen replaces the writer by one with an empty cache.
func (b *book) reopen() {
	b.Writer = transcript.New(context.Background(), func(int64) (domain.TurnInSession, bool) { return domain.TurnInSession{}, false })
}

func (b *book) write(t *testing.T, change func(store.Tx) error) {
	t.Helper()
	require.NoError(t, b.store.Write(t.Context(), change))
}

// say adds a piece of the agent's message.
func (b *book) say(t *testing.T, message, text string, thought bool) {
	t.Helper()
	b.write(t, func(tx store.Tx) error {
		return b.Delta(tx, b.turn.ID, catalog.ContentDelta{MessageID: message, Delta: catalog.Delta{Text: text}}, thought)
	})
}

// end ends the turn's message and returns the turn.
func (b *book) end(t *testing.T) domain.Turn {
	t.Helper()
	var turn domain.Turn
	b.write(t, func(tx store.Tx) (err error) {
		if turn, err = tx.Turn(t.Context(), b.turn.ID); err != nil {
			return err
		}
		return b.End(tx, &turn)
	})
	return turn
}

// items returns the kinds and texts of the turn's items.
func (b *book) items(t *testing.T) (list []string) {
	t.Helper()
	items, err := b.store.ItemsOfTurn(t.Context(), b.turn.ID)
	require.NoError(t, err)
	for _, i := range items {
		list = append(list, i.Kind+": "+i.Content+i.Tool+i.Result)
	}
	return list
}

// payloads returns the turn's events in the log.
func (b *book) payloads(t *testing.T) (list []domain.Payload) {
	t.Helper()
	events, err := b.store.Events(t.Context(), 0, 1000)
	require.NoError(t, err)
	for _, e := range events {
		list = append(list, e.Payload)
	}
	return list
}

func TestPiecesBecomeMessages(t *testing.T) {
	for name, c := range map[string]struct {
		say  func(*testing.T, *book)
		want []string
	}{
		"pieces without an id": {func(t *testing.T, b *book) {
			b.say(t, "", "Hel", false)
			b.say(t, "", "lo", false)
		}, []string{"message: Hello"}},
		"another id is another message": {func(t *testing.T, b *book) {
			b.say(t, "1", "one", false)
			b.say(t, "", ", still", false)
			b.say(t, "2", "two", false)
		}, []string{"message: one, still", "message: two"}},
		"a thought is no message": {func(t *testing.T, b *book) {
			b.say(t, "1", "hm", true)
			b.say(t, "1", "so", false)
		}, []string{"thinking: hm", "message: so"}},
		"a message has an end": {func(t *testing.T, b *book) {
			b.say(t, "", strings.Repeat("x", 1<<20), false)
			b.say(t, "", "y", false)
		}, []string{"message: " + strings.Repeat("x", 1<<20), "message: y"}},
		"a new turn continues it": {func(t *testing.T, b *book) {
			b.say(t, "", "before, ", false)
			b.reopen()
			b.say(t, "", "after", false)
		}, []string{"message: before, after"}},
		"nothing": {func(t *testing.T, b *book) {
			b.say(t, "", "", false)
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBook(t)
			c.say(t, b)
			turn := b.end(t)
			assert.Equal(t, c.want, b.items(t))
			if len(c.want) > 0 {
				assert.Equal(t, c.want[len(c.want)-1], "message: "+turn.Result)
			}
			assert.Equal(t, strings.Count(strings.Join(c.want, "\n"), "message: "), turn.Messages)
		})
	}
}

// A sub-agent's messages are separate, below its tool call, and not the answer.
func TestASubAgentsWordsStandBelowItsCall(t *testing.T) {
	b := newBook(t)
	for i, parent := range []string{"", "call", "call", ""} {
		if i == 2 {
			b.reopen()
		}
		b.write(t, func(tx store.Tx) error {
			return b.Delta(tx, b.turn.ID, catalog.ContentDelta{MessageID: "m", ParentID: parent, Delta: catalog.Delta{Text: strconv.Itoa(i)}}, false)
		})
	}
	b.write(t, func(tx store.Tx) error {
		return b.Delta(tx, b.turn.ID, catalog.ContentDelta{ParentID: "call", Delta: catalog.Delta{Text: "hm"}}, true)
	})
	open, err := transcript.Open(t.Context(), b.store, b.turn.ID)
	require.NoError(t, err)
	assert.Equal(t, "call", open.ParentID)
	turn := b.end(t)
	assert.Equal(t, "3", turn.Result)
	items, err := b.store.ItemsOfTurn(t.Context(), b.turn.ID)
	require.NoError(t, err)
	var list []string
	for _, i := range items {
		list = append(list, i.Kind+" "+i.Content+" "+i.ParentID)
	}
	assert.Equal(t, []string{"message 0 ", "message 12 call", "message 3 ", "thinking hm call"}, list)
	var reported []string
	for _, p := range b.payloads(t) {
		switch p := p.(type) {
		case domain.MessageDelta:
			reported = append(reported, p.Text+" "+p.ParentID)
		case domain.MessageAdded:
			reported = append(reported, "= "+p.Text+" "+p.ParentID)
		}
	}
	assert.Equal(t, []string{"0 ", "= 0 ", "1 call", "2 call", "= 12 call", "3 ", "= 3 ", "hm call", "= hm call"}, reported)
}

// If a transaction that ends a message fails for another reason, the message stays open with all of
// its text.
func TestAMessageStaysOpenWhenTheChangeThatWouldEndItFails(t *testing.T) {
	b := newBook(t)
	b.say(t, "", "before, ", false)
	for _, fail := range []func() error{
		func() error { return errors.New("boom") },
		func() error { return store.ErrFull },
		func() error { panic("a defect") },
	} {
		assert.Error(t, b.store.Write(t.Context(), func(tx store.Tx) error {
			turn := b.turn
			if err := b.CloseMessage(tx, &turn); err != nil {
				return err
			}
			return fail()
		}))
	}
	b.say(t, "", "and after", false)
	assert.Equal(t, "before, and after", b.end(t).Result)
	assert.Equal(t, []string{"message: before, and after"}, b.items(t))
}

func TestAToolCallIsOneItemWhateverIsToldOfIt(t *testing.T) {
	b := newBook(t)
	tool := func(call catalog.ToolCall, ended bool) {
		t.Helper()
		b.write(t, func(tx store.Tx) error { turn := b.turn; return b.Tool(tx, &turn, call, nil, ended) })
	}
	b.say(t, "", "I look", false)
	tool(catalog.ToolCall{ToolID: "1", Tool: "Bash", Input: json.RawMessage(`{"command":"ls"}`), Status: "in_progress"}, false)
	tool(catalog.ToolCall{ToolID: "1", Input: json.RawMessage(`{}`), Title: "List", Paths: []string{"a"}}, false)
	tool(catalog.ToolCall{ToolID: "1", Result: json.RawMessage(`"a.txt"`)}, true)
	tool(catalog.ToolCall{Tool: "Read"}, false)
	b.end(t)
	assert.Equal(t, []string{"message: I look", "tool_call: Basha.txt", "tool_call: Readthe turn ended before this did"}, b.items(t))

	first, err := b.store.ToolItem(t.Context(), b.turn.ID, "1")
	require.NoError(t, err)
	assert.Equal(t, "completed", first.Status)
	assert.Equal(t, "List", first.Title)
	assert.JSONEq(t, `{"command":"ls"}`, string(first.Input), "an empty input is none")
	assert.Equal(t, domain.ToolDetails{Paths: []string{"a"}}, first.Data)
	second, err := b.store.ToolItem(t.Context(), b.turn.ID, "Read")
	require.NoError(t, err)
	assert.Equal(t, "failed", second.Status, "it was open when the turn ended")
	var reported []domain.ToolCallChanged
	for _, p := range b.payloads(t) {
		if c, ok := p.(domain.ToolCallChanged); ok && c.ID == "1" {
			reported = append(reported, c)
		}
	}
	require.Len(t, reported, 3)
	assert.NotEmpty(t, reported[1].Input)
	assert.Equal(t, &domain.ToolDetails{Paths: []string{"a"}}, reported[1].Details)
	assert.Empty(t, reported[2].Input, "its end tells no more than it must")
	assert.Nil(t, reported[2].Details)
	assert.Equal(t, "a.txt", reported[2].Result)
}

func TestNotesStandOnceInATranscript(t *testing.T) {
	b := newBook(t)
	plan := func(status string) {
		b.write(t, func(tx store.Tx) error {
			return b.Plan(tx, b.turn, catalog.Plan{Entries: []domain.PlanEntry{{Content: "look", Status: status}}})
		})
	}
	text := "new\n"
	plan("pending")
	b.write(t, func(tx store.Tx) error {
		return b.File(tx, b.turn, transcript.FileChange{FileChange: catalog.FileChange{Path: "/a", After: &text}, Diff: "+new\n", Added: 1})
	})
	for _, what := range []string{"was approved", "was asked again"} {
		b.write(t, func(tx store.Tx) error {
			return b.NoteApproval(tx, b.turn, "id", what, domain.ApprovalNote{ApprovalID: "id"})
		})
	}
	plan("completed")
	assert.Equal(t, []string{"plan: - [x] look", "diff: /a", "approval: was asked again"}, b.items(t))
	turn, err := b.store.Turn(t.Context(), b.turn.ID)
	require.NoError(t, err)
	assert.JSONEq(t, `{"plan":[{"content":"look","status":"completed"}]}`, string(turn.Metadata))
	changes, err := b.store.Changes(t.Context(), b.turn.ID)
	require.NoError(t, err)
	assert.Len(t, changes, 1)
}

// An event carries at most domain.MaxEventText of a text; the item has all of it.
// A clock that was set during a silence does not change how long it lasted.
func TestTheLengthOfASilence(t *testing.T) {
	for name, c := range map[string]struct {
		silence catalog.Silence
		want    []string
	}{
		"set back by hours":    {catalog.Silence{SinceMS: time.Now().Add(5 * time.Hour).UnixMilli(), LastedMS: 90_000}, []string{"system: fake said nothing for 90 s"}},
		"set forward by hours": {catalog.Silence{SinceMS: time.Now().Add(-5 * time.Hour).UnixMilli(), LastedMS: 30_000}, nil},
		"a complaint":          {catalog.Silence{SinceMS: time.Now().Add(-5 * time.Hour).UnixMilli(), LastedMS: 7_000, Note: "429"}, []string{"system: fake said nothing for 7 s: 429"}},
		"by the clock alone":   {catalog.Silence{SinceMS: time.Now().Add(5 * time.Hour).UnixMilli(), Note: "429"}, []string{"system: fake said nothing for 0 s: 429"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBook(t)
			b.turn.Agent = "fake"
			b.write(t, func(tx store.Tx) error { return b.Silence(tx, b.turn, c.silence) })
			assert.Equal(t, c.want, b.items(t))
		})
	}
}

func TestEventsAreCut(t *testing.T) {
	b := newBook(t)
	for _, c := range []struct {
		size int
		cut  bool
	}{{domain.MaxEventText, false}, {domain.MaxEventText + 1, true}} {
		b.write(t, func(tx store.Tx) error {
			turn := b.turn
			item, err := b.Message(tx, &turn, "user", strings.Repeat("x", c.size), "note")
			assert.Len(t, item.Content, c.size)
			return err
		})
		list := b.payloads(t)
		added, ok := list[len(list)-1].(domain.MessageAdded)
		require.True(t, ok)
		assert.Equal(t, c.cut, added.Truncated)
		assert.Len(t, added.Text, domain.MaxEventText)
		assert.Equal(t, "note", added.Subtype)
	}
}

func TestTheEndOfAToolCallTellsWhatIsNew(t *testing.T) {
	b := newBook(t)
	short, long := "x", strings.Repeat("x", domain.MaxEventText)
	shown := domain.ToolDetails{Diffs: []domain.Diff{{Path: "/a", OldText: &short, NewText: "y"}}}
	for _, c := range []struct {
		name     string
		end      catalog.ToolCall
		reported *domain.ToolDetails
		cut      bool
	}{
		{"nothing", catalog.ToolCall{}, nil, false},
		{"the same", catalog.ToolCall{Diffs: []domain.Diff{{Path: "/a", OldText: &short, NewText: "y"}}}, nil, false},
		{"another text", catalog.ToolCall{Diffs: []domain.Diff{{Path: "/a", NewText: "y"}}}, &domain.ToolDetails{Diffs: []domain.Diff{{Path: "/a", NewText: "y"}}}, false},
		{"a terminal", catalog.ToolCall{Terminal: "t"}, &domain.ToolDetails{Diffs: shown.Diffs, Terminal: "t"}, false},
		{"more than fits", catalog.ToolCall{Diffs: []domain.Diff{{Path: "/a", NewText: long}}}, nil, true},
	} {
		tool := func(call catalog.ToolCall, ended bool) domain.ToolCallChanged {
			b.write(t, func(tx store.Tx) error {
				turn := b.turn
				call.ToolID = c.name
				return b.Tool(tx, &turn, call, nil, ended)
			})
			list := b.payloads(t)
			return list[len(list)-1].(domain.ToolCallChanged)
		}
		begun := tool(catalog.ToolCall{Tool: "Edit", Diffs: []domain.Diff{{Path: "/a", OldText: &short, NewText: "y"}}}, false)
		assert.Equal(t, &shown, begun.Details, c.name)
		ended := tool(c.end, true)
		assert.Equal(t, c.reported, ended.Details, c.name)
		assert.Equal(t, c.cut, ended.Truncated, c.name)
	}
}

// A background tool call of a completed turn stays open, and fails when the agent ends, also after
// another turn.
func TestAToolCallInTheBackgroundStaysOpen(t *testing.T) {
	b := newBook(t)
	left := []domain.BackgroundTask{{ID: "left", Kind: domain.BackgroundToolCall, Title: "sleep 5"}}
	var next domain.Turn
	b.write(t, func(tx store.Tx) error {
		for _, id := range []string{"left", "lost"} {
			if err := b.Tool(tx, &b.turn, catalog.ToolCall{ToolID: id, Tool: "Bash", Status: "in_progress"}, nil, false); err != nil {
				return err
			}
		}
		if err := tx.PutAgentSession(domain.AgentSessionSeen{Session: b.turn.Session, AgentSession: domain.AgentSession{Background: left}}); err != nil {
			return err
		}
		b.turn.State = domain.Completed
		if err := b.End(tx, &b.turn); err != nil {
			return err
		}
		next = domain.Turn{UUID: "next", HumanLayerSession: "next", HumanLayerRun: "next", Session: b.turn.Session, Parent: b.turn.ID, State: domain.Completed, Created: tx.Now(), Active: tx.Now()}
		return tx.InsertTurn(&next)
	})
	status := func(id string) string {
		t.Helper()
		item, err := b.store.ToolItem(t.Context(), b.turn.ID, id)
		require.NoError(t, err)
		return item.Status + " " + item.Result
	}
	assert.Equal(t, "in_progress ", status("left"))
	assert.Equal(t, "failed the turn ended before this did", status("lost"))
	b.write(t, func(tx store.Tx) error { return b.BackgroundCut(tx, next, left) })
	assert.Equal(t, "failed the agent ended before this did", status("left"))
}

// The _meta of a tool call is merged member by member, up to its limit.
func TestMetaOfToolCalls(t *testing.T) {
	b := newBook(t)
	for _, meta := range []string{`{"a":1,"b":{"c":2}}`, `{"a":null,"d":3}`, `{"e":"` + strings.Repeat("x", catalog.MaxMeta) + `"}`} {
		b.write(t, func(tx store.Tx) error {
			return b.Tool(tx, &b.turn, catalog.ToolCall{ToolID: "c", Title: "x", Meta: json.RawMessage(meta)}, nil, false)
		})
	}
	b.write(t, func(tx store.Tx) error {
		item, err := tx.ToolItem(t.Context(), b.turn.ID, "c")
		assert.JSONEq(t, `{"b":{"c":2},"d":3}`, string(item.Data.(domain.ToolDetails).Meta))
		return err
	})
}

// Late text is added to the last message of an ended turn, or else becomes a separate message. An
// active turn takes it like any other text.
func TestLateTextAfterATurn(t *testing.T) {
	for name, c := range map[string]struct {
		before func(*testing.T, *book)
		late   catalog.ContentDelta
		think  bool
		want   []string
		result string
	}{
		"to the last message": {func(t *testing.T, b *book) { b.say(t, "m", "one", false) }, catalog.ContentDelta{MessageID: "m", Delta: catalog.Delta{Text: ", two"}}, false, []string{"message: one, two"}, "one, two"},
		"behind a tool call": {func(t *testing.T, b *book) {
			b.say(t, "m", "one", false)
			b.write(t, func(tx store.Tx) error {
				return b.Tool(tx, &b.turn, catalog.ToolCall{ToolID: "t", Tool: "Bash", Status: "completed"}, nil, true)
			})
		}, catalog.ContentDelta{MessageID: "m", Delta: catalog.Delta{Text: "two"}}, false, []string{"message: one", "tool_call: Bash", "message: two"}, "two"},
		"to a thought":                 {func(t *testing.T, b *book) { b.say(t, "m", "hm", true) }, catalog.ContentDelta{Delta: catalog.Delta{Text: "?"}}, true, []string{"thinking: hm?"}, ""},
		"a message behind a thought":   {func(t *testing.T, b *book) { b.say(t, "m", "hm", true) }, catalog.ContentDelta{Delta: catalog.Delta{Text: "so"}}, false, []string{"thinking: hm", "message: so"}, "so"},
		"of a run without a message":   {func(*testing.T, *book) {}, catalog.ContentDelta{Delta: catalog.Delta{Text: "so"}}, false, []string{"message: so"}, "so"},
		"of a sub-agent, not the same": {func(t *testing.T, b *book) { b.say(t, "m", "one", false) }, catalog.ContentDelta{ParentID: "call", Delta: catalog.Delta{Text: "sub"}}, false, []string{"message: one", "message: sub"}, "one"},
		"a long message":               {func(t *testing.T, b *book) { b.say(t, "m", strings.Repeat("x", 1<<20), false) }, catalog.ContentDelta{Delta: catalog.Delta{Text: "y"}}, false, []string{"message: " + strings.Repeat("x", 1<<20), "message: y"}, "y"},
		"no text":                      {func(t *testing.T, b *book) { b.say(t, "m", "one", false) }, catalog.ContentDelta{}, false, []string{"message: one"}, "one"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBook(t)
			c.before(t, b)
			turn := b.end(t)
			b.write(t, func(tx store.Tx) error {
				turn.State = domain.Interrupted
				if err := tx.UpdateTurn(turn); err != nil {
					return err
				}
				return b.Late(tx, turn, c.late, c.think, func(text string) string { return text })
			})
			assert.Equal(t, c.want, b.items(t))
			open, err := b.store.HasOpenDeltas(t.Context(), b.turn.ID)
			require.NoError(t, err)
			assert.False(t, open)
			now, err := b.store.Turn(t.Context(), b.turn.ID)
			require.NoError(t, err)
			assert.Equal(t, c.result, now.Result)
			assert.Equal(t, strings.Count(strings.Join(c.want, "\n"), "message: "), now.Messages)
		})
	}
	b := newBook(t)
	b.say(t, "m", "one", false)
	b.write(t, func(tx store.Tx) error {
		return b.Late(tx, b.turn, catalog.ContentDelta{MessageID: "m", Delta: catalog.Delta{Text: ", two"}}, false, strings.ToUpper)
	})
	assert.Empty(t, b.items(t), "the message is open")
	b.end(t)
	assert.Equal(t, []string{"message: one, TWO"}, b.items(t))
}

// The item of a message has the merged _meta of its pieces, up to a limit: also while the message
// is open, after a restart, and with late text.
func TestMetaOfAMessageIsKept(t *testing.T) {
	b := newBook(t)
	piece := func(meta string, thought bool) {
		t.Helper()
		b.write(t, func(tx store.Tx) error {
			return b.Delta(tx, b.turn.ID, catalog.ContentDelta{Delta: catalog.Delta{Text: "x"}, Meta: json.RawMessage(meta)}, thought)
		})
	}
	meta := func(data domain.ItemData) string {
		if data == nil {
			return ""
		}
		return string(data.(domain.MessageContent).Meta)
	}
	piece(`{"a":1,"b":1}`, false)
	piece(`{"a":1,"b":1}`, false)
	b.reopen()
	piece(`{"b":2,"c":{}}`, false)
	piece(`{"large":"`+strings.Repeat("x", catalog.MaxMeta-20)+`"}`, false)
	open, err := transcript.Open(t.Context(), b.store, b.turn.ID)
	require.NoError(t, err)
	const want = `{"a":1,"b":2,"c":{}}`
	assert.Equal(t, want, meta(open.Data), "what would be more than the limit is left out")
	piece(`{"t":1}`, true)
	b.say(t, "", "plain", false)
	turn := b.end(t)
	turn.State = domain.Completed
	b.write(t, func(tx store.Tx) error {
		if err := tx.UpdateTurn(turn); err != nil {
			return err
		}
		return b.Late(tx, turn, catalog.ContentDelta{Delta: catalog.Delta{Text: " late"}, Meta: json.RawMessage(`{"l":1}`)}, false, strings.Clone)
	})
	items, err := b.store.ItemsOfTurn(t.Context(), b.turn.ID)
	require.NoError(t, err)
	var kept, reported []string
	for _, i := range items {
		kept = append(kept, i.Content+" "+meta(i.Data))
	}
	assert.Equal(t, []string{"xxxx " + want, `x {"t":1}`, `plain late {"l":1}`}, kept)
	for _, p := range b.payloads(t) {
		if m, ok := p.(domain.MessageAdded); ok {
			reported = append(reported, m.Text+" "+string(m.Meta))
		}
	}
	assert.Equal(t, []string{"xxxx " + want, `x {"t":1}`, "plain ", `plain late {"l":1}`}, reported)
}

// An edited tool call shows the input with which it runs, and not the changes that the agent proposed.
func TestToolCallShowsTheEditedInput(t *testing.T) {
	b := newBook(t)
	b.write(t, func(tx store.Tx) error {
		return b.Tool(tx, &b.turn, catalog.ToolCall{
			ToolID: "1", Tool: "Bash", Title: "`echo 1`", Input: json.RawMessage(`{"command":"echo 1"}`), Diffs: []domain.Diff{{Path: "a"}}, Paths: []string{"a"},
		}, nil, false)
	})
	a := domain.Approval{CallID: "1", Input: json.RawMessage(`{"command":"echo 1"}`), UpdatedInput: json.RawMessage(`{"command":"echo 2"}`)}
	b.write(t, func(tx store.Tx) error { return b.EditTool(tx, b.turn, a) })
	items, err := b.store.ItemsOfTurn(t.Context(), b.turn.ID)
	require.NoError(t, err)
	details, _ := items[0].Data.(domain.ToolDetails)
	assert.Equal(t, []any{"`echo 2`", `{"command":"echo 2"}`, 0, []string{"a"}}, []any{items[0].Title, string(items[0].Input), len(details.Diffs), details.Paths})
	list := b.payloads(t)
	changed, _ := list[len(list)-1].(domain.ToolCallChanged)
	assert.Equal(t, []string{"`echo 2`", `{"command":"echo 2"}`}, []string{changed.Title, string(changed.Input)})

	a.CallID = "unknown"
	b.write(t, func(tx store.Tx) error { return b.EditTool(tx, b.turn, a) })
}
