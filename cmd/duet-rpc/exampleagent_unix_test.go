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

func goExample(t testing.TB) []string {
	t.Helper()
	path, err := buildGoExample()
	require.NoError(t, err)
	return []string{path}
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
