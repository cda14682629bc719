//go:build unix

package turn

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

// onTerminal gives an asker a terminal, and returns a function that types on it.
func onTerminal(t *testing.T, a *asker) (types func(text string)) {
	t.Helper()
	ours := terminalOf(t, a)
	return func(text string) {
		_, err := ours.WriteString(text)
		require.NoError(t, err)
		for got := 0; got < len(text); {
			input := <-a.typed
			got += len(input.Keys)
			a.received(input)
		}
	}
}

// terminalOf gives an asker a terminal, and returns its other end.
func terminalOf(t *testing.T, a *asker) *os.File {
	t.Helper()
	ours, theirs, err := pty.Open()
	require.NoError(t, err)
	t.Cleanup(func() {
		a.release()
		theirs.Close()
		ours.Close()
	})
	a.serve(theirs)
	a.edits = true
	return ours
}

// A line that the user is typing appears again when the question is repeated below progress of the
// agent. Its end answers the question.
func TestUnfinishedLineSurvivesProgress(t *testing.T) {
	a, q, side := asking(hubclient.Approval{Approval: protocol.Approval{ApprovalID: "12345678-9", Type: domain.FunctionCall, ToolName: "Bash", ToolInput: json.RawMessage(`{"command":"ls"}`)}})
	types := onTerminal(t, a)
	a.view.session, a.waiting, a.expected = protocol.Turn{ID: "s"}, []asked{q}, aReason
	a.prompt()
	types("use gid")
	types("\x7ft ")
	assert.Contains(t, side.String(), "Why not? (Return alone goes back) use gid")
	side.Reset()
	a.view.show(happened(t, protocol.KindItemChanged, members{"type": "tool_call", "key": "a", "title": "Read x"}))
	a.promptAgain()
	assert.Equal(t, "\n● Read x\n? $ ls\nWhy not? (Return alone goes back) use git ", side.String())
	side.Reset()
	line, ok := a.received(term.Typed{Keys: []byte("log\r")})
	assert.True(t, ok)
	assert.Equal(t, typed{text: "use git log"}, line)
	assert.Equal(t, "log\n", side.String())
	assert.Empty(t, a.unfinished.Text())
}

// An answer from another client ends a line, even in the middle of a pasted text. The prompt box offers all of
// it as the next prompt.
func TestUnfinishedLineIsKeptForThePrompt(t *testing.T) {
	a, q, _ := asking(hubclient.Approval{Approval: protocol.Approval{ApprovalID: "12345678-9", Type: domain.FunctionCall, ToolName: "Bash"}})
	types := onTerminal(t, a)
	a.keeps, a.waiting, a.expected, a.seen = true, []asked{q}, aReason, map[string]bool{"12345678-9": true}
	a.talk = &Talk{box: term.NewBox(nil)}
	a.prompt()
	types("use \x1b[200~git\nlog\x1b[201~")
	types("\x1b[200~and")
	a.resolved(&protocol.ApprovalClosedEvent{ApprovalID: "12345678-9", Status: "denied", DecidedBy: "user"})
	assert.False(t, a.asks())
	a.received(term.Typed{Keys: []byte(" more\x1b[201~")})
	assert.Equal(t, []term.Key{{Pasted: "use git\nlog"}, {Pasted: "and more"}}, a.early)
}

// A released terminal has its modes again, and what the user types stays there.
func TestReleasedTerminalIsUnchanged(t *testing.T) {
	a, q, _ := asking(hubclient.Approval{Approval: protocol.Approval{ApprovalID: "12345678-9", Type: domain.FunctionCall, ToolName: "Bash"}})
	types := onTerminal(t, a)
	before := term.ReadModes(a.terminal)
	a.waiting = []asked{q}
	for _, leave := range []func(){a.release, func() { a.expected = aReason; a.prompt(); a.release() }, func() { a.listen(aSecret); a.release() }, func() { a.hide(); a.release() }} {
		a.expected = anAnswer
		a.prompt()
		types("x")
		assert.NotEqual(t, before, term.ReadModes(a.terminal))
		leave()
		assert.Equal(t, before, term.ReadModes(a.terminal))
	}
}

// What the user types ahead in a form is for its next fields. The last look at the values takes a new key.
func TestFormTakesWhatIsTypedAhead(t *testing.T) {
	a, q, side := asking(aForm)
	ours := terminalOf(t, a)
	a.keeps, a.waiting = true, []asked{q}
	a.prompt()
	types := func(keys string) { assert.NoError(t, a.input(t.Context(), term.Typed{Keys: []byte(keys)})) }
	types("red\r7\rno")
	assert.Contains(t, side.String(), "count (a whole number of at least 1): 7\n")
	assert.Equal(t, []any{2, "no"}, []any{a.filling.at, a.unfinished.Text()}, "the third field has begun")
	types("te\ry")
	assert.Equal(t, "Send this? [y] Send, [b] Back, [n] Decline, [c] Cancel: ", a.promptFor(q))
	assert.Len(t, a.waiting, 1, "the user has not seen the values yet")
	assert.Equal(t, "y", textOf(a.early))
	assert.Equal(t, []string{`"red"`, `7`, `"note"`}, []string{string(a.filling.values["colour"]), string(a.filling.values["count"]), string(a.filling.values["note"])})

	// An invalid value takes no other one from what was typed ahead.
	types("b")
	types(":back\rmany\r9\r")
	assert.Equal(t, []any{1, `7`, ""}, []any{a.filling.at, string(a.filling.values["count"]), a.unfinished.Text()})

	// Keys in the terminal stay there for the next field.
	_, err := ours.WriteString("x\r")
	require.NoError(t, err)
	types("8\r")
	select {
	case input := <-a.typed:
		assert.NoError(t, a.input(t.Context(), input))
	case <-time.After(10 * time.Second):
		assert.Fail(t, "the keys are lost")
	}
	assert.Equal(t, `"x"`, string(a.filling.values["note"]))
}
