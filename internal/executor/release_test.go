//go:build unix

package executor_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor"
)

func release(t *testing.T, x *executor.Executor, session string) catalog.ReleaseSessionResult {
	t.Helper()
	r, err := x.ReleaseSession(context.Background(), catalog.ReleaseSessionParams{SessionID: session})
	require.NoError(t, err)
	return r
}

// A conversation goes on after its idle agent was ended, whatever session methods the agent has.
func TestConversationContinuesAfterRelease(t *testing.T) {
	for kind, resumed := range map[string]string{
		"resume": `{"session_id":"native-1","resumed":true}`, "load": `{"session_id":"native-1","resumed":true}`,
		"plain": `{"session_id":"native-1","primed":true}`,
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			h := newHub()
			x := newExecutor(t, h, executor.Options{})
			p := prompt(t, kind, "echo one")
			execute(t, x, p)
			h.context.NativeSessionID = "native-1"
			h.context.Messages = []catalog.Message{{Role: "user", Content: "echo one"}, {Role: "assistant", Content: "what was answered"}, {Role: "user", Content: "echo two"}}
			assert.True(t, release(t, x, p.SessionID).Released)
			p.TaskID, p.Prompt = "task-2", "echo two"
			assert.Equal(t, catalog.StatusCompleted, execute(t, x, p).Status)
			processes := h.data("process")
			assert.NotEqual(t, processes[0], processes[1], "another agent")
			assert.Equal(t, resumed, h.data("native_session")[1])
			if kind == "plain" {
				assert.Contains(t, h.text(), "Assistant: what was answered")
			}
		})
	}
}

func TestWorkingAgentIsNotReleased(t *testing.T) {
	h := newHub()
	x := newExecutor(t, h, executor.Options{})
	assert.True(t, release(t, x, "nobody").Released)

	p := prompt(t, "plain", "turn")
	execute(t, x, p)
	p.TaskID, p.Prompt = "task-2", "hang"
	done := make(chan catalog.ExecutePromptResult, 1)
	go func() {
		r, _ := x.ExecutePrompt(context.Background(), p)
		done <- r
	}()
	h.Await(t, func() bool { return strings.Contains(h.text(), "hanging") }, "that the agent is at it")
	assert.Equal(t, catalog.ReleaseSessionResult{Reason: "busy"}, release(t, x, p.SessionID))
	_, err := x.StopTask(context.Background(), catalog.StopTaskParams{TaskID: p.TaskID})
	require.NoError(t, err)
	<-done

	p.TaskID, p.Prompt = "task-3", "leftover"
	execute(t, x, p)
	assert.Equal(t, catalog.ReleaseSessionResult{Reason: "terminals"}, release(t, x, p.SessionID))
	p.TaskID, p.Prompt = "task-4", "tidy"
	execute(t, x, p)
	h.Await(t, func() bool { return len(h.Exits()) == 1 }, "the terminal's end")
	assert.True(t, release(t, x, p.SessionID).Released)
}
