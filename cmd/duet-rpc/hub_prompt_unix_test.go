//go:build unix

package main_test

import (
	"io"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A prompting is duet-rpc prompt on a terminal.
type prompting struct {
	*process
	tty  terminal
	read int // of what is printed there
}

// prompt begins a prompt in the site, as a person would.
func (s *site) prompt(t *testing.T, args ...string) *prompting {
	return s.shell(t, append([]string{"prompt"}, args...)...)
}

// shell begins a command on a terminal.
func (s *site) shell(t *testing.T, args ...string) *prompting {
	tty := openTerminal(t)
	l := s.launch()
	l.args = append(args, l.args...)
	l.stdin, l.stderr = tty.theirs, tty.theirs
	return &prompting{process: l.start(t), tty: tty}
}

// An editor or CI may hand down a pipe that gets no data and is never closed:
// a prompt in arguments does not wait for it for ever.
func TestAPromptGoesWithoutASilentPipe(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	read, write, err := os.Pipe()
	require.NoError(t, err)
	defer read.Close()
	defer write.Close()
	l := s.launch()
	l.args = append([]string{"prompt", "--json", "quiet hello"}, l.args...)
	l.stdin = read
	p := l.start(t)
	out, err := io.ReadAll(p.stdout)
	require.NoError(t, err)
	<-p.ended
	assert.Zero(t, p.cmd.ProcessState.ExitCode())
	assert.Contains(t, string(out), "You asked: quiet hello")
	assert.Contains(t, p.log.String(), "the prompt goes without it")
}

// sees waits until a text is printed, behind what was waited for before.
func (p *prompting) sees(text string) {
	p.t.Helper()
	p.tty.printed.Await(p.t, func(printed string) bool {
		i := strings.Index(printed[p.read:], text)
		if i >= 0 {
			p.read += i + len(text)
		}
		return i >= 0
	}, strconv.Quote(text))
}

// types types a line.
func (p *prompting) types(line string) {
	p.t.Helper()
	_, err := p.tty.ours.WriteString(line + "\n")
	require.NoError(p.t, err)
}

// ends waits for the end, and returns standard output and the exit status.
func (p *prompting) ends() (said string, status int) {
	p.t.Helper()
	out, err := io.ReadAll(p.stdout)
	require.NoError(p.t, err)
	return string(out), p.status()
}

// The same prompt in a process of its own, and in an editor's.
func TestPromptOnATerminal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		editor bool
	}{{"its own hub", false}, {"an editor's hub", true}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			if c.editor {
				editor := s.open()
				require.NotZero(t, hubOf(t, editor))
				defer func() {
					editor.awaitEnd(editor.await("a session", func(e event) bool { return e.Type == "session_status_changed" }).Data.SessionID)
					editor.leave()
				}()
			}
			p := s.prompt(t, "hello")
			p.sees("task-0001 · agent scripted · " + s.root)
			p.sees("? Write demo.txt")
			p.sees("+Turn 1: hello")
			p.sees("Allow? ")
			p.types("maybe")
			p.sees("please type y, n, t, a, p or e")
			p.sees("Allow? ") // what is typed before is thrown away
			p.types("y")
			p.sees("completed; go on with: duet-rpc prompt --continue task-0001")
			said, status := p.ends()
			assert.Zero(t, status)
			assert.Contains(t, said, "I wrote demo.txt")
			assert.NotContains(t, p.tty.printed.String(), "elsewhere")

			p = s.prompt(t, "--continue", "last", "more")
			p.sees("Allow? ")
			p.types("t")
			p.sees("Why not? ")
			p.types("not now")
			said, status = p.ends()
			assert.Zero(t, status)
			assert.Contains(t, said, "Nothing was changed")
			text := readFile(t, s.root+"/demo.txt")
			assert.Equal(t, "Turn 1: hello\n", text)

			// C-c interrupts.
			p = s.prompt(t, "hello")
			p.sees("[e]dit: ")
			require.NoError(t, p.cmd.Process.Signal(os.Interrupt))
			assert.Regexp(t, "^\n[^\n]*$", p.screen("interrupting; press C-c again to end at once"), "on a line of its own")
			p.sees("interrupted; go on with")
			_, status = p.ends()
			assert.Equal(t, 130, status)

			// And twice ends at once.
			p = s.prompt(t, "quiet tools:1 hang")
			p.sees("✓ Bash") // it is at work, else it ends with the first
			require.NoError(t, p.cmd.Process.Signal(os.Interrupt))
			p.sees("interrupting")
			require.NoError(t, p.cmd.Process.Signal(os.Interrupt))
			p.sees("left before its end: duet-rpc session show task-0004 shows its time, tokens and cost")
			_, status = p.ends()
			assert.Equal(t, 130, status)
		})
	}
}

// The first answer counts, and typed text answers nothing else.
func TestPromptAnsweredElsewhere(t *testing.T) {
	t.Parallel()
	s, editor := newEditorSite(t)
	p := s.prompt(t, "permit:3")
	p.sees("Allow? ")
	asked := editor.await("a question", func(e event) bool { return e.Type == "new_approval" })
	decide := func(e event, decision, comment, client string) {
		editor.call("sendDecision", object{"approval_id": e.Data.ApprovalID, "decision": decision, "comment": comment, "client": client}, nil)
	}
	nextQuestion := func(after event) event {
		return editor.await("another question", func(e event) bool { return e.Type == "new_approval" && e.Seq > after.Seq })
	}
	decide(asked, "approve", "from afar", "")
	p.sees("approved in another client: from afar")
	asked = nextQuestion(asked)
	p.sees("Allow? ")
	p.types("y") // it may have been meant for the first one
	p.sees("not taken")
	p.sees("Allow? ")
	p.types("y")
	last := nextQuestion(asked)
	p.sees("Allow? ")
	p.types("t")
	p.sees("Why not? ")
	decide(last, "deny", "too late", "VS Code")
	p.sees("denied in VS Code: too late")
	p.sees("completed")
	_, status := p.ends()
	assert.Zero(t, status)
	editor.leave()
}

// A prompt goes on with the next hub when its hub dies.
func TestPromptWhoseHubDies(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	editor := s.start()
	require.NotZero(t, hubOf(t, editor))
	first := s.prompt(t, "quiet permit:1")
	first.sees("Allow? ")
	second := s.prompt(t, "quiet permit:1")
	second.sees("Allow? ")
	s.crashHub()
	for _, p := range []*prompting{first, second} {
		p.sees("the hub has gone; going on with another one")
		p.sees("· agent scripted · ")
		p.sees("Allow? ")
	}
	for _, p := range []*prompting{first, second} {
		p.types("y") // it may have been meant for the question before
		p.sees("not taken")
		p.sees("Allow? ")
		p.types("y")
		p.sees("completed")
	}
	for _, p := range []*prompting{first, second} {
		_, status := p.ends()
		assert.Zero(t, status)
	}
	editor.leave()
}

// Stopping a hub stops what runs there.
func TestPromptWhoseHubIsStopped(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.daemon()
	p := s.prompt(t, "quiet hang")
	p.sees("task-0001")
	s.run("daemon", "stop", "--force")
	_, status := p.ends()
	assert.Equal(t, 1, status)
	assert.Zero(t, s.lockHolder(), "no other hub was begun")
	assert.Regexp(t, "the hub has gone; what it ran can be continued|interrupted", p.tty.printed.String())
	assert.NotContains(t, p.tty.printed.String(), "going on")
}
