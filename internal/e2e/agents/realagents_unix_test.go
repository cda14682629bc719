//go:build unix && clients && soak

package agents

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/e2e"
	"github.com/duet-rpc/duet-rpc/testdata/agents/model"
)

// realAgents are the agents of TestRealAgents.
var realAgents = map[string]func(testing.TB) *agentSite{"claude": newClaudeSite, "codex": newCodexSite, "opencode": newOpencodeSite}

// TestRealAgents covers the behaviour that TestAgentDay omits for lack of time.
func TestRealAgents(t *testing.T) {
	t.Parallel()
	for name, site := range realAgents {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // one site of each agent at a time, because agents need much memory
			for what, test := range map[string]func(*testing.T, *agentSite){
				"allowed":                   testAllowed,
				"interrupted while it asks": testInterruptedQuestion,
				"restarted":                 testRestarted,
			} {
				t.Run(what, func(t *testing.T) { test(t, site(t)) })
			}
		})
	}
	// One agent suffices for these: the other agents take seconds to start.
	t.Run("claude a wrong key", func(t *testing.T) { testWrongKey(t, newClaudeSite(t)) })
	t.Run("codex rules", func(t *testing.T) { testCodexRules(t, newCodexSite(t)) })
	t.Run("codex key", func(t *testing.T) { testCodexKey(t, newCodexSite(t)) })
	t.Run("codex failure", func(t *testing.T) { testCodexFailure(t, newCodexSite(t)) })
}

func testAllowed(t *testing.T, s *agentSite) {
	c := s.Open()
	l, question := s.asked(c)
	c.Approve(question.Data.ApprovalID)
	end := c.AwaitEnd(l.SessionID)
	require.Equal(t, "completed", end.Data.State, "%s", end.Raw)
	assert.True(t, s.exists("made"))
	calls := toolCalls(c, l.SessionID)
	require.Len(t, calls, 1)
	assert.Equal(t, []string{"Bash", "completed", "approved"}, []string{calls[0].Tool, calls[0].Status, calls[0].Approval})
	e2e.RequireParts(t, c.Said(l.SessionID), "I will run it.", "The tool said: ")
	used := usageOf(c, l.SessionID)
	assert.Equal(t, s.countedAnswers*model.InputTokens, used.Input)
	assert.Equal(t, s.countedAnswers*model.OutputTokens, used.Output)
	assert.Positive(t, used.Context)
	assert.Greater(t, used.Limit, used.Context)
	assert.Equal(t, "end_turn", used.Stop)
	assert.NotEmpty(t, used.Native)
	assert.False(t, s.model.Refused(), "the agent uses only the configured key")
	s.close(c)
}

// An interrupted agent continues the session, and its next request has the interrupted prompt.
func testInterruptedQuestion(t *testing.T, s *agentSite) {
	c := s.Open()
	l, _ := s.asked(c)
	c.Interrupt(l)
	assert.Empty(t, c.Pending())
	calls := toolCalls(c, l.SessionID)
	require.Len(t, calls, 1)
	assert.Equal(t, []string{"Bash", "failed", "cancelled"}, []string{calls[0].Tool, calls[0].Status, calls[0].Approval})

	s.requireGoesOn(c, l, "run: touch made", "say: hello")
	assert.False(t, s.exists("made"))
	s.close(c)
}

// A session continues in the next process with the agent's own session.
func testRestarted(t *testing.T, s *agentSite) {
	c := s.Open()
	first := c.Launch("say: one", s.agent)
	c.Completes(first)
	second := s.requireGoesOn(c, first, "say: one", "say: two")
	native := usageOf(c, second.SessionID).Native
	s.awaitRecord(`"two"`)
	s.close(c)

	c = s.Open()
	third := s.requireGoesOn(c, second, "say: one", "say: two", "say: three")
	assert.Equal(t, native, usageOf(c, third.SessionID).Native)
	assert.Equal(t, "onetwothree", c.Said(third.SessionID), "Duet does not repeat text that the agent replays")
	assert.Equal(t, model.InputTokens, usageOf(c, third.SessionID).Input)
	s.close(c)
}

// The user sees the model's error for a wrong key.
func testWrongKey(t *testing.T, s *agentSite) {
	s.Env = append(s.Env, "KEY_OF_THE_MODEL="+s.model.Key+"-but-not-quite")
	s.variables["CLAUDE_CODE_MAX_RETRIES"] = "0"
	s.configure()
	c := s.Open()
	end := c.EndsAs(c.Launch("say: hello", s.agent).SessionID, "failed", "AGENT_ERROR")
	assert.Regexp(t, "(?i)api.key", end.Data.Error)
	assert.True(t, s.model.Refused())
	s.close(c)
}

// testCodexRules requires that a deny rule holds in each of Duet's modes. Codex starts in a mode in
// which a model approves, and Duet selects a mode with permission requests. In Codex's other modes
// Duet warns the user.
func testCodexRules(t *testing.T, s *agentSite) {
	s.rules = "[[rules]]\neffect = \"deny\"\ntool = \"Bash\"\ncommand = \"touch *\"\n"
	s.configure()
	c := s.Open()
	for _, mode := range []string{"default", "acceptEdits", "bypassPermissions"} {
		l := c.Begins("launchSession", object{"query": "run: touch made", "agent": s.agent, "permission_mode": mode})
		c.AwaitEnd(l.SessionID)
		assert.False(t, s.exists("made"), mode)
		require.NotEmpty(t, refusals(c, l.SessionID), mode)
		assert.Contains(t, refusals(c, l.SessionID)[0], "rule=user: ", mode)
	}
	for _, e := range c.Seen() {
		require.NotContains(t, string(e.Raw), "RULES_NOT_ASKED")
	}
	for _, mode := range []string{"workspace-write", "agent", "agent-full-access"} {
		l := c.Begins("launchSession", object{"query": "say: hello", "agent": s.agent, "permission_mode": mode})
		c.Completes(l)
		assert.Contains(t, string(c.Await("the warning", func(e e2e.Event) bool {
			return e.Type == "task_error" && e.Data.SessionID == l.SessionID
		}).Raw), "RULES_NOT_ASKED", mode)
	}
	s.close(c)
}

// testCodexFailure requires that a turn fails when the model's API refuses a request. In this case
// Codex answers the prompt with end_turn.
func testCodexFailure(t *testing.T, s *agentSite) {
	c := s.Open()
	l := c.Launch("fail: 400", s.agent)
	end := c.EndsAs(l.SessionID, "failed", "AGENT_ERROR")
	assert.Contains(t, end.Data.Error, "as it was asked for")
	l = c.GoesOn(l, "say: hello")
	s.close(c)
}

// testCodexKey requires that Codex signs in with the key that Duet gives it.
func testCodexKey(t *testing.T, s *agentSite) {
	s.ownProvider()
	c := s.Open()
	l := c.Launch("say: hello", s.agent)
	c.Completes(l)
	assert.Contains(t, c.Said(l.SessionID), "hello")
	assert.False(t, s.model.Refused())
	s.close(c)
}
