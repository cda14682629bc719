package turn

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/client/eventstream"
	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/server"
)

// happened returns an event of the shown turn.
func happened(t *testing.T, kind string, data map[string]any) eventstream.Event {
	raw, err := json.Marshal(data)
	require.NoError(t, err)
	turn, ok := data["turn_uuid"].(string)
	if !ok {
		turn = "s"
	}
	return eventstream.Event{Kind: kind, TurnUUID: turn, Data: raw}
}

type members = map[string]any

// A part of a file has fewer lines around the change than the diff of the whole file.
func TestAChangeThatAQuestionHasShownIsNotShownAgain(t *testing.T) {
	var out, side bytes.Buffer
	v := NewView(&out, &side, false, false)
	v.propose([]string{"--- a/f\n+++ b/f\n@@ -5 +5 @@\n-e\n+E\n"})
	whole := "--- a/f\n+++ b/f\n@@ -4,3 +4,3 @@\n d\n-e\n+E\n f\n"
	assert.False(t, v.wasProposed(strings.Replace(whole, "-4,3", "-3,3", 1)), "elsewhere")
	assert.False(t, v.wasProposed(whole+"@@ -14 +14 @@\n-n\n+N\n"), "more than that")
	assert.False(t, v.wasProposed(""))
	assert.True(t, v.wasProposed(whole))
	assert.False(t, v.wasProposed(whole), "once")
}

func TestViewShowsEvents(t *testing.T) {
	var out, side bytes.Buffer
	v := NewView(&out, &side, false, false)
	v.session = protocol.Turn{ID: "s"}
	for _, e := range []eventstream.Event{
		happened(t, protocol.KindText, members{"key": "1", "text": "Hel"}),
		happened(t, protocol.KindText, members{"key": "1", "text": "lo"}),
		happened(t, protocol.KindText, members{"key": "x", "text": "of another session", "turn_uuid": "other"}),
		happened(t, protocol.KindItemAdded, members{"type": "message", "role": "assistant", "key": "1", "text": "Hello"}),
		happened(t, protocol.KindItemChanged, members{"type": "tool_call", "key": "a", "title": "Read x", "status": "pending"}),
		happened(t, protocol.KindItemChanged, members{"type": "tool_call", "key": "a", "title": "Read x", "status": "running"}),
		happened(t, protocol.KindItemChanged, members{"type": "tool_call", "key": "b", "tool_name": "Bash"}),
		happened(t, protocol.KindItemChanged, members{"type": "tool_call", "key": "a", "title": "Read x"}),
		happened(t, protocol.KindItemChanged, members{"type": "tool_call", "key": "a", "tool_name": "Read", "status": "failed"}),
		happened(t, protocol.KindItemChanged, members{"type": "tool_call", "key": "c", "tool_name": "Bash", "status": "failed", "refused_by": "mode=plan", "refusal": "it is in plan mode"}),
		happened(t, protocol.KindItemChanged, members{"type": "tool_call", "key": "d", "tool_name": "Bash", "status": "failed", "refused_by": "user", "refusal": "not now"}),
		happened(t, protocol.KindItemAdded, members{"type": "message", "role": "assistant", "key": "2", "text": "It came whole."}),
		happened(t, protocol.KindItemAdded, members{"type": "message", "role": "assistant", "key": "2", "text": "It came whole. And late."}),
		happened(t, protocol.KindPlan, members{"entries": []members{{"content": "one", "status": "completed"}, {"content": "two"}}}),
		happened(t, protocol.KindPlan, members{"entries": []members{{"content": "one", "status": "completed"}, {"content": "two", "status": "in_progress"}}}),
		happened(t, protocol.KindChange, members{"path": "f", "binary": true, "diff": ""}),
		happened(t, protocol.KindTerminalOutput, members{"turn_uuid": "", "data": "a\r\nb\x1b[2J\r\n"}),
		happened(t, protocol.KindAgentError, members{"message": "no\nmore"}),
		happened(t, protocol.KindTurnState, members{"state": "running"}),
	} {
		todo, isOver := v.show(e)
		assert.True(t, todo == nil && !isOver, "%s", e.Data)
	}
	assert.Equal(t, "Hello\nIt came whole.\n And late.\n", out.String())
	assert.Equal(t, `● Read x
● Bash
✗ Read
⊘ Bash — not run, denied by mode=plan: it is in plan mode
⊘ Bash — not run, denied: not now
☑ one
☐ two
▶ two
— f has changed; it is binary
  a
  b<U+001B>[2J
— error: no
  more
`, normal(side.String()))
}

// normal replaces the brackets for UTF-8 locales with the brackets for other locales.
func normal(text string) string {
	return strings.NewReplacer("⟨", "<", "⟩", ">").Replace(text)
}

func TestSilenceIsReportedOnceWithoutTerminal(t *testing.T) {
	var out, side bytes.Buffer
	v := NewView(&out, &side, false, false)
	v.session = protocol.Turn{ID: "s", Agent: "claude"}
	since := time.Now().Add(-7 * time.Second)
	for _, note := range []string{"", "API error 500,\ntrying again", "and again"} {
		v.show(happened(t, protocol.KindAgentSilent, members{"since": since, "note": note}))
	}
	v.show(happened(t, protocol.KindAgentSilent, members{"since": since, "ended": true}))
	v.show(happened(t, protocol.KindAgentSilent, members{"since": time.Now().Add(-31 * time.Minute), "tool_title": "make"}))
	assert.Equal(t, `— claude has said nothing for 7 s
— claude has said nothing for 7 s: API error 500,
  trying again
— claude has said nothing for 31 min, in the middle of: make
`, side.String())
	assert.Empty(t, out.String())
}

// drawing returns a view on a terminal with 45 columns.
func drawing() (*View, *bytes.Buffer) {
	var screen bytes.Buffer
	v := NewView(&screen, &screen, false, false)
	v.session = protocol.Turn{ID: "s", Agent: "claude"}
	v.drawOn(&screen, func() (columns, rows int) { return 45, 24 })
	return v, &screen
}

// printed returns the output since the last call.
func printed(screen *bytes.Buffer) string {
	defer screen.Reset()
	return normal(strings.ReplaceAll(screen.String(), "\x1b", "^"))
}

func TestStatusLineCountsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, screen := drawing()
		v.ticked()
		assert.Empty(t, printed(screen), "no agent works yet")
		ticks, stop := v.work()
		turn := term.Spinner()
		for range 4 {
			<-ticks
			v.ticked()
		}
		assert.True(t, strings.HasSuffix(printed(screen), normal("\r^[J"+turn[4%len(turn)]+" 1 s")))
		v.show(happened(t, protocol.KindItemChanged, members{"type": "tool_call", "key": "a", "title": "make test"}))
		assert.Equal(t, "\r^[J● make test\n", printed(screen))
		<-ticks
		v.ticked()
		assert.Contains(t, printed(screen), " 1 s · make test")
		v.show(happened(t, protocol.KindItemChanged, members{"type": "tool_call", "status": "completed", "key": "a", "title": "make test"}))
		v.show(happened(t, protocol.KindAgentSilent, members{"since": time.Now().Add(-5 * time.Second), "note": "x\ny"}))
		assert.Equal(t, "\r^[J✓ done\n— claude has said nothing for 5 s: x y", printed(screen))
		for range 4 {
			<-ticks
			v.ticked()
		}
		assert.Equal(t, "\r^[J— claude has said nothing for 6 s: x y", printed(screen), "the view redraws no unchanged line")
		v.show(happened(t, protocol.KindAgentSilent, members{"since": time.Now().Add(-7 * time.Second), "note": "much too long for a line"}))
		assert.Equal(t, "\r^[J— claude has said nothing for 7 s: much too\n  long for a line", printed(screen))
		v.show(happened(t, protocol.KindAgentSilent, members{"since": time.Now(), "ended": true}))
		v.show(happened(t, protocol.KindText, members{"key": "1", "text": "Hello"}))
		assert.Equal(t, "\r^[1A^[J"+turn[9%len(turn)]+" 2 s\r^[JHello", normal(printed(screen)))
		v.show(happened(t, protocol.KindTurnState, members{"state": "interrupting"}))
		stop()
		assert.Equal(t, "\n", printed(screen))
		v.ticked()
		assert.Empty(t, printed(screen))
	})
}

// The view renders complete blocks, and shows an incomplete block below them in raw form.
func TestTerminalRendersMarkdown(t *testing.T) {
	v, screen := drawing()
	v.render()
	say := func(text string) string {
		v.show(happened(t, protocol.KindText, members{"key": "1", "text": text}))
		return printed(screen)
	}
	assert.Equal(t, "Some **bo", say("Some **bo"))
	assert.Equal(t, "ld**", say("ld**"), "the view writes only the new text")
	assert.Equal(t, "\r^[JSome ^[1mbold^[0m\n", say("\n\n"))
	assert.Equal(t, "\n- on", say("- on"))
	assert.Equal(t, "e\n\x60x", strings.ReplaceAll(say("e\n`x"), "`", "\x60"))
	v.Note("a note")
	assert.Equal(t, "\r^[2A^[J\n• one\n  `x\n— a note\n", strings.ReplaceAll(printed(screen), "^[J\n•", "^[J\n•"), "a note completes the block above it")
	assert.Equal(t, "y` z", say("y` z"))
	v.show(happened(t, protocol.KindItemAdded, members{"type": "message", "role": "assistant", "key": "1", "text": "…"}))
	assert.Equal(t, "\r^[Jy` z\n", printed(screen))
	v.show(happened(t, protocol.KindItemAdded, members{"type": "message", "role": "assistant", "key": "2", "text": "# \x1b[2JWhole"}))
	assert.Equal(t, "# <U+001B>[2JWhole\r^[J^[1;4m<U+001B>[2JWhole^[0m\n", printed(screen))
}

// An event has only the beginning of a long result. Its last line must not look like the end
// of the result.
func TestTruncatedResultSaysHowToReadAll(t *testing.T) {
	var side bytes.Buffer
	v := NewView(&side, &side, true, false)
	v.session = protocol.Turn{ID: "s", Name: "1.1"}
	for _, result := range []string{strings.Repeat("line\n", domain.MaxEventText/5), "1\n2\n3"} { // in the second, the input is too long
		v.show(happened(t, protocol.KindItemChanged, members{"type": "tool_call", "status": "completed", "title": "T", "result": result, "truncated": true}))
	}
	assert.Equal(t, "✓ T\n  line\n  line\n  line\n  line\n  … the rest is too long to show here: duet-rpc session show 1.1\n✓ T\n  1\n  2\n  3\n", normal(side.String()))
}

func TestResultShowsFirstAndLastLines(t *testing.T) {
	var side bytes.Buffer
	v := NewView(&side, &side, true, false)
	v.session = protocol.Turn{ID: "s"}
	for _, result := range []string{"", "one\n", "1\n2\n3\n4\n5\n6\n7", "1\n2\n3\n4\n5\n6\n7\n\x1b[1m8\x1b[0m\x1b[2J\n", "10%\r100%\n" + strings.Repeat("x", 500)} {
		v.show(happened(t, protocol.KindItemChanged, members{"type": "tool_call", "status": "completed", "title": "T", "result": result}))
	}
	assert.Equal(t, "✓ T\n✓ T\n  one\n✓ T\n  1\n  2\n  3\n  4\n  5\n  6\n  7\n✓ T\n  1\n  2\n  3\n  4\n  … 2 more lines\n  7\n  8<U+001B>[2J\n✓ T\n  100%\n  "+strings.Repeat("x", 199)+"…\n", normal(side.String()))
}

func TestEndShowsUsage(t *testing.T) {
	var side bytes.Buffer
	v := NewView(&side, &side, true, false)
	v.End(protocol.Turn{Name: "1.1", Session: 1, State: "completed", DurationMS: new(int64(125_300)), TotalTokens: new(int64(12345)), CostUSD: new(0.0213)})
	v.End(protocol.Turn{Name: "2.1", Session: 2, State: "completed"})
	assert.Equal(t, `— 2 min 5 s · 12,345 tokens · $0.0213
— completed; go on with: duet-rpc prompt --continue 1 "…"
— completed; go on with: duet-rpc prompt --continue 2 "…"
`, side.String())
}

// A narrow terminal shows the whole reason and duration of an agent's silence.
func TestRetryFitsOnNarrowTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, screen := drawing()
		v.drawOn(screen, func() (columns, rows int) { return 60, 24 })
		_, stop := v.work()
		silent := func(tool, note string) string {
			v.show(happened(t, protocol.KindAgentSilent, members{"since": time.Now().Add(-95 * time.Second), "tool_title": tool, "note": note}))
			drawn := strings.Split(printed(screen), "^[J")
			return drawn[len(drawn)-1]
		}
		assert.Equal(t, `— claude has said nothing for 95 s: overloaded. Retrying in
  8 s (attempt 3 of 10)`, silent("", "overloaded. Retrying in 8 s (attempt 3 of 10)"))
		assert.Equal(t, `— claude has said nothing for 95 s, in the middle of: go
  test ./... -run TestEverything -coun…: Retrying in 8 s`, silent("go test ./... -run TestEverything -count=1 -timeout 10m -v", "Retrying in 8 s"))
		assert.Equal(t, `— claude has said nothing for 95 s: API error 529 with many
  words with many words with many words with many words
… words with many words with many words with many words
  with many words with many words. Retrying in 8 s`, silent("", "API error 529"+strings.Repeat(" with many words", 20)+". Retrying in 8 s"))
		stop()
	})
}

// Each turn has its closing line, also before a following turn.
func TestEachTurnShowsUsage(t *testing.T) {
	var side bytes.Buffer
	v := NewView(&side, &side, true, false)
	one := protocol.Turn{ID: "1", Name: "1.1", Session: 1, State: "cancelled", DurationMS: new(int64(1_300)), CostUSD: new(1.5)}
	v.Spent(one)
	v.Spent(one)
	v.End(protocol.Turn{ID: "2", Name: "2.1", Session: 2, State: "timed_out", Error: "too long", DurationMS: new(int64(2_300))})
	v.Spent(protocol.Turn{ID: "2", DurationMS: new(int64(2_300))})
	assert.Equal(t, `— 1.3 s · $1.50
— 2.3 s
— timed out: too long; go on with: duet-rpc prompt --continue 2 "…"
`, side.String())
}

func TestMeaningOfEvents(t *testing.T) {
	var out bytes.Buffer
	v := NewView(&out, &out, false, true)
	v.session = protocol.Turn{ID: "s"}
	for _, step := range []struct {
		kind   string
		data   members
		todo   any
		isOver bool
	}{
		{protocol.KindApprovalOpened, members{"approval": "1"}, &protocol.ApprovalOpenedEvent{}, false},
		{protocol.KindApprovalClosed, members{"approval": "1"}, &protocol.ApprovalClosedEvent{}, false},
		{protocol.KindTurnState, members{"state": "running"}, nil, false},
		{protocol.KindTurnState, members{"state": "timed_out"}, nil, true},
		{protocol.KindTurnState, members{"state": "completed", "turn_uuid": "other"}, nil, false},
	} {
		todo, isOver := v.show(happened(t, step.kind, step.data))
		assert.IsType(t, step.todo, todo, step.kind)
		assert.Equal(t, step.isOver, isOver, step.data)
	}
	assert.Equal(t, 4, bytes.Count(out.Bytes(), []byte("\n")), "an event of the session is a line of JSON: %s", out.String())
}

// A starting command looks like in a shell, and the question about it does not repeat it.
func TestQuestionFollowsItsCommand(t *testing.T) {
	call := happened(t, protocol.KindItemChanged, members{"type": "tool_call", "key": "a", "tool_name": "Bash", "title": "Tests", "tool_input": members{"command": "make test"}})
	q := hubclient.Approval{Approval: protocol.Approval{ApprovalID: "12345678-9", Type: domain.FunctionCall, ToolName: "Bash", Title: "Tests", ToolInput: json.RawMessage(`{"command":"make test"}`)}}
	for _, c := range []struct {
		name    string
		between []eventstream.Event
		command string
		want    string
	}{
		{"at once", nil, "make test", "$ make test\n  Tests\nAllow? "},
		{"below other text", []eventstream.Event{textDelta(t, "Hello\n")}, "make test", "$ make test\n  Tests\nHello\n? $ make test\n  Tests\nAllow? "},
		{"about another one", nil, "make", "$ make test\n  Tests\n? $ make\n  Tests\nAllow? "},
	} {
		a, _, side := asking(q)
		q.ToolInput, _ = json.Marshal(members{"command": c.command})
		a.view.session.ID = "s"
		for _, e := range append([]eventstream.Event{call}, c.between...) {
			a.view.show(e)
		}
		a.show(asked{Approval: q, dir: "/", sheet: Sheet(q, "/")})
		a.view.ask(nil, "Allow? ")
		assert.Equal(t, c.want, side.String(), c.name)
	}
}

// The screen has the command or the file of a tool call once: its start, its question and its end say it
// together, unless something else stands between. The user's denial is not repeated.
func TestToolCallIsSaidOnce(t *testing.T) {
	tool := func(more members) members {
		call := members{"type": "tool_call", "key": "c", "tool_name": "Write", "title": "Write x"}
		maps.Copy(call, more)
		return call
	}
	question := hubclient.Approval{Approval: protocol.Approval{ApprovalID: "12345678-9", ToolUseID: "c", Type: domain.FunctionCall, ToolName: "Write", Title: "Write x"}}
	const keys = "[y] Allow, [n] Deny, [t] Deny and say why, [?] Keys: "
	begins, ends := tool(nil), tool(members{"status": "completed", "result": "all"})
	refused := tool(members{"status": "failed", "refused_by": "user", "refusal": "denied"})
	between := members{"type": "notice", "text": "Meanwhile"}
	for name, c := range map[string]struct {
		before []members
		key    string // "": there is no question
		after  []members
		want   string
	}{
		"without a question":     {[]members{begins}, "", []members{ends}, "● Write x\n✓ done\n  all\n"},
		"allowed":                {[]members{begins}, "y", []members{ends}, "● Write x\n" + keys + "y\n✓ done\n  all\n"},
		"announced afterwards":   {nil, "y", []members{begins, ends}, "? Write x\n" + keys + "y\n✓ done\n  all\n"},
		"failed":                 {[]members{begins}, "y", []members{tool(members{"status": "failed"})}, "● Write x\n" + keys + "y\n✗ failed\n"},
		"something else between": {[]members{begins}, "", []members{between, ends}, "● Write x\n— Meanwhile\n✓ Write x\n  all\n"},
		"something else before":  {[]members{begins, between}, "y", []members{ends}, "● Write x\n— Meanwhile\n? Write x\n" + keys + "y\n✓ done\n  all\n"},
		"denied":                 {[]members{begins}, "n", []members{refused}, "● Write x\n" + keys + "n\n"},
		"denied long ago":        {[]members{begins}, "n", []members{between, refused}, "● Write x\n" + keys + "n\n— Meanwhile\n"},
		"denied elsewhere":       {[]members{begins}, "elsewhere", []members{refused}, "● Write x\n" + keys + "\n— denied in emacs: not now\n"},
		"denied by a rule":       {[]members{begins}, "", []members{tool(members{"status": "failed", "refused_by": "rule=1"})}, "● Write x\n⊘ not run, denied by rule=1\n"},
	} {
		a, q, side := asking(question)
		a.view.session, a.decided, a.seen = protocol.Turn{ID: "s"}, map[string]bool{}, map[string]bool{q.ApprovalID: true}
		a.hub = decidingHub(t)
		shown := func(list []members) {
			for _, item := range list {
				a.view.show(happened(t, protocol.KindItemChanged, item))
			}
		}
		shown(c.before)
		if c.key != "" {
			a.waiting = []asked{q}
			a.show(q)
			a.prompt()
			a.focus, a.mode = aKey, eachKey
		}
		switch c.key {
		case "":
		case "elsewhere":
			a.resolved(&protocol.ApprovalClosedEvent{ApprovalID: q.ApprovalID, ToolUseID: "c", Status: "denied", DecidedBy: "user", DecidedIn: "emacs", Comment: "not now"})
		default:
			line, ok := a.received(term.Typed{Keys: []byte(c.key)})
			require.True(t, ok)
			a.answered(t.Context(), line)
		}
		shown(c.after)
		assert.Equal(t, c.want, side.String(), name)
	}
}

// decidingHub is a hub that takes each decision.
func decidingHub(t *testing.T) *client.Client {
	t.Helper()
	reg := server.NewRegistry()
	server.Handle(reg, "approval.decide", func(context.Context, json.RawMessage) (map[string]any, error) {
		return map[string]any{"success": true}, nil
	})
	near, far := server.Pipe()
	conn := server.New(reg, server.Options{}).Connect(t.Context(), far, frame.LSP)
	c, err := client.Dial(t.Context(), client.OverTransport(near, frame.LSP))
	require.NoError(t, err)
	t.Cleanup(func() {
		c.Close()
		<-conn.Done()
	})
	return c
}
