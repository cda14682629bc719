//go:build unix

package main_test

import (
	"os"
	"strings"
	"testing"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/term"
)

// presses types keys, without Return.
func (p *prompting) presses(keys string) {
	p.t.Helper()
	_, err := p.tty.ours.WriteString(keys)
	require.NoError(p.t, err)
}

// A question is answered by one key, which is shown, and the terminal is afterwards
// as it was.
func TestAKeyAnswersAQuestion(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := s.prompt(t, "slow", "permit:5")
	was, err := term.GetState(int(p.tty.theirs.Fd()))
	require.NoError(t, err)
	p.sees("task-0001")
	p.presses("y") // before anything is asked
	p.sees("Allow? ")
	p.presses("x")
	p.sees("please type y, n")
	p.sees("Allow? ")
	p.presses("y")
	p.sees(": y\n")
	p.sees("Allow? ")
	p.presses("n") // denies at once
	p.sees("Allow? ")
	p.presses("t")
	p.sees("Why not? ")
	p.types("because")
	p.sees("Allow? ")
	p.presses("\x1b[A")
	p.sees("please type y, n")
	p.sees("Allow? ")
	p.presses("y")
	p.sees("Allow? ")
	p.presses("\x04") // the end of the input
	_, status := p.ends()
	assert.Equal(t, 0, status, p.tty.printed)
	now, err := term.GetState(int(p.tty.theirs.Fd()))
	require.NoError(t, err)
	assert.Equal(t, was, now)
	assert.Equal(t, 7, strings.Count(p.tty.printed.String(), "Allow? "), p.tty.printed)
}

// Keys that are typed while the agent talks do not appear in its words.
func TestKeysDoNotAppearInTheAgentsWords(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	w := s.window(80, 24, "prompt", "quiet", "stuck")
	w.shows("● ")
	w.types("what is this")
	require.NoError(t, w.cmd.Process.Signal(os.Interrupt)) // C-c discards what was typed
	w.shows("interrupting")
	assert.Equal(t, 130, w.leaves())
	words, _, _ := strings.Cut(w.printed.String(), "interrupting")
	assert.NotContains(t, words, "what is this")
	ours, fresh, err := pty.Open()
	require.NoError(t, err)
	defer func() { ours.Close(); fresh.Close() }()
	before, err := term.GetState(int(fresh.Fd()))
	require.NoError(t, err)
	after, err := term.GetState(int(w.keys.Fd()))
	require.NoError(t, err)
	assert.Equal(t, before, after, "the echo is on again")
}

// One of the answers that a question offers is chosen by one key, too.
func TestAKeyChooses(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := s.prompt(t, "quiet ask")
	p.sees("Choose 1 to 3, . for none of them: ")
	p.presses("x")
	p.sees("please type 1 to 3, . for none of them")
	p.sees("Choose 1 to 3, . for none of them: ")
	p.presses("2")
	said, status := p.ends()
	assert.Equal(t, 0, status, p.tty.printed)
	assert.Contains(t, said, "green")

	editor := s.start()
	editor.subscribe()
	session := editor.launch("quiet ask", "scripted").SessionID
	editor.awaitQuestion(session)
	p = s.onTerminal(t, 60, "approvals", "--once")
	p.sees("Choose 1 to 3, . for none of them, [s]kip, [q]uit: ")
	p.presses("s")
	p.sees("left open")
	assert.Equal(t, 0, p.status())
	p = s.onTerminal(t, 60, "approvals")
	p.sees("[q]uit: ")
	p.presses("3")
	p.sees("waiting for the next")
	editor.awaitEnd(session)
	assert.Contains(t, editor.conversation(session), "blue")
	require.NoError(t, p.cmd.Process.Signal(os.Interrupt))
	assert.Equal(t, 130, p.status())
	editor.leave()
}

// The input of a tool is changed in the user's editor, shown, and asked again.
func TestAnEditorChangesTheInput(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.env = append(s.env, `EDITOR=sh -c 'grep -q Gone "$0" && echo "{" >"$0" || sed s/Turn/Gone/ "$0" >"$0.new" && test -s "$0.new" && mv "$0.new" "$0"; true'`)
	p := s.prompt(t, "hello")
	p.sees("[e]dit: ")
	p.presses("e")
	p.sees("| Gone 1: hello\n")
	p.sees("Allow it with this input? [y]es, [n]o, [t]ell why not, [e]dit again: ")
	p.presses("e")
	p.sees("that is no JSON object")
	p.sees("[e]dit: ")
	p.presses("n")
	_, status := p.ends()
	assert.Equal(t, 0, status, p.tty.printed)

	s.env = append(s.env, "EDITOR=sed -i.old s/Turn/Gone/")
	p = s.prompt(t, "hello")
	p.sees("[e]dit: ")
	p.presses("e")
	p.sees("[e]dit again: ")
	p.presses("y")
	p.sees("+Gone 1: hello")
	_, status = p.ends()
	assert.Equal(t, 0, status, p.tty.printed)

	for editor, says := range map[string]string{"true": "the input stays as it is", "false": "the editor: false: exit status 1"} {
		s.env = append(s.env, "EDITOR="+editor)
		p = s.prompt(t, "hello")
		p.sees("[e]dit: ")
		p.presses("e")
		p.sees(says)
		p.sees("[e]dit: ")
		p.presses("y")
		_, status = p.ends()
		assert.Equal(t, 0, status, p.tty.printed)
	}
}
