//go:build unix

package clients

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/term"

	"github.com/duet-rpc/duet-rpc/internal/e2e"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// A prompting is a duet-rpc command on a terminal.
type prompting struct {
	*e2e.Process
	tty  e2e.Terminal
	read int // bytes of the printed text that sees has consumed
}

// startPrompt starts duet-rpc prompt on a terminal.
func startPrompt(s *e2e.Site, t *testing.T, args ...string) *prompting {
	return startShell(s, t, append([]string{"prompt"}, args...)...)
}

// startShell starts a command whose standard input and standard error are a terminal.
func startShell(s *e2e.Site, t *testing.T, args ...string) *prompting {
	tty := e2e.OpenTerminal(t)
	l := s.Launch(args...)
	l.Stdin, l.Stderr = tty.Theirs, tty.Theirs
	return &prompting{Process: l.Start(t), tty: tty}
}

// An editor or CI may pass a pipe that gets no data and never closes. A prompt with arguments does
// not wait for its end.
func TestAPromptGoesWithoutASilentPipe(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	read, _ := e2e.NewPipe(t)
	l := s.Launch("prompt", "--json", "quiet hello")
	l.Stdin = read
	p := l.Start(t)
	out, err := io.ReadAll(p.Stdout)
	require.NoError(t, err)
	<-p.Ended
	assert.Zero(t, p.Cmd.ProcessState.ExitCode())
	assert.Contains(t, string(out), "You asked: quiet hello")
	assert.Contains(t, p.Log.String(), "the prompt is sent without it")
}

// sees waits for texts in this order, after the text of the previous call.
func (p *prompting) sees(texts ...string) {
	p.T.Helper()
	for _, text := range texts {
		p.tty.Printed.Await(p.T, func(printed string) bool {
			i := strings.Index(printed[p.read:], text)
			if i >= 0 {
				p.read += i + len(text)
			}
			return i >= 0
		}, strconv.Quote(text))
	}
}

// types types a line, and waits for texts.
func (p *prompting) types(line string, texts ...string) {
	p.T.Helper()
	p.presses(line+"\n", texts...)
}

// signal sends a signal, such as SIGINT for C-c.
func (p *prompting) signal(sig os.Signal) {
	p.T.Helper()
	require.NoError(p.T, p.Cmd.Process.Signal(sig))
}

// ends waits for the end, and returns standard output and the exit status.
func (p *prompting) ends() (said string, status int) {
	p.T.Helper()
	out, err := io.ReadAll(p.Stdout)
	require.NoError(p.T, err)
	return string(out), p.status()
}

// endsWith waits for the end, requires an exit status, and returns standard output.
func (p *prompting) endsWith(want int) (said string) {
	p.T.Helper()
	said, status := p.ends()
	require.Equal(p.T, want, status, p.tty.Printed)
	return said
}

// A prompt works with its own hub and with an editor's hub.
func TestPromptOnATerminal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		editor bool
	}{{"its own hub", false}, {"an editor's hub", true}} {
		t.Run(c.name, func(t *testing.T) {
			s := e2e.NewSite(e2e.Parallel(t))
			if c.editor {
				editor := s.Open()
				require.NotZero(t, e2e.HubOf(t, editor))
				defer func() {
					editor.AwaitEnd(editor.Await("a session", func(e e2e.Event) bool { return e.Type == "session_status_changed" }).Data.SessionID)
					editor.Leave()
				}()
			}
			p := startPrompt(s, t, "hello")
			p.sees("1.1 · agent scripted · "+s.Root, "? Write demo.txt", "+Turn 1: hello", "[?] Keys: ")
			p.types("maybe", "please type y, n, t, s, p, e or ?")
			p.sees("[?] Keys: ") // the prompt discards earlier input
			p.types("y", "completed; go on with: duet-rpc prompt --continue 1 \"…\"")
			said := p.endsWith(0)
			assert.Contains(t, said, "I wrote demo.txt")
			assert.NotContains(t, p.tty.Printed.String(), "elsewhere")

			p = startPrompt(s, t, "--continue", "last", "more")
			p.sees("[?] Keys: ")
			p.types("t", "Why not? ")
			p.types("not now")
			said = p.endsWith(0)
			assert.Contains(t, said, "Nothing was changed")
			text := e2e.ReadFile(t, s.Root+"/demo.txt")
			assert.Equal(t, "Turn 1: hello\n", text)

			// C-c interrupts.
			p = startPrompt(s, t, "hello")
			p.sees("[?] Keys: ")
			require.NoError(t, p.Cmd.Process.Signal(os.Interrupt))
			assert.Regexp(t, "^\n[^\n]*$", p.screen("interrupting; press C-c again to end at once"), "on a line of its own")
			p.sees("interrupted; go on with")
			p.endsWith(130)

			// A second C-c ends the prompt at once.
			p = startPrompt(s, t, "quiet tools:1 hang")
			p.sees("✓ done") // before the agent works, the first C-c ends the prompt
			require.NoError(t, p.Cmd.Process.Signal(os.Interrupt))
			p.sees("interrupting")
			require.NoError(t, p.Cmd.Process.Signal(os.Interrupt))
			p.sees("left before its end: duet-rpc session show 3.1 shows its time, tokens and cost")
			p.endsWith(130)
		})
	}
}

// The first answer decides a question. Text typed for it does not answer the next question.
func TestPromptAnsweredElsewhere(t *testing.T) {
	s, editor := e2e.NewEditorSite(e2e.Parallel(t))
	p := startPrompt(s, t, "permit:3")
	p.sees("[?] Keys: ")
	asked := editor.Await("a question", func(e e2e.Event) bool { return e.Type == "new_approval" })
	decide := func(e e2e.Event, decision, comment, client string) {
		editor.Call("sendDecision", object{"approval_id": e.Data.ApprovalID, "decision": decision, "comment": comment, "client": client}, nil)
	}
	nextQuestion := func(after e2e.Event) e2e.Event {
		return editor.Await("another question", func(e e2e.Event) bool { return e.Type == "new_approval" && e.Seq > after.Seq })
	}
	decide(asked, "approve", "from afar", "")
	p.sees("allowed in another client: from afar")
	asked = nextQuestion(asked)
	p.sees("[?] Keys: ")
	p.types("y") // possibly meant for the first question
	p.sees("not taken", "[?] Keys: ")
	p.types("y")
	last := nextQuestion(asked)
	p.sees("[?] Keys: ")
	p.types("t", "Why not? ")
	decide(last, "deny", "too late", "VS Code")
	p.sees("denied in VS Code: too late", "completed")
	p.endsWith(0)
	editor.Leave()
}

// A prompt continues with a new hub when its hub dies.
func TestPromptWhoseHubDies(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	editor := s.Start()
	require.NotZero(t, e2e.HubOf(t, editor))
	first := startPrompt(s, t, "quiet permit:1")
	first.sees("[?] Keys: ")
	second := startPrompt(s, t, "quiet permit:1")
	second.sees("[?] Keys: ")
	s.CrashHub()
	for _, p := range []*prompting{first, second} {
		p.sees("the daemon has gone; going on with another one", "· agent scripted · ", "[?] Keys: ")
	}
	for _, p := range []*prompting{first, second} {
		p.types("y") // possibly meant for the earlier question
		p.sees("not taken", "[?] Keys: ")
		p.types("y", "completed")
	}
	for _, p := range []*prompting{first, second} {
		p.endsWith(0)
	}
	editor.Leave()
}

// A stopped hub ends its turns, and their prompts start no other hub.
func TestPromptWhoseHubIsStopped(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	s.Daemon()
	p := startPrompt(s, t, "quiet hang")
	p.sees("— 1.1 · agent scripted · ")
	s.Run("daemon", "stop", "--force")
	p.endsWith(1)
	assert.Zero(t, s.LockHolder(), "no other hub runs")
	assert.Regexp(t, "the daemon has gone; what it ran can be continued|interrupted", p.tty.Printed.String())
	assert.NotContains(t, p.tty.Printed.String(), "going on")
}

// lockedAgent is an agent that opens no session before the user signs in.
const lockedAgent = `#!/bin/sh
in=${0%/*}/in
test "$1" = --login && { echo "a program signs in"; touch "$in"; exit; }
answer() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
while read -r line; do
	id=${line#*'"id":'} id=${id%%,*}
	case $line in
	*'"initialize"'*) answer '"result":{"protocolVersion":1,"agentCapabilities":{},"authMethods":[METHODS]}' ;;
	*'"authenticate"'*) touch "$in"; answer '"result":{}' ;;
	*'"session/new"'*) if test -e "$in"; then answer '"result":{"sessionId":"s"}'; else answer '"error":{"code":-32000,"message":"log in first"}'; fi ;;
	*'"session/prompt"'*)
		words=${line#*'"text":"'} words=${words%%'"'*}
		printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"you said %s\\n"}}}}\n' "$words"
		answer '"result":{"stopReason":"end_turn"}' ;;
	esac
done
`

// Authentication methods of [lockedAgent].
const (
	byBrowser = `{"id":"browser","name":"In a browser"}`
	byProgram = `{"id":"a program","name":"By a program","type":"terminal","args":["--login"]}`
	byKey     = `{"id":"key","name":"By a key","type":"env_var","vars":[{"name":"THEIR_API_KEY"}]}`
)

// addLockedAgent gives the site an agent that requires a login with one of the methods.
func addLockedAgent(s *e2e.Site, methods ...string) {
	s.T.Helper()
	path := filepath.Join(s.Home, "locked")
	testkit.Program(s.T, path, strings.Replace(lockedAgent, "METHODS", strings.Join(methods, ","), 1))
	s.Agents(fmt.Sprintf("[agents.locked]\ncommand = [%q]\n", path))
}

// A user without a login sees the login commands and can run one at once. Then Duet sends the
// prompt again.
func TestPromptOffersToSignIn(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	addLockedAgent(s, byBrowser, byProgram, byKey)
	p := startPrompt(s, t, "--no-color", "--agent", "locked", "hello")
	screen := p.screen("or Return for no: ")
	assert.Contains(t, screen, "failed: locked wants you to log in: log in first.")
	assert.Contains(t, screen, "\n  1  duet-rpc agents login locked --method browser")
	assert.Contains(t, screen, "\n  2  duet-rpc agents login locked --method 'a program'   By a program (in a terminal)\n")
	assert.Contains(t, screen, "  By a key (with a key)\n")
	p.types("7", "or Return for no: ")
	p.types("3", "locked has no THEIR_API_KEY: say in your config.toml", "or Return for no: ")
	p.types("2", "a program signs in", "the same prompt again")
	said := p.endsWith(0)
	assert.Equal(t, "you said hello\n", said, "only the agent's text, without the failed prompt as history")
}

func TestPromptNeedNotSignIn(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(p *prompting){
		"Return": func(p *prompting) { p.types("") },
		"no":     func(p *prompting) { p.types("n") },
		"C-c":    func(p *prompting) { require.NoError(p.T, p.Cmd.Process.Signal(os.Interrupt)) },
	} {
		t.Run(name, func(t *testing.T) {
			s := e2e.NewSite(e2e.Parallel(t))
			addLockedAgent(s, byBrowser)
			p := startPrompt(s, t, "--no-color", "--agent", "locked", "hello")
			p.sees("[y] Yes, or Return for no: ")
			answer(p)
			said := p.endsWith(1)
			assert.Empty(t, said)
		})
	}
	s := e2e.NewSite(t)
	addLockedAgent(s, byBrowser)
	_, err := s.Command("prompt", "--agent", "locked", "hello")
	require.ErrorContains(t, err, "duet-rpc agents login locked --method browser")
	assert.NotContains(t, err.Error(), "Sign in now", "there is no terminal to ask on")
}

// A comment to the agent becomes its next prompt. The command shows that turn to its end and exits
// with the status of the last turn.
func TestPromptFollowsWhatTheAgentIsTold(t *testing.T) {
	t.Parallel()
	ask := e2e.BashCall("make", map[string]any{"command": "make"})
	for name, c := range map[string]struct {
		last   func(p *prompting)
		said   string
		status int
	}{
		"to its end": {func(p *prompting) { p.types("y") }, "[1: no]\n[2: no]\n[3: yes]\n", 0},
		"until C-c":  {func(p *prompting) { require.NoError(p.T, p.Cmd.Process.Signal(os.Interrupt)) }, "[1: no]\n[2: no]\n", 130},
	} {
		t.Run(name, func(t *testing.T) {
			s := e2e.NewSite(e2e.Parallel(t))
			p := startAsking(s, t, ask)
			for range 2 {
				p.sees("[?] Keys: ")
				p.types("t", "What should the agent do? ")
				p.types("use ninja", "the agent receives the comment with its next prompt: 1.")
			}
			screen := p.screen("[?] Keys: ")
			assert.Contains(t, screen, "\n— 1.3 · agent played")
			assert.NotContains(t, screen, "go on with:", "the command continues by itself")
			c.last(p)
			said := p.endsWith(c.status)
			assert.Equal(t, c.said, strings.TrimSuffix(said, "[3: ]\n"))
			assert.Contains(t, p.tty.Printed.String(), "go on with: duet-rpc prompt --continue 1 \"…\"")
		})
	}
}

// A time limit ends a hanging agent, and the prompt reports the limit and how to raise it.
func TestPromptEndsAnAgentThatHangsByItsTime(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	p := startPrompt(s, t, "--no-color", "--agent", "demo", "--timeout", "500ms", "hang")
	p.sees("the time limit is reached")
	p.sees("timed out: it took longer than it may (500ms); raise limits.turn_timeout, give it more with prompt --timeout, or continue it (TIMEOUT)")
	p.endsWith(1)
	p = startPrompt(s, t, "--no-color", "--continue", "last", "--timeout", "600ms", "hang")
	p.sees("longer than it may (600ms)")
	p.endsWith(1)
	s.Daemon()
	defer func() { _, _ = s.Command("daemon", "stop") }()
	list := s.Run("session", "list", "--turns")
	assert.Regexp(t, `(?m)^1\.2 +timed out: TIMEOUT +demo `, list)
}

// A prompt on a terminal asks the user for the key that its agent needs, and does not echo it.
func TestAPromptAsksForTheKeyOfItsAgent(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t), `
[agents.keyed]
driver = "command"
command = ["sh", "-c", "printf %s \"$MY_KEY\" >got; cat >/dev/null"]
keys = { MY_KEY = "myservice" }
`)
	const asks = "Key of myservice (it is not shown; Return for none): "
	p := startPrompt(s, t, "--agent", "keyed", "hello")
	p.sees(asks)
	p.types("s3cret")
	p.endsWith(0)
	got := e2e.ReadFile(t, filepath.Join(s.Root, "got"))
	assert.Equal(t, "s3cret", got)
	assert.NotContains(t, p.tty.Printed.String(), "s3cret")

	p = startPrompt(s, t, "--agent", "keyed", "hello")
	p.sees(asks)
	p.types("", "the client that was asked gave none")
	p.ends()

	p = startPrompt(s, t, "--agent", "keyed", "hello")
	p.sees(asks)
	require.NoError(t, p.Cmd.Process.Signal(os.Interrupt))
	p.sees("interrupted")
	p.ends()
	assert.NotContains(t, p.tty.Printed.String(), "has ended already", "the prompt answers the question before it interrupts the turn")

	// Without a terminal, the prompt answers at once that it has no key.
	s.Refuses("the client that was asked gave none", "prompt", "--agent", "keyed", "hello")
}

// startAsking starts a prompt with an agent that performs these steps.
func startAsking(s *e2e.Site, t *testing.T, steps ...e2e.PlayedStep) *prompting {
	s.Played(steps...)
	return startPrompt(s, t, "--no-color", "--agent", "played", "go")
}

// screen waits for a text and returns the output up to it, from the end of the last seen text.
func (p *prompting) screen(until string) string {
	p.T.Helper()
	from := p.read
	p.sees(until)
	return p.tty.Printed.String()[from:p.read]
}

// The prompt shows the head and the tail of an input that is too long for an event. The user can
// view the whole input.
func TestPromptShowsALongInput(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	s.Env = append(s.Env, "PAGER=cat")
	lines := []string{"make test"}
	for i := range 20_000 {
		lines = append(lines, "echo "+strings.Repeat("x", i%7)+"12345678")
	}
	lines = append(lines, "rm -rf ~")
	command := strings.Join(lines, "\n")
	require.Greater(t, len(command), 128<<10)
	p := startAsking(s, t, e2e.BashCall("Bash", map[string]any{"command": command}))
	screen := p.screen("[?] Keys: ")
	assert.Contains(t, screen, "? $ make test\n")
	assert.Contains(t, screen, "| rm -rf ~\n", "the question shows the end too")
	assert.Regexp(t, `\n… 19,9\d\d more lines, [\d,]+ bytes hidden: v shows all\n`, screen)
	assert.Less(t, strings.Count(screen, "\n"), 30)
	p.types("v")
	all := p.screen("[?] Keys: ")
	for _, line := range lines[1:] {
		require.Contains(t, all, "| "+line+"\n")
	}
	p.types("y")
	said := p.endsWith(0)
	assert.Contains(t, said, "[1: yes]")
}

// A question shows a diff and the parts of the input that are not in it.
func TestPromptShowsTheInputBesideADiff(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	notes := filepath.Join(s.Root, "notes.txt")
	p := startAsking(s, t,
		e2e.WriteCall("Write notes.txt", notes, "", "rm -rf ~\n", map[string]any{"file_path": notes, "content": "rm -rf ~\n"}),
		e2e.WriteCall("Write notes.txt", notes, "", "rm -rf ~\n", map[string]any{"command": "rm -rf ~\n", "file_path": "/etc/passwd", "content": "other"}),
		e2e.WriteCall("Write notes.txt", "/etc/cron.d/x\n+++ b/notes.txt", "", "hello\n", map[string]any{}),
		e2e.WriteCall("Write a.bin", filepath.Join(s.Root, "a.bin"), "", "a\x00b"+strings.Repeat("c", 5000), map[string]any{}),
	)
	screen := p.screen("[?] Keys: ")
	assert.Contains(t, screen, "+++ b/notes.txt\n@@ -0,0 +1 @@\n+rm -rf ~\n")
	assert.NotContains(t, screen, "content", "the diff shows it")
	p.types("y")
	screen = p.screen("[?] Keys: ")
	e2e.RequireParts(t, screen, `  "command":`+"\n    | rm -rf ~\n", `  "file_path": "/etc/passwd"`, `  "content": "other"`)
	p.types("y")
	assert.Contains(t, p.screen("[?] Keys: "), `+++ "b//etc/cron.d/x\n+++ b/notes.txt"`, "a name takes one line")
	p.types("y")
	assert.Regexp(t, `… binary: 0 bytes before, 5,003 bytes after: v shows all`, p.screen("[?] Keys: "))
	p.types("y")
	p.endsWith(0)
}

// A terminal gets no control sequences and no invisible characters from an agent. The prompt writes
// them as code points.
func TestPromptWritesOutWhatIsNotSeen(t *testing.T) {
	t.Parallel()
	unseen := "\u202e\u2066\u200b\ufeff\u00ad\U000e0041\u2028\u3164\x1b[2J\b\u009b\ue000"
	s := e2e.NewSite(t)
	s.Env = append(s.Env, "LC_ALL=C")
	path := filepath.Join(s.Root, "x"+unseen+".txt")
	p := startAsking(s, t,
		e2e.BashCall("run"+unseen+"\n— allowed", map[string]any{"command": "make" + unseen + "test", "x" + unseen: 1}),
		e2e.WriteCall("Write"+unseen, path, "a\n", "b"+unseen+"\n", map[string]any{"note": "line" + unseen + "\nline" + unseen}),
	)
	first := p.screen("[?] Keys: ")
	p.types("y")
	second := p.screen("[?] Keys: ")
	p.types("n")
	p.endsWith(0)
	for _, r := range "\u202e\u2066\u200b\ufeff\u00ad\U000e0041\u2028\u3164\x1b\b\u009b\ue000" {
		assert.NotContains(t, p.tty.Printed.String(), string(r), "%U", r)
	}
	for _, screen := range []string{first, second} {
		for _, mark := range []string{"<U+202E>", "<U+2066>", "<U+200B>", "<U+FEFF>", "<U+E0041>", "<U+3164>", "<U+009B>", "<U+E000>"} {
			assert.Contains(t, screen, mark)
		}
	}
	assert.Contains(t, first, " -- allowed\n  {\"x", "a title takes one line")
	assert.NotContains(t, first, "\n-- allowed")
}

// Only on a terminal does the prompt escape invisible characters in the agent's text.
func TestPromptPrintsProse(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	s.Env = append(s.Env, "LC_ALL=C.UTF-8")
	text := "a\u202eb \x1b[2Jשלום 👩\u200d💻\n"
	s.Played(e2e.PlayedStep{Say: "a\u202e"}, e2e.PlayedStep{Say: "b \x1b"}, e2e.PlayedStep{Say: "[2Jשלום 👩\u200d"}, e2e.PlayedStep{Say: "💻\n"})
	p := startPrompt(s, t, "--agent", "played", "go")
	said, _ := p.ends()
	assert.Equal(t, text, said, "in a pipe")

	tty := e2e.OpenTerminal(t)
	l := s.Launch("prompt", "--agent", "played", "go")
	l.Stdin, l.Stdout = tty.Theirs, tty.Theirs
	<-l.Start(t).Ended
	tty.Printed.AwaitPart(t, "💻")
	assert.Equal(t, "a⟨U+202E⟩b ⟨U+001B⟩[2Jשלום 👩\u200d💻\n", tty.Printed.String())
}

// Text typed before a question does not answer it.
func TestTypedAheadAnswersNothing(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	p := startPrompt(s, t, "slow", "permit:2")
	p.sees("— 1.1 · agent scripted · ")
	p.types("y") // before the first question
	p.types("y", "[?] Keys: ")
	p.presses("yy") // a question takes one key
	p.sees("please type y", "[?] Keys: ")
	p.types("y", "[?] Keys: ")
	time.Sleep(200 * time.Millisecond) // machine: time for a wrong answer, because no event reports its absence
	assert.NotContains(t, p.tty.Printed.String()[p.read:], "✓")
	assert.NotContains(t, p.tty.Printed.String()[p.read:], "That is all")
	p.presses("n", "n\n")
	_, err := p.tty.Ours.WriteString("git status\n") // not a reason for the denial
	require.NoError(t, err)
	p.endsWith(0)
	assert.Equal(t, 3, strings.Count(p.tty.Printed.String(), "[?] Keys: "), p.tty.Printed)
	shown := s.Run("session", "show", "1")
	assert.NotContains(t, shown, "git status")
}

// Text typed before the trust question does not answer it.
func TestTypedAheadTrustsNothing(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	require.NoError(t, os.WriteFile(filepath.Join(s.Root, ".duet.toml"), []byte("[agents.evil]\ncommand = ['evil', '{prompt}']\ntitle = \"a\u3164b\u202e\"\n"), 0o600))
	tty := e2e.OpenTerminal(t)
	_, err := tty.Ours.WriteString("y\n")
	require.NoError(t, err)
	l := s.Launch("trust")
	l.Stdin, l.Stdout, l.Stderr = tty.Theirs, tty.Theirs, tty.Theirs
	p := &prompting{Process: l.Start(t), tty: tty}
	p.sees("Trust it? [y/N] ")
	assert.NotContains(t, tty.Printed.String(), "\u3164")
	p.types("n")
	<-p.Ended
	tty.Printed.AwaitPart(t, "not trusted")
}

// Lists and views escape invisible characters, and JSON does not.
func TestViewsWriteOutWhatIsNotSeen(t *testing.T) {
	t.Parallel()
	unseen := "\u202e\u200b\U000e0041\u3164\x1b[2J"
	s := e2e.NewSite(t)
	s.Env = append(s.Env, "LC_ALL=C")
	s.Played(e2e.BashCall("T"+unseen, map[string]any{"command": "c" + unseen}))
	editor := s.Open()
	launched := editor.Launch("q"+unseen, "played").SessionID
	asked := editor.AwaitQuestion(launched)
	show := func(args ...string) string {
		l := s.Launch(args...)
		p := &prompting{Process: l.Start(t)}
		out, _ := p.ends()
		return out
	}
	for _, args := range [][]string{
		{"approvals"}, {"approvals", "show", asked.Data.ApprovalID}, {"events", "--no-follow"}, {"session", "list"}, {"session", "show", launched}, {"session", "list", "--turns"}, {"session", "show", launched},
	} {
		out := show(args...)
		assert.Contains(t, out, "<U+202E>", args)
		for _, r := range "\u202e\u200b\U000e0041\u3164\x1b" {
			assert.NotContains(t, out, string(r), "%v: %U", args, r)
		}
	}
	var whole struct {
		Approval struct {
			Input struct{ Command string } `json:"tool_input"`
		}
	}
	require.NoError(t, json.Unmarshal([]byte(show("approvals", "show", asked.Data.ApprovalID, "--json")), &whole))
	assert.Equal(t, "c"+unseen, whole.Approval.Input.Command, "JSON has the original text")
	editor.Call("interruptSession", object{"session_id": launched}, nil)
	editor.AwaitEnd(launched)
	editor.Leave()
}

// A suspended prompt repeats its question when it continues.
func TestPromptAsksAgainWhenItGoesOn(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	p := startPrompt(s, t, "hello")
	p.sees("? Write demo.txt", "[?] Keys: ")
	e2e.Suspend(t, p.Cmd.Process.Pid)
	require.NoError(t, p.Cmd.Process.Signal(syscall.SIGCONT))
	p.sees("? Write demo.txt", "+Turn 1: hello", "[?] Keys: ")
	p.types("y", "completed")
	p.endsWith(0)
}

// On a terminal without cursor movement the prompt starts no pager, because a pager would consume
// the next input.
func TestViewWithoutAPager(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	s.Env = append(s.Env, "TERM=dumb", "PAGER=echo a pager; cat >/dev/null")
	p := startAsking(s, t, e2e.BashCall("Run it", map[string]any{"command": "true"}))
	p.sees("[?] Keys: ")
	p.types("v")
	assert.NotContains(t, p.screen("[?] Keys: "), "a pager")
	p.types("y")
	p.ends()
}

// The prompt renders Markdown, also in thoughts, on a terminal with colour and cursor movement.
// Other terminals get the agent's original text.
func TestPromptRendersMarkdown(t *testing.T) {
	t.Parallel()
	const text = "# Head\n\nSome **bold** [x](http://a.b/c)\n"
	for _, c := range []struct {
		name     string
		env      []string
		rendered bool
	}{
		{"a terminal", []string{"TERM=xterm-256color"}, true},
		{"without colour", []string{"TERM=xterm-256color", "NO_COLOR=1"}, false},
		{"without a cursor", []string{"TERM=dumb"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := e2e.NewSite(e2e.Parallel(t))
			s.Env = append(s.Env, c.env...)
			s.Played(e2e.PlayedStep{Update: thought("So **it** is.")}, e2e.PlayedStep{Say: "# Head\n\nSome **bo"}, e2e.PlayedStep{Say: "ld** [x](http://a.b/c)\n"})
			want, thought := text, "✻ So **it** is.\n"
			if c.rendered {
				thought = "\x1b[2m✻ \x1b[0m\x1b[2mSo \x1b[0m\x1b[1;2mit\x1b[0m\x1b[2m is.\x1b[0m\n"
				want = "\x1b[1mbold\x1b[0m \x1b[4mx\x1b[0m\x1b[2m (http://a.b/c)\x1b[0m\n"
			}
			p := startOnTerminal(s, t, 60, "prompt", "--agent", "played", "go")
			p.sees(thought)
			if c.rendered {
				p.sees("\x1b[1;4mHead\x1b[0m\n")
			}
			p.sees(want, "go on with: duet-rpc prompt --continue 1 \"…\"")
			assert.Equal(t, 0, p.status())

			editor := s.Start()
			p = startOnTerminal(s, t, 60, "session", "show", "1")
			p.sees(want)
			assert.Equal(t, 0, p.status())
			s.Env = append(s.Env, "PAGER=cat")
			p = startOnTerminal(s, t, 60, "session", "show", "--transcript", "1")
			if c.rendered {
				p.sees("\x1b[1;2mit\x1b[0m")
			} else {
				p.sees("  (So **it** is.)\n")
			}
			p.sees(want)
			assert.Equal(t, 0, p.status())
			editor.Leave()
		})
	}
}

// The prompt colours a change on a terminal, unless NO_COLOR is set.
func TestPromptColoursChanges(t *testing.T) {
	t.Parallel()
	for want, env := range map[string]string{
		"\x1b[36m@@ -0,0 +1 @@\x1b[0m\n\x1b[32m+Turn 1: hello\x1b[0m\n": "TERM=xterm-256color",
		"\n@@ -0,0 +1 @@\n+Turn 1: hello\n":                             "NO_COLOR=1",
	} {
		s := e2e.NewSite(t)
		s.Env = append(s.Env, "TERM=xterm", env)
		p := startOnTerminal(s, t, 60, "prompt", "--yes", "hello")
		p.sees("? Write demo.txt", want)
		assert.Zero(t, p.status())
	}
}

// thought returns an update with a chunk of the agent's thoughts.
func thought(text string) map[string]any {
	return map[string]any{"sessionUpdate": "agent_thought_chunk", "content": map[string]any{"type": "text", "text": text}}
}

// presses types keys, without Return, and waits for texts.
func (p *prompting) presses(keys string, texts ...string) {
	p.T.Helper()
	_, err := p.tty.Ours.WriteString(keys)
	require.NoError(p.T, err)
	p.sees(texts...)
}

// One key answers a question and appears on the screen. Afterwards the terminal has its earlier
// state.
func TestAKeyAnswersAQuestion(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	p := startPrompt(s, t, "slow", "permit:5")
	p.sees("— 1.1 · agent scripted · ")
	p.presses("y") // before the first question
	p.sees("[?] Keys: ")
	p.presses("x", "please type y, n", "[?] Keys: ")
	p.presses("y", "y\n", "[?] Keys: ")
	p.presses("n") // denies at once
	p.sees("[?] Keys: ")
	p.presses("t", "Why not? ")
	p.types("because", "[?] Keys: ")
	p.presses("\x1b[A", "please type y, n", "[?] Keys: ")
	p.presses("y", "[?] Keys: ")
	p.presses("\x04") // the end of the input
	p.endsWith(0)
	p.tty.IsRestored(t)
	assert.Equal(t, 7, strings.Count(p.tty.Printed.String(), "[?] Keys: "), p.tty.Printed)
}

// Keys typed during the agent's output do not appear in it.
func TestKeysDoNotAppearInTheAgentsWords(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	w := s.Window(80, 24, "prompt", "quiet", "stuck")
	w.Shows("● ")
	w.Types("what is this")
	require.NoError(t, w.Cmd.Process.Signal(os.Interrupt)) // C-c discards what was typed
	w.Shows("interrupting")
	assert.Equal(t, 130, w.Leaves())
	words, _, _ := strings.Cut(w.Printed.String(), "interrupting")
	assert.NotContains(t, words, "what is this")
	ours, fresh, err := pty.Open()
	require.NoError(t, err)
	defer func() { ours.Close(); fresh.Close() }()
	before, err := term.GetState(int(fresh.Fd()))
	require.NoError(t, err)
	after, err := term.GetState(int(w.Keys.Fd()))
	require.NoError(t, err)
	assert.Equal(t, before, after, "the echo is on again")
}

// One key also chooses one of the offered answers.
func TestAKeyChooses(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	p := startPrompt(s, t, "quiet ask")
	p.sees("Choose 1 to 3, [n] Decline: ")
	p.presses("x", "please type 1 to 3 or n", "Choose 1 to 3, [n] Decline: ")
	p.presses("2")
	said := p.endsWith(0)
	assert.Contains(t, said, "green")

	editor := s.Open()
	session := editor.Launch("quiet ask", "scripted").SessionID
	editor.AwaitQuestion(session)
	p = startOnTerminal(s, t, 60, "approvals", "--once")
	p.sees("Choose 1 to 3, [n] Decline, [l] Later, [q] Quit: ")
	p.presses("l", "left open")
	assert.Equal(t, 0, p.status())
	p = startOnTerminal(s, t, 60, "approvals")
	p.sees("[q] Quit: ")
	p.presses("3", "waiting for the next")
	editor.AwaitEnd(session)
	assert.Contains(t, editor.Said(session), "blue")
	require.NoError(t, p.Cmd.Process.Signal(os.Interrupt))
	assert.Equal(t, 130, p.status())
	editor.Leave()
}

// The user edits the file that a tool writes in an editor. The prompt shows the new change and asks again.
func TestAnEditorChangesTheInput(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	s.Env = append(s.Env, `EDITOR=sh -c 'test "${0##*/}" = demo.txt && sed "s/Gone/Went/; s/Turn/Gone/" "$0" >"$0.new" && mv "$0.new" "$0"'`)
	p := startPrompt(s, t, "hello")
	p.sees("[?] Keys: ")
	p.presses("e", "? Write demo.txt", "+Gone 1: hello", "[y] Allow with your edit, [n] Deny, [t] Deny and say why, [e] Edit again: ")
	p.presses("e", "+Went 1: hello", "[e] Edit again: ")
	p.presses("n")
	p.endsWith(0)

	s.Env = append(s.Env, "EDITOR=sed -i.old s/Turn/Gone/")
	p = startPrompt(s, t, "hello")
	p.sees("[?] Keys: ")
	p.presses("e", "+Gone 1: hello", "[e] Edit again: ")
	p.presses("y", "✓ Write demo.txt")
	assert.NotContains(t, p.endsWith(0), "+Gone", "the question has shown the change")

	for editor, says := range map[string]string{"true": "nothing is changed", "false": "the editor: false: exit status 1"} {
		s.Env = append(s.Env, "EDITOR="+editor)
		p = startPrompt(s, t, "hello")
		p.sees("[?] Keys: ")
		p.presses("e", says, "[?] Keys: ")
		p.presses("y")
		p.endsWith(0)
	}
}

// startOnTerminal starts a command whose standard streams are a terminal with this many columns.
func startOnTerminal(s *e2e.Site, t *testing.T, columns uint16, args ...string) *prompting {
	t.Helper()
	return onTerminal(s.Launch(args...), t, columns)
}

func onTerminal(l e2e.Launch, t *testing.T, columns uint16) *prompting {
	t.Helper()
	tty := e2e.OpenTerminal(t)
	require.NoError(t, pty.Setsize(tty.Theirs, &pty.Winsize{Rows: 24, Cols: columns}))
	l.Stdin, l.Stdout, l.Stderr = tty.Theirs, tty.Theirs, tty.Theirs
	return &prompting{Process: l.Start(t), tty: tty}
}

// status waits for the end of the process and for all its output, and returns the exit status.
func (p *prompting) status() int {
	<-p.Ended
	const mark = "\x00"
	if _, err := io.WriteString(p.tty.Theirs, mark); err == nil {
		p.tty.Printed.AwaitPart(p.T, mark)
	}
	return p.Cmd.ProcessState.ExitCode()
}

// `duet-rpc prompt` reports a suspended hub to the user. The hub handles the user's answer when it
// continues.
func TestPromptTellsOfAHubThatDoesNotAnswer(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	pid := s.Daemon()
	p := startPrompt(s, t, e2e.Lately, "hello")
	p.sees("[?] Keys: ")
	e2e.SuspendHub(t, pid)
	p.types("y", fmt.Sprintf("— the daemon (process %d) does not answer; `duet-rpc daemon stop --force` ends it", pid))
	require.NoError(t, syscall.Kill(pid, syscall.SIGCONT))
	p.sees("— the daemon answers again", "completed")
	said := p.endsWith(0)
	assert.Contains(t, said, "I wrote demo.txt")
	s.Run("daemon", "stop")
}
