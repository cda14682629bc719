package executor

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

func TestExecuteResultOfEachEnd(t *testing.T) {
	for state, want := range map[domain.State]string{
		domain.Completed: `{"status":"completed","message_count":0,"agent":"","session_id":"S","task_id":"task-0001"}`,
		domain.TimedOut:  `{"status":"failed","message_count":0,"error":{"message":"the time limit was reached","code":"TIMEOUT"},"agent":"","session_id":"S","task_id":"task-0001"}`,
		domain.Failed:    `{"status":"failed","message_count":0,"error":{"message":"the agent failed and did not say why","code":"EXECUTOR_ERROR"},"agent":"","session_id":"S","task_id":"task-0001"}`,
		domain.Cancelled: `{"status":"cancelled","message_count":0,"agent":"","session_id":"S","task_id":"task-0001"}`,
	} {
		s := domain.TurnInSession{}
		s.State, s.Task, s.HumanLayerSession = state, 1, "S"
		b, err := json.Marshal(executed(s, ExecuteParams{}))
		require.NoError(t, err)
		assert.JSONEq(t, want, string(b))
	}
	assert.Equal(t, "claude", ExecuteParams{AgenticTool: "claude-code"}.Native().Agent)
	assert.Equal(t, "x", ExecuteParams{AgenticTool: "claude-code", Agent: "x"}.Native().Agent)
	assert.Equal(t, 5*time.Minute, limitOf(-1))
}

// A time limit that is too long is the longest.
func TestTimeLimits(t *testing.T) {
	assert.Equal(t, time.Hour, limitOf(time.Hour.Milliseconds()))
	assert.Equal(t, protocol.LongestDuration, limitOf(1<<62))
}

func limitOf(ms int64) time.Duration {
	return protocol.Milliseconds(*ExecuteParams{TimeoutMS: ms}.Native().TimeoutMS)
}
