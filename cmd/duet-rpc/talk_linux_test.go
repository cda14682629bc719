package main_test

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// talk begins a conversation on a terminal of 80 columns.
func (s *site) talk(t *testing.T, args ...string) *prompting {
	tty := openTerminal(t)
	require.NoError(t, pty.Setsize(tty.ours, &pty.Winsize{Rows: 24, Cols: 80}))
	l := s.launch()
	l.args = append(args, l.args...)
	l.env = append(l.env, "TERM=xterm")
	l.stdin, l.stdout, l.stderr = tty.theirs, tty.theirs, tty.theirs
	return &prompting{process: l.start(t), tty: tty}
}

// keys types keys.
func (p *prompting) keys(keys string) {
	p.t.Helper()
	_, err := p.tty.ours.WriteString(keys)
	require.NoError(p.t, err)
}

// leaves waits for the end after C-d.
func (p *prompting) leaves() {
	p.t.Helper()
	p.keys("\x04")
	p.sees("back with: duet-rpc prompt --continue task-")
	<-p.ended
	assert.Zero(p.t, p.status())
}

// signal sends a signal, such as that of C-c.
func (p *prompting) signal(sig os.Signal) {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(sig))
}

const idleFooter = "RET sends"

func TestAConversationOnATerminal(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := s.talk(t)
	p.sees("/help lists")
	p.sees(idleFooter)

	// A turn with a question, which one key answers.
	p.keys("hello\r")
	p.sees("› hello")
	p.sees("? Write demo.txt")
	p.sees("Allow? ")
	p.keys("y")
	p.sees("I wrote demo.txt")
	p.sees("tokens")
	p.sees(idleFooter)

	// What is sent while the agent works waits, and C-c interrupts the turn only.
	p.keys("quiet tools:1 hang\r")
	p.sees("✓ Bash")
	p.keys("quiet next\r")
	p.sees("⧗ quiet next")
	p.signal(os.Interrupt)
	p.sees("interrupting")
	p.sees("interrupted")
	p.sees("You asked: quiet next")
	p.sees(idleFooter)

	// The history, an edited line, pasted lines.
	p.keys("\x1b[A")
	p.sees("quiet next")
	p.keys("\x17again\x1b[200~\nand again\x1b[201~\r")
	p.sees("You asked: quiet again")
	p.sees("and again")
	p.sees(idleFooter)
	p.leaves()

	// It is one conversation, which prompt -c continues.
	editor := s.start()
	var list struct {
		Sessions []struct {
			Thread string `json:"thread_id"`
		}
	}
	editor.call("listSessions", nil, &list)
	require.Len(t, list.Sessions, 4)
	for _, session := range list.Sessions {
		assert.Equal(t, list.Sessions[0].Thread, session.Thread)
	}
	editor.leave()
	p = s.talk(t, "prompt", "-c", "--mode", "plan")
	p.sees("after task-0004")
	p.sees(idleFooter)
	p.keys("quiet fifth\r")
	p.sees("You asked: quiet fifth")
	p.sees("tokens")
	p.sees("scripted · plan · ")
	p.sees(idleFooter)
	p.leaves()
}

func TestSessionsInOneDirectoryAreWarnedOf(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := s.talk(t, "prompt", "quiet tools:1 hang")
	p.sees("✓ Bash")
	beside := s.talk(t, "prompt", "quiet beside")
	beside.sees("task-0001 works in this directory, too: both may change the same files")
	<-beside.ended
	assert.Zero(t, beside.status())
	p.signal(os.Interrupt)
	<-p.ended
}

func TestCommandsOfAConversation(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := s.talk(t, "prompt", "--agent", "scripted")
	p.sees(idleFooter)
	p.keys("/diff\r")
	p.sees("there is no turn yet")
	p.keys("/mo")
	p.sees("list the agent's models, or choose one")
	p.keys("de pl\t\r") // completes plan
	p.sees("plan · " + idleFooter)
	p.keys("\x1b[Z") // S-TAB goes on to the first mode
	p.sees("scripted · " + idleFooter)
	p.keys("\x1b[Z")
	p.sees("acceptEdits · " + idleFooter)
	p.keys("/mode default\r")
	p.sees("scripted · " + idleFooter)
	p.keys("/modle\r")
	p.sees("there is no command /modle; /help lists them; did you mean")
	p.sees("/model or /mode?")
	p.keys("\x15hello\r")
	p.sees("Allow? ")
	p.keys("y")
	p.sees(idleFooter)
	p.keys("/review\r")
	p.sees("+Turn 1: hello")
	p.sees("Keep it? ")
	p.keys("n")
	p.sees(idleFooter)
	assert.NoFileExists(t, s.root+"/demo.txt")
	p.keys("\x1b[Z") // also in a conversation
	p.sees("set, from the next prompt on")
	p.sees("acceptEdits · context 0 % · " + idleFooter)
	p.keys("hel\x12")
	p.sees("  hello")
	p.keys("\r\x15/cost\r")
	p.sees("COST")
	p.keys("/rewind\r") // without checkpoints, the conversation alone goes back
	p.sees("the files before task-0001 are not recorded")
	p.sees("your next prompt continues from before task-0001")
	p.sees("hello")
	p.keys("\x15/resume task-0001\r")
	p.sees("after task-0001")
	p.keys("/title The first\r")
	p.keys("/new\r")
	p.sees("begins another conversation")
	p.keys("/resume\r")
	p.sees("The first")
	p.keys("\r")
	p.sees("after task-0001")
	p.keys("/exit\r")
	p.sees("back with: duet-rpc prompt --continue task-0001")
	<-p.ended
	assert.Zero(t, p.status())
}

// A question outlives the conversation's terminal, and the conversation its hub.
func TestAConversationOutlivesTerminalAndHub(t *testing.T) {
	t.Parallel()
	s := newDaemonSite(t)
	p := s.talk(t)
	p.sees(idleFooter)
	p.keys("hello\r")
	p.sees("Allow? ")
	p.keys("\x04")
	p.sees("task-0001 continues without this terminal")
	<-p.ended
	p = s.talk(t, "prompt", "-c")
	p.sees("Allow? ")
	p.keys("y")
	p.sees("I wrote demo.txt")
	p.sees(idleFooter)
	require.NoError(t, syscall.Kill(s.lockHolder(), syscall.SIGKILL))
	p.sees(idleFooter)
	p.keys("quiet after that\r")
	p.sees("You asked: quiet after that")
	p.sees(idleFooter)

	// Another client's prompt is shown as well.
	s.run("prompt", "--continue", "task-0002", "quiet from afar")
	p.sees("› quiet from afar")
	p.sees("You asked: quiet from afar")
	p.sees(idleFooter)
	p.leaves()
}

func TestAConversationOnADumbTerminal(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	tty := openTerminal(t)
	l := s.launch()
	l.env = append(l.env, "TERM=dumb")
	l.stdin, l.stdout, l.stderr = tty.theirs, tty.theirs, tty.theirs
	p := &prompting{process: l.start(t), tty: tty}
	p.sees("› ")
	p.types("quiet hello")
	p.sees("You asked: quiet hello")
	p.sees("› ")
	p.types("/help")
	p.sees("/resume [ID]")
	p.types("/exit")
	p.sees("back with")
	<-p.ended
	assert.Zero(t, p.status())
	assert.NotContains(t, strings.ReplaceAll(tty.printed.String(), "\x1b]", ""), "\x1b[", "nothing that moves the cursor")
}

func TestChangesAreReviewedOnATerminal(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := s.talk(t, "prompt", "--agent", "scripted", "--yes", "hello")
	<-p.ended
	p = s.talk(t, "changes", "--patch")
	p.sees("+Turn 1: hello")
	p.sees("Keep it? ")
	p.keys("what\n")
	p.sees("Keep it? ")
	p.keys("n\n")
	<-p.ended
	assert.Zero(t, p.status())
	assert.NoFileExists(t, s.root+"/demo.txt")
	p = s.talk(t, "changes", "--patch")
	p.sees("no change of the last turn is open")
	<-p.ended
}

// A terminal that is closed takes nothing with it: the question stays open, the session goes on.
func TestTheTerminalIsClosed(t *testing.T) {
	t.Parallel()
	for name, query := range map[string]string{"with a question": "permit:1", "at work": "quiet stream:1000000@100"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newDaemonSite(t)
			tty := openTerminal(t)
			require.NoError(t, pty.Setsize(tty.theirs, &pty.Winsize{Rows: 24, Cols: 80}))
			l := s.launch()
			l.args = append([]string{"prompt", query}, l.args...)
			l.stdin, l.stdout, l.stderr = tty.theirs, tty.theirs, tty.theirs
			l.attributes = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			p := &prompting{process: l.start(t), tty: tty}
			if name == "with a question" {
				p.sees("[n]o")
			} else {
				p.sees("chunk 3")
			}
			if err := unix.IoctlSetInt(int(tty.theirs.Fd()), unix.TIOCVHANGUP, 0); err != nil { // for root alone
				require.NoError(t, p.cmd.Process.Signal(syscall.SIGHUP)) // as the shell does
			}
			<-p.ended
			require.Equal(t, 1, p.cmd.ProcessState.ExitCode())
			editor := s.start()
			var r struct {
				Session struct {
					Status string `json:"status"`
				} `json:"session"`
			}
			editor.call("getSessionState", object{"session_id": "task-0001"}, &r)
			require.Equal(t, map[string]string{"with a question": "waiting_input", "at work": "running"}[name], r.Session.Status)
			editor.call("interruptSession", object{"session_id": "task-0001"}, nil)
			editor.leave()
			s.run("daemon", "stop")
		})
	}
}
