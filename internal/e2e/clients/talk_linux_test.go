package clients

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/duet-rpc/duet-rpc/internal/e2e"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// startTalk starts duet-rpc on a terminal of 80 columns. Without arguments this is a new session.
func startTalk(s *e2e.Site, t *testing.T, args ...string) *prompting {
	l := s.Launch(args...)
	l.Env = append(l.Env, "TERM=xterm")
	return onTerminal(l, t, 80)
}

// leaves presses C-d and waits for the end with status 0.
func (p *prompting) leaves() {
	p.T.Helper()
	p.presses("\x04", "back with: duet-rpc prompt --continue ")
	<-p.Ended
	assert.Zero(p.T, p.status())
}

const idleFooter = "RET sends"

func TestASessionOnATerminal(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	p := startTalk(s, t)
	p.sees("/help lists", idleFooter)

	// A turn with a question, which one key answers.
	p.presses("hello\r", "› hello", "? Write demo.txt", "[?] Keys: ")
	p.presses("y", "I wrote demo.txt", "tokens", idleFooter)

	// A prompt sent during a turn waits. C-c interrupts only the turn.
	p.presses("quiet tools:1 hang\r", "✓ done")
	p.presses("quiet wrong\r", "⧗ quiet wrong")
	p.presses("\x1b[A", "quiet wrong") // takes it back
	p.presses("\x15quiet next\r", "⧗ quiet next")
	p.signal(os.Interrupt)
	p.sees("interrupting", "interrupted", "You asked: quiet next", idleFooter)

	// The history, an edited line, pasted lines.
	p.presses("\x1b[A", "quiet next")
	p.presses("\x17again\x1b[200~\nand again\x1b[201~\r", "You asked: quiet again", "and again", idleFooter)
	p.leaves()

	// All turns belong to one session, and prompt -c continues it.
	editor := s.Start()
	list := editor.Sessions()
	require.Len(t, list, 5) // with the prompt that was taken back
	for _, session := range list {
		assert.Equal(t, list[0].ThreadID, session.ThreadID)
	}
	editor.Leave()
	p = startTalk(s, t, "prompt", "-c", "--mode", "plan")
	p.sees("after 1.5", idleFooter)
	p.presses("quiet fifth\r", "You asked: quiet fifth", "tokens", "scripted · Plan · ", idleFooter)
	p.leaves()

	// A text without a command opens a session with it, also the last one, whose end is on the screen.
	p = startTalk(s, t, "-c", "quiet sixth time")
	p.sees("lines of the session above: duet-rpc session show --transcript 1", "❯ quiet fifth", "after 1.6", "You asked: quiet sixth time", idleFooter)
	p.presses("/new\r", idleFooter)
	p.presses("/resume 1\r", "❯ quiet sixth time", "after 1.7", idleFooter)
	p.presses("/fork\r", "shares this one up to 1.7", idleFooter)
	p.presses("quiet forked\r", "You asked: quiet forked", idleFooter)
	p.leaves()
	p = startTalk(s, t, "quiet seventh time")
	p.sees("You asked: quiet seventh time", idleFooter)
	p.leaves()
	p = startTalk(s, t, "-p", "-c", "quiet", "eighth")
	p.sees("You asked: quiet eighth", "tokens")
	assert.Zero(t, p.status())
}

// Prompts that arrive at once, as from a paste, run one after another in the same session.
func TestPromptsThatAreTypedAhead(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	p := startTalk(s, t)
	p.sees(idleFooter)
	p.presses("quiet one\rquiet two\rquiet three\r", "You asked: quiet one", "You asked: quiet two", "You asked: quiet three", idleFooter)
	p.presses("quiet four\r/new\rquiet elsewhere\r", "You asked: quiet four", "You asked: quiet elsewhere", idleFooter)
	p.presses("quiet tools:1 hang\r\x04", "2.2 continues without this terminal; back with: duet-rpc prompt --continue 2")
	<-p.Ended
	assert.Zero(t, p.status())
	editor := s.Start()
	defer editor.Leave()
	prompts := make(map[string][]string)
	for _, session := range editor.Sessions() { // the newest first
		prompts[session.ThreadID] = append(prompts[session.ThreadID], session.Query)
	}
	assert.ElementsMatch(t, [][]string{
		{"quiet four", "quiet three", "quiet two", "quiet one"}, {"quiet tools:1 hang", "quiet elsewhere"},
	}, slices.Collect(maps.Values(prompts)))
}

// Turns that ran while the terminal was stopped are shown, in their order. A prompt that was typed
// meanwhile continues the session after them.
func TestPromptsThatRanWhileTheTerminalWasStopped(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	p := startTalk(s, t)
	p.sees(idleFooter)
	p.presses("quiet tools:1 hang\r", "✓ done")
	p.presses("quiet two\rquiet three\r", "⧗ quiet three")
	p.signal(syscall.SIGSTOP)
	s.Run("session", "interrupt", "1")
	editor := s.Start()
	defer editor.Leave()
	require.Eventually(t, func() bool { return editor.Session("task-0003").State == "completed" }, e2e.Watchdog/3, e2e.PollEvery)
	p.presses("quiet four\r")
	p.signal(syscall.SIGCONT)
	p.sees("You asked: quiet two", "You asked: quiet three", "You asked: quiet four", idleFooter)
	p.leaves()
	assert.Equal(t, editor.Session("task-0001").ThreadID, editor.Session("task-0004").ThreadID, "quiet four is no fork")
}

// An agent-initiated turn appears in the session, with its cause once.
func TestASessionShowsAnAgentInitiatedTurn(t *testing.T) {
	p := startTalk(e2e.NewSite(e2e.Parallel(t)), t)
	p.presses("quiet late:1\r", "That is all. ", "Continued by itself.", "chunk 1", idleFooter)
	assert.Equal(t, 1, strings.Count(p.tty.Printed.String(), "Continued by itself"))
	p.leaves()
}

func TestSessionsInOneDirectoryAreWarnedOf(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	p := startTalk(s, t, "prompt", "quiet tools:1 hang")
	p.sees("✓ done")
	beside := startTalk(s, t, "prompt", "quiet beside")
	beside.sees("1.1 works in this directory, too: both may change the same files")
	<-beside.Ended
	assert.Zero(t, beside.status())
	p.signal(os.Interrupt)
	<-p.Ended
}

func TestCommandsOfASession(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	p := startTalk(s, t, "prompt", "--agent", "scripted")
	p.sees(idleFooter)
	p.presses("/diff\r", "there is no turn yet")
	p.presses("/mo", "list the agent's models, or choose one")
	p.presses("de pl\t\r") // completes plan
	p.sees("Plan · " + idleFooter)
	p.presses("\x1b[Z") // S-TAB goes on to the first mode
	p.sees("scripted · " + idleFooter)
	p.presses("\x1b[Z", "Accept edits · "+idleFooter)
	p.presses("/mode default\r", "scripted · "+idleFooter)
	p.presses("/modle\r", "there is no command /modle; /help lists them; did you mean", "/model or /mode?")
	p.presses("\x15hello\r", "[?] Keys: ")
	p.presses("y", idleFooter)
	p.presses("/review\r", "+Turn 1: hello", "[?] Keys: ")
	p.presses("n", "Reverted demo.txt", idleFooter)
	assert.NoFileExists(t, s.Root+"/demo.txt")
	p.presses("\x1b[Z") // also in a session
	p.sees("Mode: Accept edits, from the next prompt on", "Accept edits · context 0 % · "+idleFooter)
	p.presses("hel\x12", "  hello")
	p.presses("\r\x15/cost\r", "COST")
	p.presses("/rewind\r") // without checkpoints, the session alone goes back
	p.sees("the files before 1.1 are not recorded", "your next prompt continues from before 1.1; /resume 1 returns", "hello")
	p.presses("\x15/resume 1\r", "after 1.1")
	p.presses("/title The first\r", "Renamed: The first")
	p.presses("/new\r", "begins another session")
	p.presses("/resume\r", "The first")
	p.signal(os.Interrupt) // C-c closes the list
	p.sees(idleFooter)
	p.presses("hel\x12", "  hello")
	p.presses("\r\x15/resume\r", "The first")
	p.presses("\r", "after 1.1")
	p.presses("/exit\r", "back with: duet-rpc prompt --continue 1")
	<-p.Ended
	assert.Zero(t, p.status())
}

// The session that /new begins while the agent works gets the next prompt, also after the end of that turn.
func TestNewSessionWhileTheAgentWorks(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	p := startTalk(s, t)
	p.sees(idleFooter)
	p.presses("quiet stream:100000@50\r", "chunk 9")
	p.presses("/rewind\r", "1.1 still works: wait for its end, or interrupt it")
	p.presses("/new\r", "your next prompt begins another session")
	p.presses("\x1b", "— interrupted", idleFooter)
	p.presses("quiet other\r", "You asked: quiet other", idleFooter)
	p.presses("\x04", "back with: duet-rpc prompt --continue 2")
	<-p.Ended
}

// The footer says which other sessions have a question, until it is answered.
func TestASessionMentionsQuestionsOfOthers(t *testing.T) {
	s := e2e.NewDaemonSite(e2e.Parallel(t))
	p := startTalk(s, t, "prompt", "--agent", "scripted")
	p.sees("scripted · " + idleFooter)
	s.Run("prompt", "--background", "--agent", "scripted", "hello")
	p.sees("scripted · session 1 asks: /resume 1 · " + idleFooter)
	s.Run("prompt", "--background", "--agent", "scripted", "hello")
	p.sees("scripted · 2 other sessions ask: /resume 1 · " + idleFooter)
	s.Run("session", "interrupt", "1")
	p.sees("scripted · session 2 asks: /resume 2 · " + idleFooter)
	p.presses("/resume 2\r", "? Write demo.txt", "[?] Keys: ")
	p.presses("n", "scripted · context 0 % · "+idleFooter)
	p.leaves()
}

// A line that begins with ! is a command of the user. Its output goes along with the next prompt, once. C-c
// interrupts the command, and not the session.
func TestUserRunsCommandsInASession(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	l := s.Launch()
	l.Env = append(l.Env, "TERM=xterm")
	l.Attributes = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	p := onTerminal(l, t, 80)
	p.sees(idleFooter)
	p.presses("!echo made in $PWD; printf unfinished; exit 3\r", "$ echo made", "made in "+s.Root+"\n", "unfinished\n",
		"exit status 3; the output goes along with your next prompt", idleFooter)
	// tail prints the line itself: a shell may lose a C-c between its own line and the start of a program.
	p.presses("!echo begins >../f; exec tail -f ../f\r", "$ echo begins", "\nbegins\n")
	require.NoError(t, syscall.Kill(-p.Cmd.Process.Pid, syscall.SIGINT)) // as C-c does
	p.sees("signal: interrupt; the output goes along", idleFooter)
	p.presses("quiet explain\r", "› quiet explain", "I ran here:", "made in "+s.Root, "[exit status 3]", "… 6 more lines", "You asked: quiet explain", idleFooter)
	p.presses("quiet again\r", "You asked: quiet again", idleFooter)
	p.presses("!yes | head -c 100000\r", "the first and last 8 KB of the output", idleFooter)
	p.presses("!\r", "no output goes along with your next prompt", idleFooter)
	p.presses("quiet and again\r", "You asked: quiet and again", idleFooter)
	p.presses(" !touch here\r", "You asked: !touch here", "[?] Keys: ") // a prompt
	p.presses("n", idleFooter)
	p.presses("/rewind\r", " !touch here")
	p.presses("\r", "You asked: !touch here", "[?] Keys: ")
	p.presses("n", idleFooter)
	p.leaves()
	assert.NoFileExists(t, s.Root+"/here")
	var prompts []string
	editor := s.Start()
	for _, session := range editor.Sessions() {
		prompts = append(prompts, session.Query)
	}
	editor.Leave()
	assert.Equal(t, 1, strings.Count(strings.Join(prompts, "\n"), "I ran here"), prompts)
	p = startTalk(s, t, "!touch here")
	p.sees("You asked: !touch here", "[?] Keys: ")
	p.presses("n", idleFooter)
	p.leaves()
	assert.NoFileExists(t, s.Root+"/here", "the arguments are a prompt")
}

// In the first session with an agent, its commands and models are known as soon as it reports them.
func TestASessionKnowsANewAgentsCommands(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	s.Agents(e2e.Played(t, s.Home, "fresh",
		e2e.PlayedStep{Opened: map[string]any{"models": object{"currentModelId": "large", "availableModels": []object{{"modelId": "large", "name": "The large one"}}}}},
		e2e.PlayedStep{Update: object{"sessionUpdate": "available_commands_update", "availableCommands": []object{{"name": "shrink", "description": "Makes it small"}}}},
		e2e.PlayedStep{Say: "Played."}))
	p := startTalk(s, t, "prompt", "--agent", "fresh")
	p.sees(idleFooter)
	p.presses("/shrink\r", "there is no command /shrink")
	p.presses("\x15hello\r", "Played.", "large · "+idleFooter)
	p.presses("/model\r", "The large one")
	p.presses("/shrink\r", "› /shrink", "Played.", idleFooter)
	p.leaves()
}

// The footer shows the mode into which an agent goes by itself, while it works: it may act without
// asking there.
func TestASessionShowsTheAgentsOwnMode(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	modes := []object{{"id": "default", "name": "Default"}, {"id": "auto", "name": "Decides itself"}}
	s.Agents(e2e.Played(t, s.Home, "moody",
		e2e.PlayedStep{Opened: map[string]any{"modes": object{"currentModeId": "default", "availableModes": modes}}},
		e2e.PlayedStep{Update: object{"sessionUpdate": "current_mode_update", "currentModeId": "auto"}},
		e2e.BashCall("Look", object{"command": "ls"}),
		e2e.PlayedStep{Update: object{"sessionUpdate": "current_mode_update", "currentModeId": "default"}},
		e2e.PlayedStep{Say: "Played."}))
	p := startTalk(s, t, "prompt", "--agent", "moody")
	p.sees("moody · " + idleFooter)
	p.presses("hello\r", "in which it may act without", "[?] Keys: ")
	p.presses("y", "Played.", "moody · "+idleFooter)
	p.leaves()
	assert.Contains(t, p.tty.Printed.String(), "moody · Decides itself · ")
}

// A question survives its terminal, and a session survives its hub.
func TestASessionOutlivesTerminalAndHub(t *testing.T) {
	s := e2e.NewDaemonSite(e2e.Parallel(t))
	p := startTalk(s, t)
	p.sees(idleFooter)
	p.presses("hello\r", "[?] Keys: ")
	p.presses("\x04", "1.1 continues without this terminal")
	<-p.Ended
	p = startTalk(s, t, "prompt", "-c")
	p.sees("[?] Keys: ")
	p.presses("y", "I wrote demo.txt", idleFooter)
	require.NoError(t, syscall.Kill(s.LockHolder(), syscall.SIGKILL))
	p.sees(idleFooter)
	p.presses("quiet after that\r", "You asked: quiet after that", idleFooter)

	// The session also shows another client's prompt.
	s.Run("prompt", "--continue", "1", "quiet from afar")
	p.sees("› quiet from afar", "You asked: quiet from afar", idleFooter)
	p.leaves()
}

// After the hub was killed, the session asks the open question again. It takes each kind of answer,
// also from another client.
func TestASessionAsksAgainWhenItsHubDies(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(s *e2e.Site, p *prompting){
		"allow": func(_ *e2e.Site, p *prompting) { p.presses("y", "I wrote demo.txt") },
		"tell": func(_ *e2e.Site, p *prompting) {
			p.presses("t", "Why not? ")
			p.presses("use git\r", "denied; your next prompt", " use git", idleFooter)
		},
		"C-c": func(_ *e2e.Site, p *prompting) {
			p.signal(os.Interrupt)
			p.sees("left open: `duet-rpc approvals` asks again")
		},
		"elsewhere": func(s *e2e.Site, p *prompting) {
			s.Run("approvals", "allow", strings.Fields(s.Run("approvals", "--list"))[5])
			p.sees("allowed in", "I wrote demo.txt")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := e2e.NewDaemonSite(e2e.Parallel(t))
			p := startTalk(s, t)
			p.sees(idleFooter)
			p.presses("hello\r", "[?] Keys: ")
			require.NoError(t, syscall.Kill(s.LockHolder(), syscall.SIGKILL))
			p.sees("and the agent with it; its question is open", "? Write demo.txt", "[?] Keys: ")
			assert.NotContains(t, p.tty.Printed.String(), "send a prompt to continue")
			answer(s, p)
			p.presses("\x15quiet next\r", "You asked: quiet next", idleFooter)
			p.leaves()
		})
	}
}

// After the hub was killed, the end of the turn is shown before the queued prompts, which go on in their
// order.
func TestQueuedPromptsGoOnWhenTheHubDies(t *testing.T) {
	s := e2e.NewDaemonSite(e2e.Parallel(t))
	p := startTalk(s, t)
	p.sees(idleFooter)
	p.presses("quiet tools:1 hang\r", "✓ done")
	p.presses("quiet one\r", "⧗ quiet one")
	p.presses("quiet two\r", "⧗ quiet two")
	require.NoError(t, syscall.Kill(s.LockHolder(), syscall.SIGKILL))
	p.sees("interrupted", "the daemon has ended, and the agent with it; the queued prompt goes on", "You asked: quiet one", "You asked: quiet two", idleFooter)
	p.leaves()
}

// C-x C-e opens an editor that exists if the environment names none, and says what to set if there is
// none. It never runs the prompt.
func TestAPromptIsWrittenInAnEditor(t *testing.T) {
	t.Parallel()
	for name, says := range map[string][]string{
		"vi":   {" quiet written", "RET sends"},
		"none": {"the editor: none is known; set EDITOR", "  scripted · RET sends"},
	} {
		t.Run(name, func(t *testing.T) {
			s := e2e.NewSite(e2e.Parallel(t))
			programs := t.TempDir()
			testkit.Program(t, programs+"/vi", "#!/bin/sh\necho quiet written >\"$1\"\n")
			if name == "none" {
				programs = t.TempDir()
			}
			sh, err := exec.LookPath("sh")
			require.NoError(t, err)
			require.NoError(t, os.Symlink(sh, programs+"/sh"))
			s.Env = append(s.Env, "EDITOR=", "VISUAL=", "PATH="+programs)
			p := startTalk(s, t)
			p.sees(idleFooter)
			p.presses("touch ran\x18\x05", says...)
			assert.NoFileExists(t, s.Root+"/ran")
			p.presses("\x15quiet next\r", "You asked: quiet next", idleFooter)
			p.leaves()
		})
	}
}

func TestASessionOnADumbTerminal(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	s.Env = append(s.Env, "TERM=dumb")
	p := startOnTerminal(s, t, 80)
	p.sees("› ")
	p.types("quiet hello", "You asked: quiet hello", "› ")
	p.types("/help", "/resume [ID]")
	p.types("/exit", "back with")
	<-p.Ended
	assert.Zero(t, p.status())
	assert.NotContains(t, strings.ReplaceAll(p.tty.Printed.String(), "\x1b]", ""), "\x1b[", "no cursor movement")
}

func TestChangesAreReviewedOnATerminal(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	p := startTalk(s, t, "prompt", "--agent", "scripted", "--yes", "hello")
	<-p.Ended
	p = startTalk(s, t, "changes", "--patch")
	p.sees("+Turn 1: hello", "[?] Keys: ")
	p.presses("what\n", "[?] Keys: ")
	p.presses("n\n")
	<-p.Ended
	assert.Zero(t, p.status())
	assert.NoFileExists(t, s.Root+"/demo.txt")
	p = startTalk(s, t, "changes", "--patch")
	p.sees("no change of the last turn is open")
	<-p.Ended
}

// A closed terminal ends only its command: the question stays open, and the session continues.
func TestTheTerminalIsClosed(t *testing.T) {
	t.Parallel()
	for name, query := range map[string]string{"with a question": "permit:1", "at work": "quiet stream:1000000@100"} {
		t.Run(name, func(t *testing.T) {
			s := e2e.NewDaemonSite(e2e.Parallel(t))
			l := s.Launch("prompt", query)
			l.Attributes = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			p := onTerminal(l, t, 80)
			if name == "with a question" {
				p.sees("[n] Deny")
			} else {
				p.sees("chunk 3")
			}
			if err := unix.IoctlSetInt(int(p.tty.Theirs.Fd()), unix.TIOCVHANGUP, 0); err != nil { // only root may
				require.NoError(t, p.Cmd.Process.Signal(syscall.SIGHUP)) // as the shell does
			}
			<-p.Ended
			require.Equal(t, 1, p.Cmd.ProcessState.ExitCode())
			editor := s.Start()
			require.Equal(t, map[string]string{"with a question": "waiting_input", "at work": "running"}[name], editor.Session("task-0001").Status)
			editor.Call("interruptSession", object{"session_id": "task-0001"}, nil)
			editor.Leave()
			s.Run("daemon", "stop")
		})
	}
}

// C-z stops this process and gives the terminal to the shell as it was, also while an editor has it. The
// question and the box are back when the process goes on.
func TestStoppedProcessGivesTheTerminalBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		at   string // what the terminal shows
		keys string
		then string // after keys
	}{
		"at a question":                {[]string{"prompt", "permit:1"}, "[?] Keys: ", "", ""},
		"at a reason":                  {[]string{"prompt", "permit:1"}, "[?] Keys: ", "t", "Why not? "},
		"in the inbox":                 {[]string{"approvals"}, "waiting for the next", "", ""},
		"at a list":                    {nil, idleFooter, "/resume\r", "1/1 ❯"},
		"at the list of a command":     {[]string{"session", "pick"}, "1/1 ❯", "", ""},
		"in a session":                 {nil, idleFooter, "", ""},
		"at a question of a session":   {nil, idleFooter, "permit:1\r", "[?] Keys: "},
		"in the editor":                {nil, idleFooter, "\x18\x05", "editing"},
		"in the editor, at a question": {[]string{"prompt", "hello"}, "[?] Keys: ", "e", "editing"},
	} {
		t.Run(name, func(t *testing.T) {
			s := e2e.NewDaemonSite(e2e.Parallel(t))
			s.Run("prompt", "--yes", "quiet hello")
			require.NoError(t, unix.Mkfifo(s.Home+"/saved", 0o600))
			s.Env = append(s.Env, "EDITOR=sh -c 'echo editing; read x <"+s.Home+"/saved'")
			p := startTalk(s, t, c.args...)
			p.sees(c.at)
			p.presses(c.keys, c.then)
			p.signal(syscall.SIGTSTP)
			p.stops()
			p.tty.IsRestored(t)
			p.signal(syscall.SIGCONT)
			switch {
			case c.then == "editing":
				e2e.WriteFile(t, s.Home+"/saved", "\n")
				p.sees(c.at)
			case c.then != "":
				p.sees(c.then)
			case name != "in the inbox":
				p.sees(c.at)
			}
			p.signal(syscall.SIGTERM)
			<-p.Ended
			p.tty.IsRestored(t)
		})
	}
}

// Two signals end a process at once whose hub does not answer, with the terminal as it was.
func TestSecondSignalRestoresTheTerminal(t *testing.T) {
	s := e2e.NewDaemonSite(e2e.Parallel(t))
	l := s.Launch()
	l.Env = append(l.Env, "TERM=xterm")
	l.Attributes = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	p := onTerminal(l, t, 80)
	p.sees(idleFooter)
	e2e.SuspendHub(t, s.LockHolder())
	p.presses("quiet hello\r")
	require.Eventually(t, func() bool { // the first ones may come before the prompt is sent
		_ = p.Cmd.Process.Signal(os.Interrupt)
		select {
		case <-p.Ended:
			return true
		default:
			return false
		}
	}, e2e.Watchdog/3, e2e.PollEvery)
	assert.Equal(t, 130, p.status())
	p.tty.IsRestored(t)
	printed := p.tty.Printed.String()
	assert.Greater(t, strings.LastIndex(printed, "\x1b[?2004l"), strings.LastIndex(printed, "\x1b[?2004h"))
}

// stops waits until the process has stopped.
func (p *prompting) stops() {
	p.T.Helper()
	require.Eventually(p.T, func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Cmd.Process.Pid))
		require.NoError(p.T, err)
		return strings.HasPrefix(string(stat[strings.LastIndexByte(string(stat), ')')+1:]), " T")
	}, e2e.Watchdog/3, e2e.PollEvery)
}

// C-c, or another client's answer, ends a question at any state of its answer. The box is back then:
// it takes each key, and the text that was typed for the question.
func TestAQuestionThatGoesAwayLeavesTheKeyboard(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		query string
		keys  func(p *prompting)
		kept  string // in the box
	}{
		"at a key":               {"permit:1", func(*prompting) {}, ""},
		"at a wrong key":         {"permit:1", func(p *prompting) { p.presses("x", "please type", "[?] Keys: ") }, ""},
		"at a reason":            {"permit:1", func(p *prompting) { p.presses("t", "Why not? ") }, ""},
		"within a reason":        {"permit:1", func(p *prompting) { p.presses("t", "Why not? "); p.presses("use gid\x7ft", "use git") }, " use git"},
		"at a pattern":           {"permit:1", func(p *prompting) { p.presses("p", "goes back: ") }, ""},
		"at a form":              {"quiet form", func(p *prompting) { p.sees("[green]: ") }, ""},
		"at the second field":    {"quiet form", func(p *prompting) { p.sees("[green]: "); p.presses("red\r", "How many (", "): ") }, ""},
		"within a pasted reason": {"permit:1", func(p *prompting) { p.presses("t", "Why not? "); p.presses("\x1b[200~no\nand") }, ""},
		"within a pasted text":   {"permit:1", func(p *prompting) { p.presses("\x1b[200~no\nand", "please type", "[?] Keys: ") }, ""},
	} {
		for _, how := range []string{"C-c", "elsewhere"} {
			t.Run(name+", "+how, func(t *testing.T) {
				s := e2e.NewDaemonSite(e2e.Parallel(t))
				p := startTalk(s, t)
				p.sees(idleFooter)
				p.presses(c.query + "\r")
				if !strings.Contains(c.query, "form") {
					p.sees("[?] Keys: ")
				}
				c.keys(p)
				if how == "C-c" {
					p.signal(os.Interrupt)
				} else {
					s.Run("session", "interrupt", "1")
				}
				p.sees("interrupted", c.kept, idleFooter)
				if strings.HasPrefix(name, "within a pasted") {
					p.presses("more\x1b[201~", " no", "  andmore")
				}
				p.presses("\x15\x15\x15quiet next\r", "You asked: quiet next", idleFooter)
				p.presses("\x1b[200~quiet pasted\x1b[201~\r", "You asked: quiet pasted", idleFooter)
				p.leaves()
			})
		}
	}
}

// A prompt that is to be sent at once, and that the agent does not take while it works, is the next one.
// The user learns that.
func TestAPromptThatCannotBeSentAtOnceIsTheNext(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	e2e.WriteFile(t, s.Root+"/notes", "n")
	p := startTalk(s, t)
	p.sees(idleFooter)
	p.presses("quiet tools:1 hang\r", "✓ done")
	p.presses("quiet later\r", "⧗ quiet later")
	p.presses("quiet now @notes \x13", "the agent does not take this while it works: it is the next prompt", "⧗ quiet now @notes", "⧗ quiet later")
	p.signal(os.Interrupt)
	p.sees("interrupted", "You asked: quiet now", "You asked: quiet later", idleFooter)
	p.leaves()
}

// The title and the input of a tool call may come after its start, as those of claude-agent-acp do.
func TestTheLateTitleOfAToolCallIsShown(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	claude := object{"claudeCode": object{"toolName": "Bash"}}
	s.Agents(e2e.Played(t, s.Home, "late",
		e2e.PlayedStep{Update: object{"sessionUpdate": "tool_call", "toolCallId": "c1", "title": "Terminal", "kind": "execute", "status": "pending", "rawInput": object{}, "_meta": claude}},
		e2e.PlayedStep{Update: object{"sessionUpdate": "tool_call_update", "toolCallId": "c1", "title": "ls -la", "rawInput": object{"command": "ls -la"}, "_meta": claude}},
		e2e.PlayedStep{Update: object{"sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": "completed", "_meta": claude}},
		e2e.PlayedStep{Update: object{"sessionUpdate": "tool_call", "toolCallId": "c2", "title": "Search", "kind": "search", "status": "in_progress"}},
		e2e.PlayedStep{Say: "Meanwhile. "},
		e2e.PlayedStep{Update: object{"sessionUpdate": "tool_call_update", "toolCallId": "c2", "title": "Search for duets"}},
		e2e.PlayedStep{Update: object{"sessionUpdate": "tool_call_update", "toolCallId": "c2", "status": "completed"}},
		e2e.PlayedStep{Say: "Played."}))
	out, err := s.ShellCommand("prompt", "--agent", "late", "hello").CombinedOutput()
	require.NoError(t, err)
	assert.Contains(t, string(out), "\n$ ls -la\n✓ done\n● Search\nMeanwhile. \n● Search for duets\n✓ done\nPlayed.\n")
	p := startTalk(s, t, "prompt", "--agent", "late", "hello")
	p.sees("$ ls -la", "✓ done", "● Search for duets", "✓ done", "Played.")
	<-p.Ended
	assert.NotContains(t, p.tty.Printed.String(), "● Terminal")
}
