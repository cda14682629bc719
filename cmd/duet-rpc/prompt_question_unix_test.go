//go:build unix

package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// played makes the site's default agent one that does these steps, whatever it
// is asked for.
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

// asks begins a prompt whose agent does these steps.
func (s *site) asks(t *testing.T, steps ...playedStep) *prompting {
	s.played(steps...)
	return s.prompt(t, "--no-color", "--agent", "played", "go")
}

// screen is what is printed from what was seen last up to a text.
func (p *prompting) screen(until string) string {
	p.t.Helper()
	from := p.read
	p.sees(until)
	return p.tty.printed.String()[from:p.read]
}

// An input that is too long for an event is shown by its head and tail, and
// whole to a client that asks.
func TestPromptShowsALongInput(t *testing.T) {
	t.Parallel()
	s := newSite(t)
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
	assert.Contains(t, screen, "| rm -rf ~\n", "the end is shown, too")
	assert.Regexp(t, `\n… 19,9\d\d more lines, [\d,]+ bytes hidden: v shows all\n`, screen)
	assert.Less(t, strings.Count(screen, "\n"), 30)
	p.types("v")
	all := p.screen("[v]iew all: ")
	for _, line := range lines[1:] {
		require.Contains(t, all, "| "+line+"\n")
	}
	p.types("y")
	said, status := p.ends()
	assert.Equal(t, 0, status, p.tty.printed)
	assert.Contains(t, said, "[1: yes]")
}

// Beside a diff stands what is not in it.
func TestPromptShowsTheInputBesideADiff(t *testing.T) {
	t.Parallel()
	s := newSite(t)
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
	assert.Contains(t, screen, `  "command":`+"\n    | rm -rf ~\n")
	assert.Contains(t, screen, `  "file_path": "/etc/passwd"`)
	assert.Contains(t, screen, `  "content": "other"`)
	p.types("y")
	assert.Contains(t, p.screen("Allow? "), `+++ "b//etc/cron.d/x\n+++ b/notes.txt"`, "a name has one line")
	p.types("y")
	assert.Regexp(t, `… binary: 0 bytes before, 5,003 bytes after: v shows all`, p.screen("[v]iew all: "))
	p.types("y")
	_, status := p.ends()
	assert.Equal(t, 0, status, p.tty.printed)
}

// Whatever an agent says, nothing that steers a terminal or is not seen gets
// there.
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
	_, status := p.ends()
	assert.Equal(t, 0, status)
	for _, r := range "\u202e\u2066\u200b\ufeff\u00ad\U000e0041\u2028\u3164\x1b\b\u009b\ue000" {
		assert.NotContains(t, p.tty.printed.String(), string(r), "%U", r)
	}
	for _, screen := range []string{first, second} {
		for _, mark := range []string{"<U+202E>", "<U+2066>", "<U+200B>", "<U+FEFF>", "<U+E0041>", "<U+3164>", "<U+009B>", "<U+E000>"} {
			assert.Contains(t, screen, mark)
		}
	}
	assert.Contains(t, first, " -- allowed\n  {\"x", "a title has one line")
	assert.NotContains(t, first, "\n-- allowed")
}

// Only a terminal gets the agent's words with what is not seen written out.
func TestPromptPrintsProse(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.env = append(s.env, "LC_ALL=C.UTF-8")
	text := "a\u202eb \x1b[2Jשלום 👩\u200d💻\n"
	s.played(playedStep{Say: "a\u202e"}, playedStep{Say: "b \x1b"}, playedStep{Say: "[2Jשלום 👩\u200d"}, playedStep{Say: "💻\n"})
	p := s.prompt(t, "--agent", "played", "go")
	said, _ := p.ends()
	assert.Equal(t, text, said, "in a pipe")

	tty := openTerminal(t)
	l := s.launch()
	l.args = append([]string{"prompt", "--agent", "played", "go"}, l.args...)
	l.stdin, l.stdout = tty.theirs, tty.theirs
	<-l.start(t).ended
	tty.printed.AwaitPart(t, "💻")
	assert.Equal(t, "a⟨U+202E⟩b ⟨U+001B⟩[2Jשלום 👩\u200d💻\n", tty.printed.String())
}

// What was typed before a question was asked is no answer to it.
func TestTypedAheadAnswersNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := s.prompt(t, "slow", "permit:2")
	p.sees("task-0001")
	p.types("y") // before anything is asked
	p.types("y")
	p.sees("Allow? ")
	p.presses("yy") // one key is asked for
	p.sees("please type y")
	p.sees("Allow? ")
	p.types("y")
	p.sees("Allow? ")
	time.Sleep(200 * time.Millisecond) // machine: what was typed has time to answer; nothing tells that it does not
	assert.NotContains(t, p.tty.printed.String()[p.read:], "✓")
	assert.NotContains(t, p.tty.printed.String()[p.read:], "That is all")
	p.presses("n")
	p.sees("n\n")
	_, err := p.tty.ours.WriteString("git status\n") // no reason
	require.NoError(t, err)
	_, status := p.ends()
	assert.Equal(t, 0, status)
	assert.Equal(t, 3, strings.Count(p.tty.printed.String(), "Allow? "), p.tty.printed)
	shown := s.run("session", "show", "task-0001")
	assert.NotContains(t, shown, "git status")
}

// Nor is it an answer to whether a project is trusted.
func TestTypedAheadTrustsNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	require.NoError(t, os.WriteFile(filepath.Join(s.root, ".duet.toml"), []byte("[agents.evil]\ncommand = ['evil', '{prompt}']\ntitle = \"a\u3164b\u202e\"\n"), 0o600))
	tty := openTerminal(t)
	_, err := tty.ours.WriteString("y\n")
	require.NoError(t, err)
	l := s.launch()
	l.args = append([]string{"trust"}, l.args...)
	l.stdin, l.stdout, l.stderr = tty.theirs, tty.theirs, tty.theirs
	p := &prompting{process: l.start(t), tty: tty}
	p.sees("Trust it? [y/N] ")
	assert.NotContains(t, tty.printed.String(), "\u3164")
	p.types("n")
	<-p.ended
	tty.printed.AwaitPart(t, "not trusted")
}

// In lists, too, every character is seen.
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
		l := s.launch()
		l.args = append(args, l.args...)
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
	assert.Equal(t, "c"+unseen, whole.Approval.Input.Command, "JSON has it as it is")
	editor.call("interruptSession", object{"session_id": launched}, nil)
	editor.awaitEnd(launched)
	editor.leave()
}

// A user who returns to a stopped prompt sees its question.
func TestPromptAsksAgainWhenItGoesOn(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := s.prompt(t, "hello")
	p.sees("? Write demo.txt")
	p.sees("Allow? ")
	suspend(t, p.cmd.Process.Pid)
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGCONT))
	p.sees("? Write demo.txt")
	p.sees("+Turn 1: hello")
	p.sees("Allow? ")
	p.types("y")
	p.sees("completed")
	_, status := p.ends()
	assert.Zero(t, status)
}

// A terminal that cannot move its cursor has no pager, which would take what is
// typed next.
func TestViewWithoutAPager(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.env = append(s.env, "TERM=dumb", "PAGER=echo a pager; cat >/dev/null")
	p := s.asks(t, bashCall("Run it", map[string]any{"command": "true"}))
	p.sees("Allow? ")
	p.types("v")
	assert.NotContains(t, p.screen("Allow? "), "a pager")
	p.types("y")
	p.ends()
}

// Markdown is rendered, of thoughts too, on a terminal that can show it, and stays as the agent wrote
// it anywhere else.
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
			t.Parallel()
			s := newSite(t)
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
			p.sees(want)
			p.sees("go on with: duet-rpc prompt --continue task-0001")
			assert.Equal(t, 0, p.status())

			editor := s.start()
			p = s.onTerminal(t, 60, "session", "show", "task-0001")
			p.sees(want)
			assert.Equal(t, 0, p.status())
			s.env = append(s.env, "PAGER=cat")
			p = s.onTerminal(t, 60, "session", "show", "--transcript", "task-0001")
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

// A change is shown in colours on a terminal, before it is allowed, and in none where
// they are not wanted.
func TestPromptColoursChanges(t *testing.T) {
	t.Parallel()
	for want, env := range map[string]string{
		"\x1b[36m@@ -0,0 +1 @@\x1b[0m\n\x1b[32m+Turn 1: hello\x1b[0m\n": "TERM=xterm-256color",
		"\n@@ -0,0 +1 @@\n+Turn 1: hello\n":                             "NO_COLOR=1",
	} {
		s := newSite(t)
		s.env = append(s.env, "TERM=xterm", env)
		p := s.onTerminal(t, 60, "prompt", "--yes", "hello")
		p.sees("? Write demo.txt")
		p.sees(want)
		assert.Zero(t, p.status())
	}
}

// thought is an update with a piece of what the agent thinks.
func thought(text string) map[string]any {
	return map[string]any{"sessionUpdate": "agent_thought_chunk", "content": map[string]any{"type": "text", "text": text}}
}
