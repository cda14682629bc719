//go:build unix

package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// lockedAgent is an agent that opens no session before the user has signed in.
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

// Ways to sign in of [lockedAgent].
const (
	byBrowser = `{"id":"browser","name":"In a browser"}`
	byProgram = `{"id":"a program","name":"By a program","type":"terminal","args":["--login"]}`
	byKey     = `{"id":"key","name":"By a key","type":"env_var","vars":[{"name":"THEIR_API_KEY"}]}`
)

// locked makes an agent of the site that has to be signed in to.
func (s *site) locked(methods ...string) {
	s.t.Helper()
	path := filepath.Join(s.home, "locked")
	testkit.Program(s.t, path, strings.Replace(lockedAgent, "METHODS", strings.Join(methods, ","), 1))
	s.agents(fmt.Sprintf("[agents.locked]\ncommand = [%q]\n", path))
}

// A user who is not signed in sees the commands, can take a way at once, and the
// prompt goes on.
func TestPromptOffersToSignIn(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.locked(byBrowser, byProgram, byKey)
	p := s.prompt(t, "--no-color", "--agent", "locked", "hello")
	screen := p.screen("or Return for no: ")
	assert.Contains(t, screen, "failed: locked wants you to log in: log in first.")
	assert.Contains(t, screen, "\n  1  duet-rpc agents login locked --method browser")
	assert.Contains(t, screen, "\n  2  duet-rpc agents login locked --method 'a program'   By a program (in a terminal)\n")
	assert.Contains(t, screen, "  By a key (with a key)\n")
	p.types("7")
	p.sees("or Return for no: ")
	p.types("3")
	p.sees("locked has no THEIR_API_KEY: say in your config.toml")
	p.sees("or Return for no: ")
	p.types("2")
	p.sees("a program signs in")
	p.sees("the same prompt again")
	said, status := p.ends()
	assert.Equal(t, 0, status, p.tty.printed)
	assert.Equal(t, "you said hello\n", said, "the agent's words alone, and no history of a prompt that it did not get")
}

func TestPromptNeedNotSignIn(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(p *prompting){
		"Return": func(p *prompting) { p.types("") },
		"no":     func(p *prompting) { p.types("n") },
		"C-c":    func(p *prompting) { require.NoError(p.t, p.cmd.Process.Signal(os.Interrupt)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.locked(byBrowser)
			p := s.prompt(t, "--no-color", "--agent", "locked", "hello")
			p.sees("[y]es, or Return for no: ")
			answer(p)
			said, status := p.ends()
			assert.Equal(t, 1, status, p.tty.printed)
			assert.Empty(t, said)
		})
	}
	s := newSite(t)
	s.locked(byBrowser)
	_, err := s.command("prompt", "--agent", "locked", "hello")
	require.ErrorContains(t, err, "duet-rpc agents login locked --method browser")
	assert.NotContains(t, err.Error(), "Sign in now", "no user is there")
}

// The user's message to the agent is its next prompt, which is shown to its end:
// the exit status is that of the last.
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
			t.Parallel()
			s := newSite(t)
			p := s.asks(t, ask)
			for range 2 {
				p.sees("Allow? ")
				p.types("t")
				p.sees("What should the agent do? ")
				p.types("use ninja")
				p.sees("the agent receives the comment with its next prompt: task-")
			}
			screen := p.screen("Allow? ")
			assert.Contains(t, screen, "\n— task-0003 · agent played")
			assert.NotContains(t, screen, "go on with:", "it goes on by itself")
			c.last(p)
			said, status := p.ends()
			assert.Equal(t, c.status, status, p.tty.printed)
			assert.Equal(t, c.said, strings.TrimSuffix(said, "[3: ]\n"))
			assert.Contains(t, p.tty.printed.String(), "go on with: duet-rpc prompt --continue task-0003")
		})
	}
}

// An agent that hangs ends by its time limit, or by C-c, and that is said.
func TestPromptEndsAnAgentThatHangsByItsTime(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := s.prompt(t, "--no-color", "--agent", "demo", "--timeout", "500ms", "hang")
	p.sees("the time limit is reached")
	p.sees("failed: it took longer than it may (500ms); raise limits.run_timeout, give it more with prompt --timeout, or continue it (TIMEOUT)")
	_, status := p.ends()
	assert.Equal(t, 1, status, p.tty.printed)
	p = s.prompt(t, "--no-color", "--continue", "last", "--timeout", "600ms", "hang")
	p.sees("longer than it may (600ms)")
	_, status = p.ends()
	assert.Equal(t, 1, status, p.tty.printed)
	s.daemon()
	defer func() { _, _ = s.command("daemon", "stop") }()
	list := s.run("task", "list")
	assert.Regexp(t, `(?m)^task-0002 +failed: TIMEOUT +demo `, list)
}

func TestPromptEndsAnAgentThatHangsWhenItIsInterrupted(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := s.prompt(t, "--no-color", "--agent", "demo", "hang")
	p.sees("Edit demo.txt")
	require.NoError(t, p.cmd.Process.Signal(os.Interrupt))
	p.sees("interrupting; press C-c again")
	p.sees("interrupted")
	_, status := p.ends()
	assert.Equal(t, 130, status, p.tty.printed)
}

// Who sits at the terminal of a prompt is asked for the key that its agent needs, and it is
// not shown.
func TestAPromptAsksForTheKeyOfItsAgent(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.agents(`
[agents.keyed]
driver = "command"
command = ["sh", "-c", "printf %s \"$MY_KEY\" >got; cat >/dev/null"]
keys = { MY_KEY = "myservice" }
`)
	const asks = "Key of myservice (it is not shown; Return for none): "
	p := s.prompt(t, "--agent", "keyed", "hello")
	p.sees(asks)
	p.types("s3cret")
	_, status := p.ends()
	assert.Equal(t, 0, status, p.tty.printed)
	got := readFile(t, filepath.Join(s.root, "got"))
	assert.Equal(t, "s3cret", got)
	assert.NotContains(t, p.tty.printed.String(), "s3cret")

	p = s.prompt(t, "--agent", "keyed", "hello")
	p.sees(asks)
	p.types("")
	p.sees("the client that was asked gave none")
	p.ends()

	p = s.prompt(t, "--agent", "keyed", "hello")
	p.sees(asks)
	require.NoError(t, p.cmd.Process.Signal(os.Interrupt))
	p.sees("interrupted")
	p.ends()
	assert.NotContains(t, p.tty.printed.String(), "has ended already", "the question was answered before the interrupt")

	// Without a terminal, no question waits for long.
	s.refuses("the client that was asked gave none", "prompt", "--agent", "keyed", "hello")
}
