//go:build unix

package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	duet "github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// An editorWithTools is an editor that answers agents.
type editorWithTools struct {
	*duet.Client
	t *testing.T
}

// editorWithTools starts an editor's process and offers tools. The result of each is the name of
// the editor, the tool and its arguments.
func (s *site) editorWithTools(t *testing.T, name string, tools ...string) editorWithTools {
	t.Helper()
	l := s.launch()
	command := duet.Command(program, append([]string{patiently}, l.args...)...)
	command.Dir, command.Env = s.root, append(append(cleanEnvironment(), homeless(t)...), l.env...)
	c, err := duet.Dial(t.Context(), command)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	for _, tool := range tools {
		c.Handle("editor."+tool, func(_ context.Context, params json.RawMessage) (any, error) {
			if tool == "symbols" {
				return nil, &duet.Error{Code: -32603, Message: "the language server is not ready"}
			}
			return object{"editor": name, "tool": tool, "arguments": params}, nil
		})
	}
	if len(tools) > 0 {
		require.NoError(t, c.Call(t.Context(), "editor.offer", object{"client": name, "tools": tools}, nil))
	}
	return editorWithTools{c, t}
}

// prompts starts a session, or continues one, and returns its ids once it has ended.
func (e editorWithTools) prompts(query, session string) (l launched) {
	e.t.Helper()
	method, params := "launchSession", object{"query": query}
	if session != "" {
		method, params["session_id"] = "continueSession", session
	}
	require.NoError(e.t, e.Call(e.t.Context(), method, params, &l))
	e.ended(l)
	return l
}

func (e editorWithTools) ended(l launched) {
	e.t.Helper()
	require.Eventually(e.t, func() bool {
		var r struct{ Session shownSession }
		require.NoError(e.t, e.Call(e.t.Context(), "getSessionState", object{"session_id": l.SessionID}, &r))
		return ended(r.Session.State)
	}, watchdog, pollEvery)
}

// said returns what the agent said in a session.
func (e editorWithTools) said(l launched) (text string) {
	e.t.Helper()
	var r struct {
		Events []struct {
			Session string `json:"session_id"`
			Type    string `json:"event_type"`
			Role    string
			Content string
		}
	}
	require.NoError(e.t, e.Call(e.t.Context(), "getConversation", object{"session_id": l.SessionID}, &r))
	for _, one := range r.Events {
		if one.Session == l.SessionID && one.Type == "message" && one.Role == "assistant" {
			text += one.Content
		}
	}
	return text
}

// An agent gets the tools of the editor that sent the last prompt of its conversation, without a
// question to anybody.
func TestAnAgentUsesTheToolsOfTheEditor(t *testing.T) {
	s := newSite(parallel(t))
	require.NoError(t, os.WriteFile(filepath.Join(s.root, "main.go"), []byte("package main\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(s.home, "secret"), nil, 0o600))
	require.NoError(t, os.Symlink(filepath.Join(s.home, "secret"), filepath.Join(s.root, "leads-out")))
	require.NoError(t, os.Mkdir(filepath.Join(s.root, "d"), 0o700))
	none := s.editorWithTools(t, "plain")
	assert.Contains(t, none.said(none.prompts("editor:selection", "")), "The editor did not answer: no editor is connected.")

	first := s.editorWithTools(t, "Emacs", "definition", "selection", "symbols")
	l := first.prompts("editor:definition:main.go:3:main", "")
	answer := `{"arguments":{"line":3,"path":"` + filepath.Join(s.root, "main.go") + `","symbol":"main"},"editor":"Emacs","tool":"definition"}`
	assert.Contains(t, first.said(l), "The editor said: "+answer)
	var asked struct{ Approvals []any }
	require.NoError(t, first.Call(t.Context(), "fetchApprovals", object{"session_id": l.SessionID, "include_decided": true}, &asked))
	assert.Empty(t, asked.Approvals)

	// The editor of another conversation stays with that one.
	second := s.editorWithTools(t, "VS Code", "selection")
	other := second.prompts("editor:selection", "")
	assert.Contains(t, second.said(other), `"editor":"VS Code"`)
	assert.Contains(t, first.said(first.prompts("editor:selection", l.SessionID)), `"editor":"Emacs"`)
	assert.Contains(t, none.said(none.prompts("editor:selection", l.SessionID)), `"editor":"Emacs"`, "a client without tools is no editor")

	for words, why := range map[string]string{
		"editor:symbols":                   "the language server is not ready",
		"editor:diagnostics":               "the user's editor does not offer diagnostics",
		"editor:definition:leads-out":      "arguments.path: expected a file in the directories of the session",
		"editor:definition:../home/secret": "arguments.path: expected a file in the directories of the session",
		"editor:definition:none.go":        "arguments.path: expected a file in the directories of the session",
		"editor:definition:d":              "arguments.path: expected a regular file",
		"editor:nothing":                   "nothing",
	} {
		assert.Contains(t, first.said(first.prompts(words, "")), why, words)
	}

	// When the editor has gone, the hub calls the one that was used last. Without any, it refuses.
	first.Close()
	require.Eventually(t, func() bool { return assert.ObjectsAreEqual("VS Code", second.editorOf(l)) }, watchdog, pollEvery)
	second.Close()
	require.Eventually(t, func() bool { return none.editorOf(l) == "not_offered" }, watchdog, pollEvery)
}

// editorOf returns the name of the editor that a conversation has, or the kind of the error.
func (e editorWithTools) editorOf(l launched) string {
	e.t.Helper()
	var r struct{ Result struct{ Editor string } }
	if err := e.Call(e.t.Context(), "editor.call", object{"session_id": l.SessionID, "tool": "selection"}, &r); err != nil {
		return string(duet.KindOf(err))
	}
	return r.Result.Editor
}

// What an editor offers is known to the next hub, too.
func TestTheNextHubKnowsTheToolsOfTheEditor(t *testing.T) {
	s := newSite(parallel(t))
	e := s.editorWithTools(t, "Emacs", "selection")
	l := e.prompts("quiet", "")
	require.Equal(t, "Emacs", e.editorOf(l))
	hub, err := os.FindProcess(s.daemon())
	require.NoError(t, err)
	require.NoError(t, hub.Kill())
	require.Eventually(t, func() bool { return e.editorOf(l) == "Emacs" }, watchdog, pollEvery)
}

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
	s := newSite(parallel(t))
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
	s := newSite(parallel(t))
	s.mcpServers("", "hangs")
	_, said, err := s.commandIn(s.root, "prompt", "--agent", "served", "--yes", "hello")
	require.NoError(t, err, said)
	assert.Contains(t, said, "— the MCP server hangs has not answered yet; `duet-rpc doctor` tries it again\n")
}

// The user can have servers left alone; what a project's file would have started is,
// until it is trusted.
func TestMCPServersAreNotTriedUnasked(t *testing.T) {
	s := newSite(parallel(t))
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
