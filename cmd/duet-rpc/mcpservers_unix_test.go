//go:build unix

package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/duet-rpc/duet-rpc/internal/testkit"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// mcpProgram is a server that does what its argument says, and notes that it was started.
const mcpProgram = `#!/bin/sh
echo "$1" >> "$0.started"
case $1 in
works) read -r line; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18"}}'; cat > /dev/null ;;
hangs) exec sleep 1000 ;;
ends) echo "no login with $TOKEN" >&2; exit 1 ;;
esac
`

// mcpServers gives the site an agent with servers: one that works, one that ends at
// once, others, and one that is not there.
func (s *site) mcpServers(more string, others ...string) (program string) {
	s.t.Helper()
	program = filepath.Join(s.home, "server")
	testkit.Program(s.t, program, mcpProgram)
	agent := fastProgram(s.t)
	text := more + fmt.Sprintf("[agents.served]\ncommand = [%q, \"demo-agent\"]\nenv = { DUET_DEMO_DELAY = \"0\", DUET_DEMO_STATE = %q }\n", agent, filepath.Join(s.home, "demo"))
	for _, name := range append([]string{"works", "ends"}, others...) {
		text += fmt.Sprintf("[[agents.served.mcp_servers]]\nname = %q\ncommand = %q\nargs = [%q]\nenv = { TOKEN = \"guarded-secret\" }\n", name, program, name)
	}
	text += "[[agents.served.mcp_servers]]\nname = \"gone\"\ncommand = \"no-such-server\"\n"
	s.agents(text)
	return program
}

const mcpEnded = "the MCP server ends ended with status 1 before it answered: no login with [secret]"

// A conversation learns that a server does not work: in events, in the shell and
// in what is kept; secrets are left out. It learns it once, and nothing of a server that works.
func TestMCPServersThatDoNotWorkAreInTheTranscript(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	program := s.mcpServers("")
	c := s.open()
	reported := func(l launched, text string) {
		t.Helper()
		c.await("the code of "+text, func(e event) bool {
			return e.Type == "task_error" && e.Data.SessionID == l.SessionID && e.Data.Code == "MCP_SERVER_FAILED" && strings.Contains(string(e.Raw), strings.SplitN(text, " ", 5)[3])
		})
		c.await(text, func(e event) bool {
			return e.Type == "conversation_updated" && e.Data.SessionID == l.SessionID && e.Data.Role == "system" && strings.Contains(e.Data.Content, text)
		})
	}
	first := c.launch("hello", "served")
	reported(first, mcpEnded)
	reported(first, `the MCP server gone will not start: the program "no-such-server" was not found`)
	assert.Equal(t, "completed", c.approveAll(first.SessionID).Data.State)

	transcript := s.run("session", "show", first.TaskID, "--transcript")
	assert.Equal(t, 1, strings.Count(transcript, mcpEnded), transcript)
	assert.Contains(t, transcript, `the MCP server gone will not start`)
	assert.NotContains(t, transcript, "server works")

	// Another conversation learns it, too, and has it tried again; the same one does not.
	again := c.next(first, "again")
	assert.Equal(t, "completed", c.approveAll(again.SessionID).Data.State)
	reported(c.launch("hello", "served"), mcpEnded)
	for _, e := range c.seen() {
		assert.NotContains(t, string(e.Raw), "guarded", "%s %s", e.Type, e.Raw)
		if e.Data.SessionID == again.SessionID {
			assert.NotContains(t, e.Data.Content, mcpEnded)
		}
	}
	var started []byte
	require.Eventually(t, func() bool {
		started, _ = os.ReadFile(program + ".started")
		return strings.Contains(string(started), "works\n")
	}, watchdog/3, pollEvery)
	assert.Equal(t, map[string]int{"works": 1, "ends": 2}, map[string]int{"works": strings.Count(string(started), "works\n"), "ends": strings.Count(string(started), "ends\n")})
	c.leave()
}

// A prompt whose hub ends with it cannot wait for what becomes of a server: it says that
// this one has not answered.
func TestAPromptSaysWhichMCPServerHasNotAnswered(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.mcpServers("", "hangs")
	_, said, err := s.commandIn(s.root, "prompt", "--agent", "served", "--yes", "hello")
	require.NoError(t, err, said)
	assert.Contains(t, said, "— the MCP server hangs has not answered yet; `duet-rpc doctor` tries it again\n")
}

// The user can have servers left alone; what a project's file would have started is,
// until it is trusted.
func TestMCPServersAreNotTriedUnasked(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	program := s.mcpServers("[mcp]\nprobe = false\n")
	s.run("prompt", "--agent", "served", "--yes", "hello")
	assert.NoFileExists(t, program+".started")
	values := s.run("config")
	assert.Regexp(t, `mcp\.probe +user +false`, values)

	program = s.mcpServers("")
	require.NoError(t, os.WriteFile(filepath.Join(s.root, ".duet.toml"), fmt.Appendf(nil,
		"[agents.theirs]\ncommand = [%q]\n[[agents.theirs.mcp_servers]]\nname = \"x\"\ncommand = %q\n[[agents.served.mcp_servers]]\nname = \"y\"\ncommand = %q\nargs = [\"y\"]\n", program, program, program), 0o600))
	s.refuses("not trusted", "prompt", "--agent", "theirs", "hello")
	s.run("prompt", "--agent", "served", "--yes", "hello")
	started, _ := os.ReadFile(program + ".started") // there may be none: the end of the hub ends what is tried
	assert.NotContains(t, string(started), "y\n")
}
