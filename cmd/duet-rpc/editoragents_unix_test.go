//go:build unix && clients

package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// agentsWithServers are real agents that use the MCP servers that Duet gives them.
func agentsWithServers() map[string]func(testing.TB) *agentSite {
	return map[string]func(testing.TB) *agentSite{
		"claude": newClaudeSite, "older claude": newOldClaudeSite, "codex": newCodexToolsSite, "kimi": newKimiSite, "opencode": newOpencodeSite,
	}
}

// Real agents start the server of the editor's tools and call one of them. Duet asks the user nothing.
func TestRealAgentsUseTheToolsOfTheEditor(t *testing.T) {
	t.Parallel()
	for name, site := range agentsWithServers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := site(t)
			asked := make(chan string, 10)
			e := s.editorWithTools(t, "Emacs", "selection")
			e.Handle("editor.selection", func(_ context.Context, params json.RawMessage) (any, error) {
				asked <- string(params)
				return object{"text": "what is selected"}, nil
			})
			var l launched
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
	emacs, err := exec.LookPath("emacs")
	if err != nil {
		t.Skip("Emacs is not installed; run .ci/install")
	}
	for name, site := range map[string]func(testing.TB) *agentSite{"claude": newClaudeSite, "codex": newCodexToolsSite} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := site(t)
			require.NoError(t, os.WriteFile(filepath.Join(s.root, "a.txt"), []byte("saved\n"), 0o600))
			lisp, err := filepath.Abs("../../emacs")
			require.NoError(t, err)
			c := s.open()
			defer s.close(c)
			l := s.launch()
			script := fmt.Sprintf(`(let (connection session)
  (setq duet-rpc-command (list %q))
  (find-file "a.txt")
  (insert "words of the user\n")
  (setq connection (duet-connection-ensure default-directory))
  (duet-test-wait-for (eq (duet-connection-state connection) 'ready))
  (setq session (duet-test-launch connection "editor: buffers" :agent %q))
  (duet-test-wait-for-state session 'completed 'failed 'interrupted)
  (princ (format "session %%s\n" (duet-session-id session))))`, program, s.agent)
			cmd := exec.CommandContext(t.Context(), emacs, "-Q", "--batch", "-L", lisp, "-L", filepath.Join(lisp, "test"), "-l", "duet-test-lib", "--eval", script)
			cmd.Dir, cmd.Env = s.root, append(append(append(cleanEnvironment(), homeless(t)...), l.env...), "DUET_ROOT="+s.root)
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, string(out))
			id := regexp.MustCompile(`(?m)^session (\S+)$`).FindStringSubmatch(string(out))
			require.NotNil(t, id, string(out))
			said := c.conversation(id[1])
			assert.Contains(t, said, "a.txt")
			assert.Contains(t, said, "words of the user")
		})
	}
}
