//go:build unix

package main_test

import (
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
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

// An editor or CI may hand down a pipe to which nobody writes and which nobody closes:
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
	<-p.ended
	return string(out), p.cmd.ProcessState.ExitCode()
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
				editor := s.start()
				editor.subscribe()
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
			p.sees("please type y, n, t, a, p, a number up to 4 or e")
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
			text, err := os.ReadFile(s.root + "/demo.txt")
			require.NoError(t, err)
			assert.Equal(t, "Turn 1: hello\n", string(text))

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
			_, status = p.ends()
			assert.Equal(t, 130, status)
		})
	}
}

// Whoever is first answers, and what is typed answers nothing else.
func TestPromptAnsweredElsewhere(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	editor := s.start()
	editor.subscribe()
	p := s.prompt(t, "permit:3")
	p.sees("Allow? ")
	asked := editor.await("a question", func(e event) bool { return e.Type == "new_approval" })
	decide := func(e event, decision, comment string) {
		editor.call("sendDecision", object{"approval_id": e.Data.ApprovalID, "decision": decision, "comment": comment}, nil)
	}
	nextQuestion := func(after event) event {
		return editor.await("another question", func(e event) bool { return e.Type == "new_approval" && e.Seq > after.Seq })
	}
	decide(asked, "approve", "from afar")
	p.sees("approved elsewhere: from afar")
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
	decide(last, "deny", "too late")
	p.sees("denied elsewhere: too late")
	p.sees("completed")
	_, status := p.ends()
	assert.Zero(t, status)
	editor.leave()
}

// A prompt goes on when its hub dies: in its own process where no other takes the
// hub's place, and in the next hub where one does.
func TestPromptWhoseHubDies(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	editor := s.start()
	require.NotZero(t, hubOf(t, editor))
	first := s.prompt(t, "quiet permit:1")
	first.sees("Allow? ")
	second := s.prompt(t, "quiet permit:1")
	second.sees("Allow? ")
	editor.crash()
	for _, p := range []*prompting{first, second} {
		p.sees("the hub has gone; going on with another one, or in this process")
		p.sees("· agent scripted · ")
		p.sees("Allow? ")
	}
	holder := s.lockHolder()
	require.Contains(t, []int{first.cmd.Process.Pid, second.cmd.Process.Pid}, holder)
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
}

// C-c in one shell ends the hub that its process is, not what runs in another shell.
func TestPromptWhoseHubIsInterrupted(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	first := s.prompt(t, "quiet permit:1")
	first.sees("Allow? ")
	second := s.prompt(t, "quiet permit:1")
	second.sees("Allow? ")
	require.NoError(t, first.cmd.Process.Signal(os.Interrupt))
	first.sees("others have joined and have agents at work")
	require.NoError(t, first.cmd.Process.Signal(os.Interrupt))
	_, status := first.ends()
	assert.Equal(t, 130, status)
	second.sees("the hub has gone")
	second.sees("Allow? ")
	assert.Equal(t, second.cmd.Process.Pid, s.lockHolder())
	second.types("y")
	second.sees("not taken")
	second.sees("Allow? ")
	second.types("y")
	second.sees("completed")
	_, status = second.ends()
	assert.Zero(t, status)
}

// Whoever stops a hub stops what runs there.
func TestPromptWhoseHubIsStopped(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.daemon()
	p := s.prompt(t, "quiet hang")
	p.sees("task-0001")
	_, err := s.command("daemon", "stop", "--force")
	require.NoError(t, err)
	_, status := p.ends()
	assert.Equal(t, 1, status)
	assert.Zero(t, s.lockHolder(), "no other hub was begun")
	assert.Regexp(t, "the hub has gone; what it ran can be continued|interrupted", p.tty.printed.String())
	assert.NotContains(t, p.tty.printed.String(), "going on")
}

// A prompt that is the hub has room for others, and lets them finish.
func TestPromptsTogether(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	first := s.prompt(t, "quiet permit:1")
	first.sees("Allow? ")
	second := s.prompt(t, "--yes", "hello")
	second.sees("task-0002")
	_, status := second.ends()
	assert.Zero(t, status)

	editor := s.start()
	editor.subscribe()
	require.Equal(t, first.cmd.Process.Pid, hubOf(t, editor))
	told := editor.launch("quiet permit:1", "")
	question := editor.awaitQuestion(told.SessionID)
	first.types("y")
	first.sees("completed")
	first.sees("others have joined and have agents at work")
	editor.call("sendDecision", object{"approval_id": question.Data.ApprovalID, "decision": "approve"}, nil)
	assert.Equal(t, "completed", editor.awaitEnd(told.SessionID).Data.State)
	_, status = first.ends()
	assert.Zero(t, status)
	require.Eventually(t, func() bool { return hubOf(t, editor) == editor.cmd.Process.Pid }, watchdog/3, pollEvery, "then the editor's process is the hub")

	// Or not, if whoever waits says so.
	first = s.prompt(t, "quiet")
	_, status = first.ends()
	assert.Zero(t, status, "a hub is elsewhere now")
	editor.leave()
	first = s.prompt(t, "quiet permit:1")
	first.sees("Allow? ")
	editor = s.start()
	editor.subscribe()
	told = editor.launch("quiet permit:1", "")
	editor.awaitQuestion(told.SessionID)
	first.types("y")
	first.sees("others have joined")
	watch := startStopwatch(t)
	require.NoError(t, first.cmd.Process.Signal(syscall.SIGTERM))
	_, status = first.ends()
	assert.Zero(t, status)
	first.requireGoneWithin(goneAfter+raceSlack, watch)
	assert.Equal(t, "interrupted", editor.awaitEnd(told.SessionID).Data.State)
	editor.leave()
}
