package main_test

import (
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

	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// talk starts duet-rpc on a terminal of 80 columns. Without arguments this is a conversation.
func (s *site) talk(t *testing.T, args ...string) *prompting {
	l := s.launch(args...)
	l.env = append(l.env, "TERM=xterm")
	return l.onTerminal(t, 80)
}

// leaves presses C-d and waits for the end with status 0.
func (p *prompting) leaves() {
	p.t.Helper()
	p.presses("\x04", "back with: duet-rpc prompt --continue ")
	<-p.ended
	assert.Zero(p.t, p.status())
}

// signal sends a signal, such as SIGINT for C-c.
func (p *prompting) signal(sig os.Signal) {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(sig))
}

const idleFooter = "RET sends"

func TestAConversationOnATerminal(t *testing.T) {
	s := newSite(parallel(t))
	p := s.talk(t)
	p.sees("/help lists", idleFooter)

	// A turn with a question, which one key answers.
	p.presses("hello\r", "› hello", "? Write demo.txt", "Allow? ")
	p.presses("y", "I wrote demo.txt", "tokens", idleFooter)

	// A prompt sent during a turn waits. C-c interrupts only the turn.
	p.presses("quiet tools:1 hang\r", "✓ Bash")
	p.presses("quiet next\r", "⧗ quiet next")
	p.signal(os.Interrupt)
	p.sees("interrupting", "interrupted", "You asked: quiet next", idleFooter)

	// The history, an edited line, pasted lines.
	p.presses("\x1b[A", "quiet next")
	p.presses("\x17again\x1b[200~\nand again\x1b[201~\r", "You asked: quiet again", "and again", idleFooter)
	p.leaves()

	// All turns belong to one conversation, and prompt -c continues it.
	editor := s.start()
	list := editor.sessions()
	require.Len(t, list, 4)
	for _, session := range list {
		assert.Equal(t, list[0].ThreadID, session.ThreadID)
	}
	editor.leave()
	p = s.talk(t, "prompt", "-c", "--mode", "plan")
	p.sees("after 1.4", idleFooter)
	p.presses("quiet fifth\r", "You asked: quiet fifth", "tokens", "scripted · plan · ", idleFooter)
	p.leaves()
}

// Prompts that arrive at once, as from a paste, run one after another in the same conversation.
func TestPromptsThatAreTypedAhead(t *testing.T) {
	s := newSite(parallel(t))
	p := s.talk(t)
	p.sees(idleFooter)
	p.presses("quiet one\rquiet two\rquiet three\r", "You asked: quiet one", "You asked: quiet two", "You asked: quiet three", idleFooter)
	p.presses("quiet four\r/new\rquiet elsewhere\r", "You asked: quiet four", "You asked: quiet elsewhere", idleFooter)
	p.presses("quiet tools:1 hang\r\x04", "2.2 continues without this terminal; back with: duet-rpc prompt --continue 2")
	<-p.ended
	assert.Zero(t, p.status())
	editor := s.start()
	defer editor.leave()
	prompts := make(map[string][]string)
	for _, session := range editor.sessions() { // the newest first
		prompts[session.ThreadID] = append(prompts[session.ThreadID], session.Query)
	}
	assert.ElementsMatch(t, [][]string{
		{"quiet four", "quiet three", "quiet two", "quiet one"}, {"quiet tools:1 hang", "quiet elsewhere"},
	}, slices.Collect(maps.Values(prompts)))
}

// Turns that ran while the terminal was stopped are shown, in their order. A prompt that was typed
// meanwhile continues the conversation after them.
func TestPromptsThatRanWhileTheTerminalWasStopped(t *testing.T) {
	s := newSite(parallel(t))
	p := s.talk(t)
	p.sees(idleFooter)
	p.presses("quiet tools:1 hang\r", "✓ Bash")
	p.presses("quiet two\rquiet three\r", "⧗ quiet three")
	p.signal(syscall.SIGSTOP)
	s.run("session", "interrupt", "1")
	editor := s.start()
	defer editor.leave()
	require.Eventually(t, func() bool { return editor.session("task-0003").State == "completed" }, watchdog/3, pollEvery)
	p.presses("quiet four\r")
	p.signal(syscall.SIGCONT)
	p.sees("You asked: quiet two", "You asked: quiet three", "You asked: quiet four", idleFooter)
	p.leaves()
	assert.Equal(t, editor.session("task-0001").ThreadID, editor.session("task-0004").ThreadID, "quiet four is no fork")
}

// An agent-initiated turn appears in the conversation, with its cause once.
func TestAConversationShowsAnAgentInitiatedTurn(t *testing.T) {
	p := newSite(parallel(t)).talk(t)
	p.presses("quiet late:1\r", "That is all. ", "Continued by itself.", "chunk 1", idleFooter)
	assert.Equal(t, 1, strings.Count(p.tty.printed.String(), "Continued by itself"))
	p.leaves()
}

func TestSessionsInOneDirectoryAreWarnedOf(t *testing.T) {
	s := newSite(parallel(t))
	p := s.talk(t, "prompt", "quiet tools:1 hang")
	p.sees("✓ Bash")
	beside := s.talk(t, "prompt", "quiet beside")
	beside.sees("1.1 works in this directory, too: both may change the same files")
	<-beside.ended
	assert.Zero(t, beside.status())
	p.signal(os.Interrupt)
	<-p.ended
}

func TestCommandsOfAConversation(t *testing.T) {
	s := newSite(parallel(t))
	p := s.talk(t, "prompt", "--agent", "scripted")
	p.sees(idleFooter)
	p.presses("/diff\r", "there is no turn yet")
	p.presses("/mo", "list the agent's models, or choose one")
	p.presses("de pl\t\r") // completes plan
	p.sees("plan · " + idleFooter)
	p.presses("\x1b[Z") // S-TAB goes on to the first mode
	p.sees("scripted · " + idleFooter)
	p.presses("\x1b[Z", "acceptEdits · "+idleFooter)
	p.presses("/mode default\r", "scripted · "+idleFooter)
	p.presses("/modle\r", "there is no command /modle; /help lists them; did you mean", "/model or /mode?")
	p.presses("\x15hello\r", "Allow? ")
	p.presses("y", idleFooter)
	p.presses("/review\r", "+Turn 1: hello", "Keep it? ")
	p.presses("n", idleFooter)
	assert.NoFileExists(t, s.root+"/demo.txt")
	p.presses("\x1b[Z") // also in a conversation
	p.sees("set, from the next prompt on", "acceptEdits · context 0 % · "+idleFooter)
	p.presses("hel\x12", "  hello")
	p.presses("\r\x15/cost\r", "COST")
	p.presses("/rewind\r") // without checkpoints, the conversation alone goes back
	p.sees("the files before 1.1 are not recorded", "your next prompt continues from before 1.1; /resume 1 returns", "hello")
	p.presses("\x15/resume 1\r", "after 1.1")
	p.presses("/title The first\r")
	p.presses("/new\r", "begins another session")
	p.presses("/resume\r", "The first")
	p.presses("\r", "after 1.1")
	p.presses("/exit\r", "back with: duet-rpc prompt --continue 1")
	<-p.ended
	assert.Zero(t, p.status())
}

// In the first session with an agent, its commands and models are known as soon as it reports them.
func TestAConversationKnowsANewAgentsCommands(t *testing.T) {
	s := newSite(parallel(t))
	s.agents(played(t, s.home, "fresh",
		playedStep{Opened: map[string]any{"models": members{"currentModelId": "large", "availableModels": []members{{"modelId": "large", "name": "The large one"}}}}},
		playedStep{Update: members{"sessionUpdate": "available_commands_update", "availableCommands": []members{{"name": "shrink", "description": "Makes it small"}}}},
		playedStep{Say: "Played."}))
	p := s.talk(t, "prompt", "--agent", "fresh")
	p.sees(idleFooter)
	p.presses("/shrink\r", "there is no command /shrink")
	p.presses("\x15hello\r", "Played.", "large · "+idleFooter)
	p.presses("/model\r", "The large one")
	p.presses("/shrink\r", "› /shrink", "Played.", idleFooter)
	p.leaves()
}

// The footer shows the mode into which an agent goes by itself, while it works: it may act without
// asking there.
func TestAConversationShowsTheAgentsOwnMode(t *testing.T) {
	s := newSite(parallel(t))
	modes := []members{{"id": "default", "name": "Default"}, {"id": "auto", "name": "Decides itself"}}
	s.agents(played(t, s.home, "moody",
		playedStep{Opened: map[string]any{"modes": members{"currentModeId": "default", "availableModes": modes}}},
		playedStep{Update: members{"sessionUpdate": "current_mode_update", "currentModeId": "auto"}},
		bashCall("Look", members{"command": "ls"}),
		playedStep{Update: members{"sessionUpdate": "current_mode_update", "currentModeId": "default"}},
		playedStep{Say: "Played."}))
	p := s.talk(t, "prompt", "--agent", "moody")
	p.sees("moody · " + idleFooter)
	p.presses("hello\r", "in which it may act without", "Allow? ")
	p.presses("y", "Played.", "moody · "+idleFooter)
	p.leaves()
	assert.Contains(t, p.tty.printed.String(), "moody · Decides itself · ")
}

// A question survives its terminal, and a conversation survives its hub.
func TestAConversationOutlivesTerminalAndHub(t *testing.T) {
	s := newDaemonSite(parallel(t))
	p := s.talk(t)
	p.sees(idleFooter)
	p.presses("hello\r", "Allow? ")
	p.presses("\x04", "1.1 continues without this terminal")
	<-p.ended
	p = s.talk(t, "prompt", "-c")
	p.sees("Allow? ")
	p.presses("y", "I wrote demo.txt", idleFooter)
	require.NoError(t, syscall.Kill(s.lockHolder(), syscall.SIGKILL))
	p.sees(idleFooter)
	p.presses("quiet after that\r", "You asked: quiet after that", idleFooter)

	// The conversation also shows another client's prompt.
	s.run("prompt", "--continue", "1", "quiet from afar")
	p.sees("› quiet from afar", "You asked: quiet from afar", idleFooter)
	p.leaves()
}

// After the hub was killed, the conversation asks the open question again. It takes each kind of answer,
// also from another client.
func TestAConversationAsksAgainWhenItsHubDies(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(s *site, p *prompting){
		"allow": func(_ *site, p *prompting) { p.presses("y", "I wrote demo.txt") },
		"tell": func(_ *site, p *prompting) {
			p.presses("t", "Why not? ")
			p.presses("use git\r", "denied; your next prompt", " use git", idleFooter)
		},
		"C-c": func(_ *site, p *prompting) {
			p.signal(os.Interrupt)
			p.sees("left open: `duet-rpc approvals` asks again")
		},
		"elsewhere": func(s *site, p *prompting) {
			s.run("approvals", "approve", strings.Fields(s.run("approvals", "--list"))[5])
			p.sees("approved in", "I wrote demo.txt")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newDaemonSite(parallel(t))
			p := s.talk(t)
			p.sees(idleFooter)
			p.presses("hello\r", "Allow? ")
			require.NoError(t, syscall.Kill(s.lockHolder(), syscall.SIGKILL))
			p.sees("and the agent with it; its question is open", "? Write demo.txt", "Allow? ")
			assert.NotContains(t, p.tty.printed.String(), "send a prompt to continue")
			answer(s, p)
			p.presses("\x15quiet next\r", "You asked: quiet next", idleFooter)
			p.leaves()
		})
	}
}

// After the hub was killed, the end of the turn is shown before the queued prompts, which go on in their
// order.
func TestQueuedPromptsGoOnWhenTheHubDies(t *testing.T) {
	s := newDaemonSite(parallel(t))
	p := s.talk(t)
	p.sees(idleFooter)
	p.presses("quiet tools:1 hang\r", "✓ Bash")
	p.presses("quiet one\r", "⧗ quiet one")
	p.presses("quiet two\r", "⧗ quiet two")
	require.NoError(t, syscall.Kill(s.lockHolder(), syscall.SIGKILL))
	p.sees("interrupted", "the hub has ended, and the agent with it; the queued prompt goes on", "You asked: quiet one", "You asked: quiet two", idleFooter)
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
			s := newSite(parallel(t))
			programs := t.TempDir()
			testkit.Program(t, programs+"/vi", "#!/bin/sh\necho quiet written >\"$1\"\n")
			if name == "none" {
				programs = t.TempDir()
			}
			sh, err := exec.LookPath("sh")
			require.NoError(t, err)
			require.NoError(t, os.Symlink(sh, programs+"/sh"))
			s.env = append(s.env, "EDITOR=", "VISUAL=", "PATH="+programs)
			p := s.talk(t)
			p.sees(idleFooter)
			p.presses("touch ran\x18\x05", says...)
			assert.NoFileExists(t, s.root+"/ran")
			p.presses("\x15quiet next\r", "You asked: quiet next", idleFooter)
			p.leaves()
		})
	}
}

func TestAConversationOnADumbTerminal(t *testing.T) {
	s := newSite(parallel(t))
	s.env = append(s.env, "TERM=dumb")
	p := s.onTerminal(t, 80)
	p.sees("› ")
	p.types("quiet hello", "You asked: quiet hello", "› ")
	p.types("/help", "/resume [ID]")
	p.types("/exit", "back with")
	<-p.ended
	assert.Zero(t, p.status())
	assert.NotContains(t, strings.ReplaceAll(p.tty.printed.String(), "\x1b]", ""), "\x1b[", "no cursor movement")
}

func TestChangesAreReviewedOnATerminal(t *testing.T) {
	s := newSite(parallel(t))
	p := s.talk(t, "prompt", "--agent", "scripted", "--yes", "hello")
	<-p.ended
	p = s.talk(t, "changes", "--patch")
	p.sees("+Turn 1: hello", "Keep it? ")
	p.presses("what\n", "Keep it? ")
	p.presses("n\n")
	<-p.ended
	assert.Zero(t, p.status())
	assert.NoFileExists(t, s.root+"/demo.txt")
	p = s.talk(t, "changes", "--patch")
	p.sees("no change of the last turn is open")
	<-p.ended
}

// A closed terminal ends only its command: the question stays open, and the session continues.
func TestTheTerminalIsClosed(t *testing.T) {
	t.Parallel()
	for name, query := range map[string]string{"with a question": "permit:1", "at work": "quiet stream:1000000@100"} {
		t.Run(name, func(t *testing.T) {
			s := newDaemonSite(parallel(t))
			l := s.launch("prompt", query)
			l.attributes = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			p := l.onTerminal(t, 80)
			if name == "with a question" {
				p.sees("[n]o")
			} else {
				p.sees("chunk 3")
			}
			if err := unix.IoctlSetInt(int(p.tty.theirs.Fd()), unix.TIOCVHANGUP, 0); err != nil { // only root may
				require.NoError(t, p.cmd.Process.Signal(syscall.SIGHUP)) // as the shell does
			}
			<-p.ended
			require.Equal(t, 1, p.cmd.ProcessState.ExitCode())
			editor := s.start()
			require.Equal(t, map[string]string{"with a question": "waiting_input", "at work": "running"}[name], editor.session("task-0001").Status)
			editor.call("interruptSession", object{"session_id": "task-0001"}, nil)
			editor.leave()
			s.run("daemon", "stop")
		})
	}
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
		"at a key":             {"permit:1", func(*prompting) {}, ""},
		"at a wrong key":       {"permit:1", func(p *prompting) { p.presses("x", "please type", "Allow? ") }, ""},
		"at a reason":          {"permit:1", func(p *prompting) { p.presses("t", "Why not? ") }, ""},
		"within a reason":      {"permit:1", func(p *prompting) { p.presses("t", "Why not? "); p.presses("use gid\x7ft", "use git") }, " use git"},
		"at a pattern":         {"permit:1", func(p *prompting) { p.presses("p", "goes back: ") }, ""},
		"at a form":            {"quiet form", func(p *prompting) { p.sees("[green]: ") }, ""},
		"at the second field":  {"quiet form", func(p *prompting) { p.sees("[green]: "); p.presses("red\r", "How many (", "): ") }, ""},
		"within a pasted text": {"permit:1", func(p *prompting) { p.presses("\x1b[200~no\nand", "please type", "Allow? ") }, ""},
	} {
		for _, how := range []string{"C-c", "elsewhere"} {
			t.Run(name+", "+how, func(t *testing.T) {
				s := newDaemonSite(parallel(t))
				p := s.talk(t)
				p.sees(idleFooter)
				p.presses(c.query + "\r")
				if !strings.Contains(c.query, "form") {
					p.sees("Allow? ")
				}
				c.keys(p)
				if how == "C-c" {
					p.signal(os.Interrupt)
				} else {
					s.run("session", "interrupt", "1")
				}
				p.sees("interrupted", c.kept, idleFooter)
				if name == "within a pasted text" {
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
	s := newSite(parallel(t))
	writeFile(t, s.root+"/notes", "n")
	p := s.talk(t)
	p.sees(idleFooter)
	p.presses("quiet tools:1 hang\r", "✓ Bash")
	p.presses("quiet later\r", "⧗ quiet later")
	p.presses("quiet now @notes \x13", "the agent does not take this while it works: it is the next prompt", "⧗ quiet now @notes", "⧗ quiet later")
	p.signal(os.Interrupt)
	p.sees("interrupted", "You asked: quiet now", "You asked: quiet later", idleFooter)
	p.leaves()
}

// The title and the input of a tool call may come after its start, as those of claude-agent-acp do.
func TestTheLateTitleOfAToolCallIsShown(t *testing.T) {
	s := newSite(parallel(t))
	claude := members{"claudeCode": members{"toolName": "Bash"}}
	s.agents(played(t, s.home, "late",
		playedStep{Update: members{"sessionUpdate": "tool_call", "toolCallId": "c1", "title": "Terminal", "kind": "execute", "status": "pending", "rawInput": members{}, "_meta": claude}},
		playedStep{Update: members{"sessionUpdate": "tool_call_update", "toolCallId": "c1", "title": "ls -la", "rawInput": members{"command": "ls -la"}, "_meta": claude}},
		playedStep{Update: members{"sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": "completed", "_meta": claude}},
		playedStep{Update: members{"sessionUpdate": "tool_call", "toolCallId": "c2", "title": "Search", "kind": "search", "status": "in_progress"}},
		playedStep{Say: "Meanwhile. "},
		playedStep{Update: members{"sessionUpdate": "tool_call_update", "toolCallId": "c2", "title": "Search for duets"}},
		playedStep{Update: members{"sessionUpdate": "tool_call_update", "toolCallId": "c2", "status": "completed"}},
		playedStep{Say: "Played."}))
	out, err := s.shellCommand("prompt", "--agent", "late", "hello").CombinedOutput()
	require.NoError(t, err)
	assert.Contains(t, string(out), "\n$ ls -la\n✓ ls -la\n● Search\nMeanwhile. \n● Search for duets\n✓ Search for duets\nPlayed.\n")
	p := s.talk(t, "prompt", "--agent", "late", "hello")
	p.sees("$ ls -la", "✓ ls -la", "● Search for duets", "Played.")
	<-p.ended
	assert.NotContains(t, p.tty.printed.String(), "● Terminal")
}
