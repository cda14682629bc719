//go:build unix && clients

package main_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/testdata/agents/model"
)

// TestExampleAgent has turns with the example agent of the Go SDK of the Agent Client
// Protocol. A turn reads a file and asks whether it may change another; it takes 5 s
// because the agent sleeps.
func TestExampleAgent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		answer         string
		method         string
		params         object
		state          string
		edit, approval string // status of the tool call that is asked about, and of the question
		says           string
	}{
		{"allowed", "sendDecision", object{"decision": "approve"}, "completed", "completed", "approved", "successfully updated the configuration"},
		{"denied", "sendDecision", object{"decision": "deny", "comment": "leave it"}, "completed", "failed", "denied", "skip the configuration update"},
		{"interrupted", "interruptSession", object{}, "interrupted", "failed", "cancelled", "I need to make some changes"},
	} {
		t.Run(c.answer, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.agents(fmt.Sprintf("[agents.example]\ndriver = \"acp\"\ncommand = %s\n", tomlList(goExample(t))))
			client := s.start()
			client.subscribe()
			l := client.launch("hello", "example")
			question := client.awaitQuestion(l.SessionID)
			assert.Equal(t, "Edit", question.Data.ToolName)
			assert.JSONEq(t, `{"path":"/home/user/project/config.json","content":"{\"database\": {\"host\": \"new-host\"}}"}`, string(question.Data.ToolInput))
			client.awaitState(l.SessionID, "waiting_input")

			c.params["approval_id"], c.params["session_id"] = question.Data.ApprovalID, l.SessionID
			client.call(c.method, c.params, nil)
			end := client.awaitEnd(l.SessionID)
			assert.Equal(t, c.state, end.Data.State, "%s", end.Raw)
			assert.Contains(t, client.conversation(l.SessionID), c.says)
			assert.Empty(t, client.pending())
			tools := client.toolCalls(l.SessionID)
			require.Len(t, tools, 2)
			assert.Equal(t, toolCall{Tool: "Read", Status: "completed", Result: "# My Project\n\nThis is a sample project..."}, tools[0].withoutInput())
			assert.Equal(t, "Edit", tools[1].Tool)
			assert.Equal(t, c.edit, tools[1].Status)
			assert.Equal(t, c.approval, tools[1].Approval)
			client.leave()
			s.requireNobody("after the end of input")
		})
	}
}

// buildGoExample builds the agent once for all tests.
var buildGoExample = sync.OnceValues(func() (string, error) {
	path := filepath.Join(programDir, "example-agent")
	out, err := exec.Command("go", "build", "-o", path, "github.com/coder/acp-go-sdk/example/agent").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, err
})

func goExample(t testing.TB) []string {
	t.Helper()
	path, err := buildGoExample()
	require.NoError(t, err)
	return []string{path}
}

// realAgents are what TestRealAgents takes through its paces.
var realAgents = map[string]func(testing.TB) *agentSite{"claude": newClaudeSite, "opencode": newOpencodeSite}

// What the day of TestAgentDay has no time for.
func TestRealAgents(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("they are large")
	}
	for name, site := range realAgents {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // the agents; but each is too large to be there many times
			for what, test := range map[string]func(*testing.T, *agentSite){
				"allowed":                   testAllowed,
				"interrupted while it asks": testInterruptedQuestion,
				"restarted":                 testRestarted,
			} {
				t.Run(what, func(t *testing.T) { test(t, site(t)) })
			}
		})
	}
	// The other agents take seconds to start.
	t.Run("claude a wrong key", func(t *testing.T) { testWrongKey(t, newClaudeSite(t)) })
}

func testAllowed(t *testing.T, s *agentSite) {
	c := s.open()
	l, question := s.asked(c)
	c.call("sendDecision", object{"approval_id": question.Data.ApprovalID, "decision": "approve"}, nil)
	end := c.awaitEnd(l.SessionID)
	require.Equal(t, "completed", end.Data.State, "%s", end.Raw)
	assert.True(t, s.exists("made"))
	calls := c.toolCalls(l.SessionID)
	require.Len(t, calls, 1)
	assert.Equal(t, []string{"Bash", "completed", "approved"}, []string{calls[0].Tool, calls[0].Status, calls[0].Approval})
	assert.Contains(t, c.conversation(l.SessionID), "I will run it.")
	assert.Contains(t, c.conversation(l.SessionID), "The tool said: ")
	used := c.usage(l.SessionID)
	assert.Equal(t, s.counted*model.InputTokens, used.Input)
	assert.Equal(t, s.counted*model.OutputTokens, used.Output)
	assert.Positive(t, used.Context)
	assert.Greater(t, used.Limit, used.Context)
	assert.Equal(t, "end_turn", used.Stop)
	assert.NotEmpty(t, used.Native)
	assert.False(t, s.model.Refused(), "the key is the configured one alone")
	s.close(c)
}

// The agent lives on when its turn is interrupted, and knows of it.
func testInterruptedQuestion(t *testing.T, s *agentSite) {
	c := s.open()
	l, _ := s.asked(c)
	c.call("interruptSession", object{"session_id": l.SessionID}, nil)
	require.Equal(t, "interrupted", c.awaitEnd(l.SessionID).Data.State)
	assert.Empty(t, c.pending())
	calls := c.toolCalls(l.SessionID)
	require.Len(t, calls, 1)
	assert.Equal(t, []string{"Bash", "failed", "cancelled"}, []string{calls[0].Tool, calls[0].Status, calls[0].Approval})

	s.requireGoesOn(c, l, "run: touch made", "say: hello")
	assert.False(t, s.exists("made"))
	s.close(c)
}

// A conversation goes on in the next process, with the agent's own session.
func testRestarted(t *testing.T, s *agentSite) {
	c := s.open()
	first := c.launch("say: one", s.agent)
	require.Equal(t, "completed", c.awaitEnd(first.SessionID).Data.State)
	second := s.requireGoesOn(c, first, "say: one", "say: two")
	native := c.usage(second.SessionID).Native
	s.awaitRecord(`"two"`)
	s.close(c)

	c = s.open()
	third := s.requireGoesOn(c, second, "say: one", "say: two", "say: three")
	assert.Equal(t, native, c.usage(third.SessionID).Native)
	assert.Equal(t, "onetwothree", c.conversation(third.SessionID), "what the agent tells again is not said again")
	assert.Equal(t, model.InputTokens, c.usage(third.SessionID).Input)
	s.close(c)
}

// requireGoesOn requires that a session goes on with the last of prompts, and
// that the model is told of all of them.
func (s *agentSite) requireGoesOn(c *client, from launched, prompts ...string) (next launched) {
	s.t.Helper()
	c.call("continueSession", object{"session_id": from.SessionID, "query": prompts[len(prompts)-1]}, &next)
	end := c.awaitEnd(next.SessionID)
	require.Equal(s.t, "completed", end.Data.State, "%s", end.Raw)
	require.Equal(s.t, prompts, s.model.Prompts())
	return next
}

// What a model says of a wrong key is what the user is told.
func testWrongKey(t *testing.T, s *agentSite) {
	s.env = append(s.env, "KEY_OF_THE_MODEL="+s.model.Key+"-but-not-quite")
	s.variables["CLAUDE_CODE_MAX_RETRIES"] = "0"
	s.configure()
	c := s.open()
	end := c.awaitEnd(c.launch("say: hello", s.agent).SessionID)
	assert.Equal(t, "failed", end.Data.State)
	assert.Equal(t, "AGENT_ERROR", end.Data.ErrorCode)
	assert.Regexp(t, "(?i)api.key", end.Data.Error)
	assert.True(t, s.model.Refused())
	s.close(c)
}
