//go:build unix && clients

package agents

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/e2e"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// agentsWithServers returns the real agents that use the MCP servers from Duet.
func agentsWithServers() map[string]func(testing.TB) *agentSite {
	return map[string]func(testing.TB) *agentSite{
		"claude": newClaudeSite, "older claude": newOldClaudeSite, "codex": newCodexToolsSite, "kimi": newKimiSite, "opencode": newOpencodeSite,
	}
}

// Real agents start the server of the editor's tools and call one of them. Duet asks the user no
// question.
func TestRealAgentsUseTheToolsOfTheEditor(t *testing.T) {
	t.Parallel()
	for name, site := range agentsWithServers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := site(t)
			asked := make(chan string, 10)
			e := newEditorWithTools(s.Site, t, "Emacs", "selection")
			e.Handle("editor.selection", func(_ context.Context, params json.RawMessage) (any, error) {
				asked <- string(params)
				return object{"text": "what is selected"}, nil
			})
			var l e2e.Launched
			require.NoError(t, e.Call(t.Context(), "launchSession", object{"query": "editor: selection", "agent": s.agent}, &l))
			e.ended(l)
			assert.Contains(t, e.said(l), "The tool said: ")
			require.NotEmpty(t, asked)
			assert.JSONEq(t, `{}`, <-asked)
			var questions struct{ Approvals []any }
			require.NoError(t, e.Call(t.Context(), "fetchApprovals", object{"session_id": l.SessionID, "include_decided": true}, &questions))
			assert.Empty(t, questions.Approvals)
		})
	}
}

// A real agent sees the text that a real Emacs has not saved.
func TestRealAgentSeesTheBuffersOfEmacs(t *testing.T) {
	t.Parallel()
	emacs := testkit.NeedTool(t, "emacs")
	for name, site := range map[string]func(testing.TB) *agentSite{"claude": newClaudeSite, "codex": newCodexToolsSite} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := site(t)
			require.NoError(t, os.WriteFile(filepath.Join(s.Root, "a.txt"), []byte("saved\n"), 0o600))
			lisp, err := filepath.Abs(e2e.Root + "/emacs")
			require.NoError(t, err)
			c := s.Open()
			defer s.close(c)
			l := s.Launch()
			script := fmt.Sprintf(`(let (connection session)
  (setq duet-rpc-command (list %q))
  (find-file "a.txt")
  (insert "words of the user\n")
  (setq connection (duet-connection-ensure default-directory))
  (duet-test-wait-for (eq (duet-connection-state connection) 'ready))
  (setq session (duet-test-launch connection "editor: buffers" :agent %q))
  (duet-test-wait-for-state session 'completed 'failed 'interrupted)
  (princ (format "session %%s\n" (duet-session-id session))))`, e2e.Program, s.agent)
			cmd := exec.CommandContext(t.Context(), emacs, "-Q", "--batch", "-L", lisp, "-L", filepath.Join(lisp, "test"), "-l", "duet-test-lib", "--eval", script)
			cmd.Dir, cmd.Env = s.Root, append(append(append(e2e.CleanEnvironment(), e2e.Homeless(t)...), l.Env...), "DUET_ROOT="+s.Root)
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, string(out))
			id := regexp.MustCompile(`(?m)^session (\S+)$`).FindStringSubmatch(string(out))
			require.NotNil(t, id, string(out))
			said := c.Said(id[1])
			e2e.RequireParts(t, said, "a.txt", "words of the user")
		})
	}
}

// A file that a real agent's shell command writes is a change of its session. The user can revert
// the change.
func TestFilesThatCommandsOfRealAgentsWrite(t *testing.T) {
	t.Parallel()
	for name, site := range agentsWithServers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := site(t)
			s.rules = "[checkpoints]\nenabled = true\n"
			s.configure()
			c := s.Open()
			defer s.close(c)
			l := c.Begins("launchSession", object{"query": "run: echo two > made", "agent": s.agent, "permission_mode": "bypassPermissions"})
			c.Completes(l)
			var changed struct {
				Changes []struct {
					Path string `json:"path"`
					Diff string
				}
			}
			c.Call("change.list", object{"turn": l.SessionID}, &changed)
			require.Len(t, changed.Changes, 1)
			assert.Equal(t, "made", filepath.Base(changed.Changes[0].Path))
			assert.Contains(t, changed.Changes[0].Diff, "\n+two\n")
			c.Call("change.revert", object{"turn": l.SessionID, "path": changed.Changes[0].Path}, nil)
			assert.NoFileExists(t, changed.Changes[0].Path)
		})
	}
}

// TestExampleAgent plays turns with the example agent of the Go SDK of the Agent Client Protocol.
// In a turn the agent reads a file and asks permission to change another one. A turn takes 5 s,
// because the agent sleeps.
func TestExampleAgent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		answer         string
		method         string
		params         object
		state          string
		edit, approval string // status of the tool call in the question, and of the question
		says           string
	}{
		{"allowed", "sendDecision", object{"decision": "approve"}, "completed", "completed", "approved", "successfully updated the configuration"},
		{"denied", "sendDecision", object{"decision": "deny", "comment": "leave it"}, "completed", "failed", "denied", "skip the configuration update"},
		{"interrupted", "interruptSession", object{}, "interrupted", "failed", "cancelled", "I need to make some changes"},
	} {
		t.Run(c.answer, func(t *testing.T) {
			agent, err := buildGoExample()
			require.NoError(t, err)
			s := e2e.NewSite(e2e.Parallel(t), fmt.Sprintf("[agents.example]\ndriver = \"acp\"\ncommand = [%q]\n", agent))
			client := s.Open()
			l, question := client.Asks("hello", "example")
			assert.Equal(t, "Edit", question.Data.ToolName)
			assert.JSONEq(t, `{"path":"/home/user/project/config.json","content":"{\"database\": {\"host\": \"new-host\"}}"}`, string(question.Data.ToolInput))
			client.AwaitState(l.SessionID, "waiting_input")

			c.params["approval_id"], c.params["session_id"] = question.Data.ApprovalID, l.SessionID
			client.Call(c.method, c.params, nil)
			end := client.AwaitEnd(l.SessionID)
			assert.Equal(t, c.state, end.Data.State, "%s", end.Raw)
			assert.Contains(t, client.Said(l.SessionID), c.says)
			assert.Empty(t, client.Pending())
			tools := toolCalls(client, l.SessionID)
			require.Len(t, tools, 2)
			tools[0].Input = ""
			assert.Equal(t, toolCall{Tool: "Read", Status: "completed", Result: "# My Project\n\nThis is a sample project..."}, tools[0])
			assert.Equal(t, "Edit", tools[1].Tool)
			assert.Equal(t, c.edit, tools[1].Status)
			assert.Equal(t, c.approval, tools[1].Approval)
			client.Leave()
			s.RequireNobody("after the end of input")
		})
	}
}

// buildGoExample builds the agent once for all tests.
var buildGoExample = sync.OnceValues(func() (string, error) {
	path := filepath.Join(e2e.ProgramDir, "example-agent")
	out, err := exec.Command("go", "build", "-o", path, "github.com/coder/acp-go-sdk/example/agent").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, err
})
