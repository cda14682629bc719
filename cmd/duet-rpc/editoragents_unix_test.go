//go:build unix && clients

package main_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Real agents start the server of the editor's tools and call one of them. Duet asks the user nothing.
func TestRealAgentsUseTheToolsOfTheEditor(t *testing.T) {
	t.Parallel()
	for name, site := range map[string]func(testing.TB) *agentSite{
		"claude": newClaudeSite, "older claude": newOldClaudeSite, "codex": newCodexSite, "kimi": newKimiSite, "opencode": newOpencodeSite,
	} {
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
