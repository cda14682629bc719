package aiwg

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

func TestNotificationsOfTasks(t *testing.T) {
	s := domain.TurnInSession{}
	s.Task, s.Prompt, s.Result, s.Error = 7, "p", "r", "boom"
	s.Started, s.Ended = time.Unix(10, 0), time.Unix(12, 0)
	spelled := func(n *protocol.Notification) string {
		b, err := json.Marshal(n)
		require.NoError(t, err)
		return string(b)
	}
	for state, want := range map[domain.State]string{
		domain.Queued:   `"event.taskQueued","params":{"taskId":"task-0007","prompt":"p","seq":9}`,
		domain.Starting: `"event.taskStarted","params":{"taskId":"task-0007","pid":null,"seq":9}`,
		domain.Running:  "", domain.WaitingInput: "", domain.Interrupting: "", domain.Draft: "", domain.Discarded: "",
		domain.Completed:   `"event.taskCompleted","params":{"taskId":"task-0007","result":"r","duration":2000,"seq":9}`,
		domain.Failed:      `"event.taskFailed","params":{"taskId":"task-0007","duration":2000,"error":"boom","seq":9}`,
		domain.Cancelled:   `"event.taskCancelled","params":{"taskId":"task-0007","reason":"boom","seq":9}`,
		domain.Interrupted: `"event.taskCancelled","params":{"taskId":"task-0007","reason":"boom","seq":9}`,
		domain.TimedOut:    `"event.taskTimeout","params":{"taskId":"task-0007","error":"boom","seq":9}`,
	} {
		n := TaskChanged(state, s, 9)
		if want == "" {
			assert.Nil(t, n, state)
			continue
		}
		require.NotNil(t, n, state)
		assert.Equal(t, `{"jsonrpc":"2.0","method":`+want+`}`, spelled(n))
	}
	assert.Equal(t, `{"jsonrpc":"2.0","method":"event.taskOutput","params":{"taskId":"task-0007","chunk":"x","stream":"stdout","seq":9}}`,
		spelled(TaskOutput(7, "x", 9)))
	s.Error, s.State = "", domain.Cancelled
	assert.Contains(t, spelled(TaskChanged(domain.Cancelled, s, 9)), `"reason":"cancelled"`)
	s.Prompt, s.Result = strings.Repeat("p", longestTaskPrompt+1), strings.Repeat("r", longestTaskResult+1)
	assert.Contains(t, spelled(TaskChanged(domain.Queued, s, 9)), "p… [1 of 1001 bytes left out]")
	assert.Contains(t, spelled(TaskChanged(domain.Completed, s, 9)), "r… [1 of 65537 bytes left out]")
}

func TestATaskIsSubmittedQueuedOrRunning(t *testing.T) {
	assert.Equal(t, "queued", SubmittedStateOf(domain.Queued))
	for _, state := range []domain.State{domain.Starting, domain.Running, domain.Completed, domain.Failed} {
		assert.Equal(t, "running", SubmittedStateOf(state), state)
	}
}

func TestCounts(t *testing.T) {
	assert.Equal(t, TaskStats{Total: 10, Running: 4, Queued: 1, Completed: 1, Failed: 2, Cancelled: 2}, statsOf(domain.Counts{
		domain.Draft: 9, domain.Queued: 1, domain.Starting: 1, domain.Running: 1, domain.WaitingInput: 1, domain.Interrupting: 1, domain.Completed: 1, domain.Failed: 1, domain.TimedOut: 1, domain.Cancelled: 1, domain.Interrupted: 1, domain.Discarded: 9,
	}))
}
