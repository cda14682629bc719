//go:build unix

package main_test

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/term"

	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// A prompting is a duet-rpc command on a terminal.
type prompting struct {
	*process
	tty  terminal
	read int // bytes of the printed text that sees has consumed
}

// prompt starts duet-rpc prompt on a terminal.
func (s *site) prompt(t *testing.T, args ...string) *prompting {
	return s.shell(t, append([]string{"prompt"}, args...)...)
}

// shell starts a command whose standard input and standard error are a terminal.
func (s *site) shell(t *testing.T, args ...string) *prompting {
	tty := openTerminal(t)
	l := s.launch(args...)
	l.stdin, l.stderr = tty.theirs, tty.theirs
	return &prompting{process: l.start(t), tty: tty}
}

// An editor or CI may pass a pipe that gets no data and never closes. A prompt with arguments does
// not wait for its end.
func TestAPromptGoesWithoutASilentPipe(t *testing.T) {
	s := newSite(parallel(t))
	read, _ := newPipe(t)
	l := s.launch("prompt", "--json", "quiet hello")
	l.stdin = read
	p := l.start(t)
	out, err := io.ReadAll(p.stdout)
	require.NoError(t, err)
	<-p.ended
	assert.Zero(t, p.cmd.ProcessState.ExitCode())
	assert.Contains(t, string(out), "You asked: quiet hello")
	assert.Contains(t, p.log.String(), "the prompt is sent without it")
}

// sees waits for texts in this order, after the text of the previous call.
func (p *prompting) sees(texts ...string) {
	p.t.Helper()
	for _, text := range texts {
		p.tty.printed.Await(p.t, func(printed string) bool {
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
	p.t.Helper()
	p.presses(line+"\n", texts...)
}

// ends waits for the end, and returns standard output and the exit status.
func (p *prompting) ends() (said string, status int) {
	p.t.Helper()
	out, err := io.ReadAll(p.stdout)
	require.NoError(p.t, err)
	return string(out), p.status()
}

// endsWith waits for the end, requires an exit status, and returns standard output.
func (p *prompting) endsWith(want int) (said string) {
	p.t.Helper()
	said, status := p.ends()
	require.Equal(p.t, want, status, p.tty.printed)
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
			s := newSite(parallel(t))
			if c.editor {
				editor := s.open()
				require.NotZero(t, hubOf(t, editor))
				defer func() {
					editor.awaitEnd(editor.await("a session", func(e event) bool { return e.Type == "session_status_changed" }).Data.SessionID)
					editor.leave()
				}()
			}
			p := s.prompt(t, "hello")
			p.sees("1.1 · agent scripted · "+s.root, "? Write demo.txt", "+Turn 1: hello", "Allow? ")
			p.types("maybe", "please type y, n, t, a, p or e")
			p.sees("Allow? ") // the prompt discards earlier input
			p.types("y", "completed; go on with: duet-rpc prompt --continue 1 \"…\"")
			said := p.endsWith(0)
			assert.Contains(t, said, "I wrote demo.txt")
			assert.NotContains(t, p.tty.printed.String(), "elsewhere")

			p = s.prompt(t, "--continue", "last", "more")
			p.sees("Allow? ")
			p.types("t", "Why not? ")
			p.types("not now")
			said = p.endsWith(0)
			assert.Contains(t, said, "Nothing was changed")
			text := readFile(t, s.root+"/demo.txt")
			assert.Equal(t, "Turn 1: hello\n", text)

			// C-c interrupts.
			p = s.prompt(t, "hello")
			p.sees("[e]dit: ")
			require.NoError(t, p.cmd.Process.Signal(os.Interrupt))
			assert.Regexp(t, "^\n[^\n]*$", p.screen("interrupting; press C-c again to end at once"), "on a line of its own")
			p.sees("interrupted; go on with")
			p.endsWith(130)

			// A second C-c ends the prompt at once.
			p = s.prompt(t, "quiet tools:1 hang")
			p.sees("✓ Bash") // before the agent works, the first C-c ends the prompt
			require.NoError(t, p.cmd.Process.Signal(os.Interrupt))
			p.sees("interrupting")
			require.NoError(t, p.cmd.Process.Signal(os.Interrupt))
			p.sees("left before its end: duet-rpc session show 3.1 shows its time, tokens and cost")
			p.endsWith(130)
		})
	}
}

// The first answer decides a question. Text typed for it does not answer the next question.
func TestPromptAnsweredElsewhere(t *testing.T) {
	s, editor := newEditorSite(parallel(t))
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
	p.types("y") // possibly meant for the first question
	p.sees("not taken", "Allow? ")
	p.types("y")
	last := nextQuestion(asked)
	p.sees("Allow? ")
	p.types("t", "Why not? ")
	decide(last, "deny", "too late", "VS Code")
	p.sees("denied in VS Code: too late", "completed")
	p.endsWith(0)
	editor.leave()
}

// A prompt continues with a new hub when its hub dies.
func TestPromptWhoseHubDies(t *testing.T) {
	s := newSite(parallel(t))
	editor := s.start()
	require.NotZero(t, hubOf(t, editor))
	first := s.prompt(t, "quiet permit:1")
	first.sees("Allow? ")
	second := s.prompt(t, "quiet permit:1")
	second.sees("Allow? ")
	s.crashHub()
	for _, p := range []*prompting{first, second} {
		p.sees("the hub has gone; going on with another one", "· agent scripted · ", "Allow? ")
	}
	for _, p := range []*prompting{first, second} {
		p.types("y") // possibly meant for the earlier question
		p.sees("not taken", "Allow? ")
		p.types("y", "completed")
	}
	for _, p := range []*prompting{first, second} {
		p.endsWith(0)
	}
	editor.leave()
}

// A stopped hub ends its runs, and their prompts start no other hub.
func TestPromptWhoseHubIsStopped(t *testing.T) {
	s := newSite(parallel(t))
	s.daemon()
	p := s.prompt(t, "quiet hang")
	p.sees("— 1.1 · agent scripted · ")
	s.run("daemon", "stop", "--force")
	p.endsWith(1)
	assert.Zero(t, s.lockHolder(), "no other hub runs")
	assert.Regexp(t, "the hub has gone; what it ran can be continued|interrupted", p.tty.printed.String())
	assert.NotContains(t, p.tty.printed.String(), "going on")
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

// locked gives the site an agent that requires a login with one of the methods.
func (s *site) locked(methods ...string) {
	s.t.Helper()
	path := filepath.Join(s.home, "locked")
	testkit.Program(s.t, path, strings.Replace(lockedAgent, "METHODS", strings.Join(methods, ","), 1))
	s.agents(fmt.Sprintf("[agents.locked]\ncommand = [%q]\n", path))
}

// A user without a login sees the login commands and can run one at once. Then Duet sends the
// prompt again.
func TestPromptOffersToSignIn(t *testing.T) {
	s := newSite(parallel(t))
	s.locked(byBrowser, byProgram, byKey)
	p := s.prompt(t, "--no-color", "--agent", "locked", "hello")
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
		"C-c":    func(p *prompting) { require.NoError(p.t, p.cmd.Process.Signal(os.Interrupt)) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(parallel(t))
			s.locked(byBrowser)
			p := s.prompt(t, "--no-color", "--agent", "locked", "hello")
			p.sees("[y]es, or Return for no: ")
			answer(p)
			said := p.endsWith(1)
			assert.Empty(t, said)
		})
	}
	s := newSite(t)
	s.locked(byBrowser)
	_, err := s.command("prompt", "--agent", "locked", "hello")
	require.ErrorContains(t, err, "duet-rpc agents login locked --method browser")
	assert.NotContains(t, err.Error(), "Sign in now", "there is no terminal to ask on")
}

// A comment to the agent becomes its next prompt. The command shows that run to its end and exits
// with the status of the last run.
func TestPromptFollowsWhatTheAgentIsTold(t *testing.T) {
	t.Parallel()
	ask := bashCall("make", map[string]any{"command": "make"})
	for name, c := range map[string]struct {
		last   func(p *prompting)
		said   string
		status int
	}{
		"to its end": {func(p *prompting) { p.types("y") }, "[1: no]\n[2: no]\n[3: yes]\n", 0},
		"until C-c":  {func(p *prompting) { require.NoError(p.t, p.cmd.Process.Signal(os.Interrupt)) }, "[1: no]\n[2: no]\n", 130},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(parallel(t))
			p := s.asks(t, ask)
			for range 2 {
				p.sees("Allow? ")
				p.types("t", "What should the agent do? ")
				p.types("use ninja", "the agent receives the comment with its next prompt: 1.")
			}
			screen := p.screen("Allow? ")
			assert.Contains(t, screen, "\n— 1.3 · agent played")
			assert.NotContains(t, screen, "go on with:", "the command continues by itself")
			c.last(p)
			said := p.endsWith(c.status)
			assert.Equal(t, c.said, strings.TrimSuffix(said, "[3: ]\n"))
			assert.Contains(t, p.tty.printed.String(), "go on with: duet-rpc prompt --continue 1 \"…\"")
		})
	}
}

// A time limit ends a hanging agent, and the prompt reports the limit and how to raise it.
func TestPromptEndsAnAgentThatHangsByItsTime(t *testing.T) {
	s := newSite(parallel(t))
	p := s.prompt(t, "--no-color", "--agent", "demo", "--timeout", "500ms", "hang")
	p.sees("the time limit is reached")
	p.sees("timed out: it took longer than it may (500ms); raise limits.turn_timeout, give it more with prompt --timeout, or continue it (TIMEOUT)")
	p.endsWith(1)
	p = s.prompt(t, "--no-color", "--continue", "last", "--timeout", "600ms", "hang")
	p.sees("longer than it may (600ms)")
	p.endsWith(1)
	s.daemon()
	defer func() { _, _ = s.command("daemon", "stop") }()
	list := s.run("task", "list")
	assert.Regexp(t, `(?m)^1\.2 +timed out: TIMEOUT +demo `, list)
}

// A prompt on a terminal asks the user for the key that its agent needs, and does not echo it.
func TestAPromptAsksForTheKeyOfItsAgent(t *testing.T) {
	s := newSite(parallel(t), `
[agents.keyed]
driver = "command"
command = ["sh", "-c", "printf %s \"$MY_KEY\" >got; cat >/dev/null"]
keys = { MY_KEY = "myservice" }
`)
	const asks = "Key of myservice (it is not shown; Return for none): "
	p := s.prompt(t, "--agent", "keyed", "hello")
	p.sees(asks)
	p.types("s3cret")
	p.endsWith(0)
	got := readFile(t, filepath.Join(s.root, "got"))
	assert.Equal(t, "s3cret", got)
	assert.NotContains(t, p.tty.printed.String(), "s3cret")

	p = s.prompt(t, "--agent", "keyed", "hello")
	p.sees(asks)
	p.types("", "the client that was asked gave none")
	p.ends()

	p = s.prompt(t, "--agent", "keyed", "hello")
	p.sees(asks)
	require.NoError(t, p.cmd.Process.Signal(os.Interrupt))
	p.sees("interrupted")
	p.ends()
	assert.NotContains(t, p.tty.printed.String(), "has ended already", "the prompt answers the question before it interrupts the run")

	// Without a terminal, the prompt answers at once that it has no key.
	s.refuses("the client that was asked gave none", "prompt", "--agent", "keyed", "hello")
}

// played adds the agent "played", which performs these steps for every prompt.
func (s *site) played(steps ...playedStep) {
	s.t.Helper()
	self, err := os.Executable()
	require.NoError(s.t, err)
	raw, err := json.Marshal(steps)
	require.NoError(s.t, err)
	file := filepath.Join(s.home, "play.json")
	require.NoError(s.t, os.WriteFile(file, raw, 0o600))
	s.agents(fmt.Sprintf("[agents.played]\ndriver = \"acp\"\ncommand = [%q]\nenv = { %s = %q }\n", self, playedVariable, file))
}

// asks starts a prompt with an agent that performs these steps.
func (s *site) asks(t *testing.T, steps ...playedStep) *prompting {
	s.played(steps...)
	return s.prompt(t, "--no-color", "--agent", "played", "go")
}

// screen waits for a text and returns the output up to it, from the end of the last seen text.
func (p *prompting) screen(until string) string {
	p.t.Helper()
	from := p.read
	p.sees(until)
	return p.tty.printed.String()[from:p.read]
}

// The prompt shows the head and the tail of an input that is too long for an event. The user can
// view the whole input.
func TestPromptShowsALongInput(t *testing.T) {
	s := newSite(parallel(t))
	s.env = append(s.env, "PAGER=cat")
	lines := []string{"make test"}
	for i := range 20_000 {
		lines = append(lines, "echo "+strings.Repeat("x", i%7)+"12345678")
	}
	lines = append(lines, "rm -rf ~")
	command := strings.Join(lines, "\n")
	require.Greater(t, len(command), 128<<10)
	p := s.asks(t, bashCall("Bash", map[string]any{"command": command}))
	screen := p.screen("[v]iew all: ")
	assert.Contains(t, screen, "? $ make test\n")
	assert.Contains(t, screen, "| rm -rf ~\n", "the question shows the end too")
	assert.Regexp(t, `\n… 19,9\d\d more lines, [\d,]+ bytes hidden: v shows all\n`, screen)
	assert.Less(t, strings.Count(screen, "\n"), 30)
	p.types("v")
	all := p.screen("[v]iew all: ")
	for _, line := range lines[1:] {
		require.Contains(t, all, "| "+line+"\n")
	}
	p.types("y")
	said := p.endsWith(0)
	assert.Contains(t, said, "[1: yes]")
}

// A question shows a diff and the parts of the input that are not in it.
func TestPromptShowsTheInputBesideADiff(t *testing.T) {
	s := newSite(parallel(t))
	notes := filepath.Join(s.root, "notes.txt")
	p := s.asks(t,
		writeCall("Write notes.txt", notes, "", "rm -rf ~\n", map[string]any{"file_path": notes, "content": "rm -rf ~\n"}),
		writeCall("Write notes.txt", notes, "", "rm -rf ~\n", map[string]any{"command": "rm -rf ~\n", "file_path": "/etc/passwd", "content": "other"}),
		writeCall("Write notes.txt", "/etc/cron.d/x\n+++ b/notes.txt", "", "hello\n", map[string]any{}),
		writeCall("Write a.bin", filepath.Join(s.root, "a.bin"), "", "a\x00b"+strings.Repeat("c", 5000), map[string]any{}),
	)
	screen := p.screen("Allow? ")
	assert.Contains(t, screen, "+++ b/notes.txt\n@@ -0,0 +1 @@\n+rm -rf ~\n")
	assert.NotContains(t, screen, "content", "the diff shows it")
	p.types("y")
	screen = p.screen("Allow? ")
	requireParts(t, screen, `  "command":`+"\n    | rm -rf ~\n", `  "file_path": "/etc/passwd"`, `  "content": "other"`)
	p.types("y")
	assert.Contains(t, p.screen("Allow? "), `+++ "b//etc/cron.d/x\n+++ b/notes.txt"`, "a name takes one line")
	p.types("y")
	assert.Regexp(t, `… binary: 0 bytes before, 5,003 bytes after: v shows all`, p.screen("[v]iew all: "))
	p.types("y")
	p.endsWith(0)
}

// A terminal gets no control sequences and no invisible characters from an agent. The prompt writes
// them as code points.
func TestPromptWritesOutWhatIsNotSeen(t *testing.T) {
	t.Parallel()
	unseen := "\u202e\u2066\u200b\ufeff\u00ad\U000e0041\u2028\u3164\x1b[2J\b\u009b\ue000"
	s := newSite(t)
	s.env = append(s.env, "LC_ALL=C")
	path := filepath.Join(s.root, "x"+unseen+".txt")
	p := s.asks(t,
		bashCall("run"+unseen+"\n— allowed", map[string]any{"command": "make" + unseen + "test", "x" + unseen: 1}),
		writeCall("Write"+unseen, path, "a\n", "b"+unseen+"\n", map[string]any{"note": "line" + unseen + "\nline" + unseen}),
	)
	first := p.screen("Allow? ")
	p.types("y")
	second := p.screen("Allow? ")
	p.types("n")
	p.endsWith(0)
	for _, r := range "\u202e\u2066\u200b\ufeff\u00ad\U000e0041\u2028\u3164\x1b\b\u009b\ue000" {
		assert.NotContains(t, p.tty.printed.String(), string(r), "%U", r)
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
	s := newSite(parallel(t))
	s.env = append(s.env, "LC_ALL=C.UTF-8")
	text := "a\u202eb \x1b[2Jשלום 👩\u200d💻\n"
	s.played(playedStep{Say: "a\u202e"}, playedStep{Say: "b \x1b"}, playedStep{Say: "[2Jשלום 👩\u200d"}, playedStep{Say: "💻\n"})
	p := s.prompt(t, "--agent", "played", "go")
	said, _ := p.ends()
	assert.Equal(t, text, said, "in a pipe")

	tty := openTerminal(t)
	l := s.launch("prompt", "--agent", "played", "go")
	l.stdin, l.stdout = tty.theirs, tty.theirs
	<-l.start(t).ended
	tty.printed.AwaitPart(t, "💻")
	assert.Equal(t, "a⟨U+202E⟩b ⟨U+001B⟩[2Jשלום 👩\u200d💻\n", tty.printed.String())
}

// Text typed before a question does not answer it.
func TestTypedAheadAnswersNothing(t *testing.T) {
	s := newSite(parallel(t))
	p := s.prompt(t, "slow", "permit:2")
	p.sees("— 1.1 · agent scripted · ")
	p.types("y") // before the first question
	p.types("y", "Allow? ")
	p.presses("yy") // a question takes one key
	p.sees("please type y", "Allow? ")
	p.types("y", "Allow? ")
	time.Sleep(200 * time.Millisecond) // machine: time for a wrong answer, because no event reports its absence
	assert.NotContains(t, p.tty.printed.String()[p.read:], "✓")
	assert.NotContains(t, p.tty.printed.String()[p.read:], "That is all")
	p.presses("n", "n\n")
	_, err := p.tty.ours.WriteString("git status\n") // not a reason for the denial
	require.NoError(t, err)
	p.endsWith(0)
	assert.Equal(t, 3, strings.Count(p.tty.printed.String(), "Allow? "), p.tty.printed)
	shown := s.run("session", "show", "1")
	assert.NotContains(t, shown, "git status")
}

// Text typed before the trust question does not answer it.
func TestTypedAheadTrustsNothing(t *testing.T) {
	s := newSite(parallel(t))
	require.NoError(t, os.WriteFile(filepath.Join(s.root, ".duet.toml"), []byte("[agents.evil]\ncommand = ['evil', '{prompt}']\ntitle = \"a\u3164b\u202e\"\n"), 0o600))
	tty := openTerminal(t)
	_, err := tty.ours.WriteString("y\n")
	require.NoError(t, err)
	l := s.launch("trust")
	l.stdin, l.stdout, l.stderr = tty.theirs, tty.theirs, tty.theirs
	p := &prompting{process: l.start(t), tty: tty}
	p.sees("Trust it? [y/N] ")
	assert.NotContains(t, tty.printed.String(), "\u3164")
	p.types("n")
	<-p.ended
	tty.printed.AwaitPart(t, "not trusted")
}

// Lists and views escape invisible characters, and JSON does not.
func TestViewsWriteOutWhatIsNotSeen(t *testing.T) {
	t.Parallel()
	unseen := "\u202e\u200b\U000e0041\u3164\x1b[2J"
	s := newSite(t)
	s.env = append(s.env, "LC_ALL=C")
	s.played(bashCall("T"+unseen, map[string]any{"command": "c" + unseen}))
	editor := s.open()
	launched := editor.launch("q"+unseen, "played").SessionID
	asked := editor.awaitQuestion(launched)
	show := func(args ...string) string {
		l := s.launch(args...)
		p := &prompting{process: l.start(t)}
		out, _ := p.ends()
		return out
	}
	for _, args := range [][]string{
		{"approvals"}, {"approvals", "show", asked.Data.ApprovalID}, {"events", "--no-follow"}, {"session", "list"}, {"session", "show", launched}, {"task", "list"}, {"task", "get", launched},
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
	editor.call("interruptSession", object{"session_id": launched}, nil)
	editor.awaitEnd(launched)
	editor.leave()
}

// A suspended prompt repeats its question when it continues.
func TestPromptAsksAgainWhenItGoesOn(t *testing.T) {
	s := newSite(parallel(t))
	p := s.prompt(t, "hello")
	p.sees("? Write demo.txt", "Allow? ")
	suspend(t, p.cmd.Process.Pid)
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGCONT))
	p.sees("? Write demo.txt", "+Turn 1: hello", "Allow? ")
	p.types("y", "completed")
	p.endsWith(0)
}

// On a terminal without cursor movement the prompt starts no pager, because a pager would consume
// the next input.
func TestViewWithoutAPager(t *testing.T) {
	s := newSite(parallel(t))
	s.env = append(s.env, "TERM=dumb", "PAGER=echo a pager; cat >/dev/null")
	p := s.asks(t, bashCall("Run it", map[string]any{"command": "true"}))
	p.sees("Allow? ")
	p.types("v")
	assert.NotContains(t, p.screen("Allow? "), "a pager")
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
			s := newSite(parallel(t))
			s.env = append(s.env, c.env...)
			s.played(playedStep{Update: thought("So **it** is.")}, playedStep{Say: "# Head\n\nSome **bo"}, playedStep{Say: "ld** [x](http://a.b/c)\n"})
			want, thought := text, "✻ So **it** is.\n"
			if c.rendered {
				thought = "\x1b[2m✻ \x1b[0m\x1b[2mSo \x1b[0m\x1b[1;2mit\x1b[0m\x1b[2m is.\x1b[0m\n"
				want = "\x1b[1mbold\x1b[0m \x1b[4mx\x1b[0m\x1b[2m (http://a.b/c)\x1b[0m\n"
			}
			p := s.onTerminal(t, 60, "prompt", "--agent", "played", "go")
			p.sees(thought)
			if c.rendered {
				p.sees("\x1b[1;4mHead\x1b[0m\n")
			}
			p.sees(want, "go on with: duet-rpc prompt --continue 1 \"…\"")
			assert.Equal(t, 0, p.status())

			editor := s.start()
			p = s.onTerminal(t, 60, "session", "show", "1")
			p.sees(want)
			assert.Equal(t, 0, p.status())
			s.env = append(s.env, "PAGER=cat")
			p = s.onTerminal(t, 60, "session", "show", "--transcript", "1")
			if c.rendered {
				p.sees("\x1b[1;2mit\x1b[0m")
			} else {
				p.sees("  (So **it** is.)\n")
			}
			p.sees(want)
			assert.Equal(t, 0, p.status())
			editor.leave()
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
		s := newSite(t)
		s.env = append(s.env, "TERM=xterm", env)
		p := s.onTerminal(t, 60, "prompt", "--yes", "hello")
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
	p.t.Helper()
	_, err := p.tty.ours.WriteString(keys)
	require.NoError(p.t, err)
	p.sees(texts...)
}

// One key answers a question and appears on the screen. Afterwards the terminal has its earlier
// state.
func TestAKeyAnswersAQuestion(t *testing.T) {
	s := newSite(parallel(t))
	p := s.prompt(t, "slow", "permit:5")
	was, err := term.GetState(int(p.tty.theirs.Fd()))
	require.NoError(t, err)
	p.sees("— 1.1 · agent scripted · ")
	p.presses("y") // before the first question
	p.sees("Allow? ")
	p.presses("x", "please type y, n", "Allow? ")
	p.presses("y", ": y\n", "Allow? ")
	p.presses("n") // denies at once
	p.sees("Allow? ")
	p.presses("t", "Why not? ")
	p.types("because", "Allow? ")
	p.presses("\x1b[A", "please type y, n", "Allow? ")
	p.presses("y", "Allow? ")
	p.presses("\x04") // the end of the input
	p.endsWith(0)
	now, err := term.GetState(int(p.tty.theirs.Fd()))
	require.NoError(t, err)
	assert.Equal(t, was, now)
	assert.Equal(t, 7, strings.Count(p.tty.printed.String(), "Allow? "), p.tty.printed)
}

// Keys typed during the agent's output do not appear in it.
func TestKeysDoNotAppearInTheAgentsWords(t *testing.T) {
	s := newSite(parallel(t))
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

// One key also chooses one of the offered answers.
func TestAKeyChooses(t *testing.T) {
	s := newSite(parallel(t))
	p := s.prompt(t, "quiet ask")
	p.sees("Choose 1 to 3, . for none of them: ")
	p.presses("x", "please type 1 to 3, . for none of them", "Choose 1 to 3, . for none of them: ")
	p.presses("2")
	said := p.endsWith(0)
	assert.Contains(t, said, "green")

	editor := s.open()
	session := editor.launch("quiet ask", "scripted").SessionID
	editor.awaitQuestion(session)
	p = s.onTerminal(t, 60, "approvals", "--once")
	p.sees("Choose 1 to 3, . for none of them, [s]kip, [q]uit: ")
	p.presses("s", "left open")
	assert.Equal(t, 0, p.status())
	p = s.onTerminal(t, 60, "approvals")
	p.sees("[q]uit: ")
	p.presses("3", "waiting for the next")
	editor.awaitEnd(session)
	assert.Contains(t, editor.conversation(session), "blue")
	require.NoError(t, p.cmd.Process.Signal(os.Interrupt))
	assert.Equal(t, 130, p.status())
	editor.leave()
}

// The user edits the input of a tool in an editor. The prompt shows the new input and asks again.
func TestAnEditorChangesTheInput(t *testing.T) {
	s := newSite(parallel(t))
	s.env = append(s.env, `EDITOR=sh -c 'grep -q Gone "$0" && echo "{" >"$0" || sed s/Turn/Gone/ "$0" >"$0.new" && test -s "$0.new" && mv "$0.new" "$0"; true'`)
	p := s.prompt(t, "hello")
	p.sees("[e]dit: ")
	p.presses("e", "| Gone 1: hello\n", "Allow it with this input? [y]es, [n]o, [t]ell why not, [e]dit again: ")
	p.presses("e", "that is no JSON object", "[e]dit: ")
	p.presses("n")
	p.endsWith(0)

	s.env = append(s.env, "EDITOR=sed -i.old s/Turn/Gone/")
	p = s.prompt(t, "hello")
	p.sees("[e]dit: ")
	p.presses("e", "[e]dit again: ")
	p.presses("y", "+Gone 1: hello")
	p.endsWith(0)

	for editor, says := range map[string]string{"true": "the input is unchanged", "false": "the editor: false: exit status 1"} {
		s.env = append(s.env, "EDITOR="+editor)
		p = s.prompt(t, "hello")
		p.sees("[e]dit: ")
		p.presses("e", says, "[e]dit: ")
		p.presses("y")
		p.endsWith(0)
	}
}

// onTerminal starts a command whose standard streams are a terminal with this many columns.
func (s *site) onTerminal(t *testing.T, columns uint16, args ...string) *prompting {
	t.Helper()
	return s.launch(args...).onTerminal(t, columns)
}

func (l launch) onTerminal(t *testing.T, columns uint16) *prompting {
	t.Helper()
	tty := openTerminal(t)
	require.NoError(t, pty.Setsize(tty.theirs, &pty.Winsize{Rows: 24, Cols: columns}))
	l.stdin, l.stdout, l.stderr = tty.theirs, tty.theirs, tty.theirs
	return &prompting{process: l.start(t), tty: tty}
}

// status waits for the end of the process and for all its output, and returns the exit status.
func (p *prompting) status() int {
	<-p.ended
	const mark = "\x00"
	if _, err := io.WriteString(p.tty.theirs, mark); err == nil {
		p.tty.printed.AwaitPart(p.t, mark)
	}
	return p.cmd.ProcessState.ExitCode()
}

// On a terminal, duet-rpc approvals asks the open questions one after the other, and then waits for
// the next one.
func TestApprovalsOnATerminal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		env  []string
	}{{"without a cursor", []string{"TERM=dumb"}}, {"at 60 columns", []string{"TERM=xterm-256color"}}, {"without colour", []string{"TERM=xterm-256color", "NO_COLOR=1"}}} {
		t.Run(c.name, func(t *testing.T) {
			s, editor := newEditorSite(parallel(t))
			first := editor.launch("hello", "scripted").SessionID
			editor.awaitQuestion(first)
			second := editor.launch("permit:1", "scripted").SessionID
			editor.awaitQuestion(second)
			s.env = append(s.env, c.env...)
			p := s.onTerminal(t, 60, "approvals")
			p.sees("1 other waits", "+Turn 1: hello", "[q]uit: ")
			p.presses("y", "? $ echo 1", "[q]uit: ")
			p.presses("s", "left open")
			p.sees("no other question is open (1 question left); waiting for") // the line ends here
			editor.awaitEnd(first)
			third := editor.launch("permit:1", "scripted").SessionID
			p.sees("[q]uit: ")
			editor.call("interruptSession", object{"session_id": third}, nil) // another client is faster
			p.sees("no other question is open (1 question left); waiting for")
			fourth := editor.launch("permit:1", "scripted").SessionID
			p.sees("[q]uit: ")
			p.presses("n") // possibly meant for the closed question
			p.sees("not taken", "[q]uit: ")
			p.presses("n", "no other question is open (1 question left); waiting for")
			editor.awaitEnd(fourth)
			p.presses("\x03") // a raw terminal passes C-c as a key
			require.NoError(t, p.cmd.Process.Signal(os.Interrupt))
			assert.Equal(t, 130, p.status(), p.tty.printed)
			for line := range strings.Lines(p.tty.printed.String()) {
				if strings.Contains(line, "Allow?") || strings.Contains(line, "[q]uit") {
					assert.LessOrEqual(t, len(strings.TrimRight(line, "\n")), 60, line)
				}
			}
			if c.name != "at 60 columns" {
				assert.NotContains(t, strings.ReplaceAll(p.tty.printed.String(), "\r\x1b[J", ""), escape)
			}

			p = s.onTerminal(t, 60, "approvals")
			p.sees("[q]uit: ")
			p.presses("q")
			assert.Equal(t, 0, p.status(), p.tty.printed)
			assert.Equal(t, 1, strings.Count(p.tty.printed.String(), "Allow?"), "approvals asks a skipped question once: %s", p.tty.printed)

			p = s.onTerminal(t, 60, "approvals", "--once")
			p.sees("[q]uit: ")
			p.presses("y")
			assert.Equal(t, 0, p.status(), p.tty.printed)
			editor.awaitEnd(second)
			p = s.onTerminal(t, 60, "approvals", "--list")
			assert.Equal(t, 0, p.status())
			p.sees("no question is open: no agent waits for an answer")
			editor.leave()
		})
	}
}

// Several commands may start concurrently without a running hub.
func TestCommandsAtOnce(t *testing.T) {
	s := newSite(parallel(t))
	s.run("prompt", "--yes", "quiet hello")
	var changing sync.WaitGroup
	for i := range 6 {
		changing.Go(func() {
			_, err := s.command("session", "rename", "1", fmt.Sprintf("Title %d", i))
			assert.NoError(t, err)
		})
	}
	changing.Go(func() {
		_, err := s.command("prompt", "--yes", "quiet there")
		assert.NoError(t, err)
	})
	changing.Wait()
	out := s.run("session", "list")
	assert.Regexp(t, `(?m)^1 .* Title \d$`, out)
	assert.Regexp(t, `(?m)^2 +completed`, out)
}

// An editor works while a command asks whether to delete a session.
func TestAQuestionKeepsNoEditorWaiting(t *testing.T) {
	s := newSite(parallel(t))
	s.run("prompt", "--yes", "quiet hello")
	p := s.onTerminal(t, 100, "session", "delete", "last")
	p.sees("Delete session 1 (quiet hello) for good? [y/N] ")
	editor := s.start()
	assert.Len(t, editor.sessions(), 1)
	p.types("y", "1 turn deleted")
	assert.Zero(t, p.status())
	assert.Empty(t, editor.sessions())
	editor.leave()
}

// `session pick` finds a session by a few typed letters, also without a running hub.
func TestASessionIsPicked(t *testing.T) {
	t.Parallel()
	for _, terminal := range []string{"xterm-256color", "dumb"} {
		t.Run(terminal, func(t *testing.T) {
			s := newSite(parallel(t))
			for _, prompt := range []string{"quiet walnuts", "quiet pears", "quiet figs"} {
				s.run("prompt", "--yes", prompt)
			}
			s.env = append(s.env, "TERM="+terminal)
			p := s.shell(t, "session", "pick") // standard output is a pipe, as in $(duet-rpc session pick)
			p.sees("quiet figs", "quiet walnuts")
			p.presses("paers\x7f\x7f\x7f\x7fear", "1/3")
			p.presses("\r")
			said := p.endsWith(0)
			assert.Equal(t, "2\n", said)

			p = s.shell(t, "session", "pick")
			p.sees("quiet walnuts")
			p.presses("\x1b")
			said = p.endsWith(1)
			assert.Empty(t, said)
		})
	}
}

// awaitWaiting waits until n tasks wait for an answer.
func (s *site) awaitWaiting(t *testing.T, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		out, err := s.command("task", "list", "--state", "waiting")
		return err == nil && strings.Count(out, " waiting for you ") == n
	}, watchdog/3, pollEvery)
}

// A prompt that continues a conversation reports that it waits for the previous turn.
func TestAPromptSaysForWhatItWaits(t *testing.T) {
	s := newSite(parallel(t))
	s.daemon()
	s.run("task", "submit", "quiet permit:1")
	s.awaitWaiting(t, 1)
	p := s.prompt(t, "-c", "quiet and now this")
	p.sees("waiting for the previous turn or a free slot")
	s.run("daemon", "stop", "--force")
	p.ends()
}
