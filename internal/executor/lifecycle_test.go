//go:build unix

package executor_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor"
)

func TestShutdown(t *testing.T) {
	for _, c := range []struct {
		word    string
		timeout int64
		status  string
		result  string
	}{
		{"hang", 50, "interrupted", catalog.StatusCancelled},
		{"flood", 60_000, "completed", catalog.StatusCompleted},
	} {
		t.Run(c.status, func(t *testing.T) {
			h := newHub()
			var exited atomic.Bool
			x := newExecutor(t, h, executor.Options{Exit: func() { exited.Store(true) }})
			done := make(chan catalog.ExecutePromptResult, 1)
			go func() { done <- execute(t, x, prompt(t, "plain", c.word)) }()
			h.Await(t, func() bool { return h.text() != "" }, "that the agent is at it")
			result, err := x.Shutdown(context.Background(), catalog.ShutdownParams{TimeoutMS: c.timeout})
			require.NoError(t, err)
			assert.Equal(t, c.status, result.Status)
			assert.Equal(t, c.result, (<-done).Status)
			assert.True(t, exited.Load())
			_, err = x.ExecutePrompt(context.Background(), prompt(t, "plain", "turn"))
			assert.ErrorContains(t, err, "shutting down")
			_, err = x.SpawnTerminal(context.Background(), catalog.SpawnTerminalParams{})
			assert.ErrorContains(t, err, "shutting down")
		})
	}
}

// An agent that hangs before it has the prompt has nothing to cancel: it is ended without the
// grace of a cancel. A request id of the agent that looks like a prompt, in the answer to it, is
// no prompt.
func TestAgentWithoutPromptIsEndedAtOnce(t *testing.T) {
	for _, kind := range []string{"silent", "forger"} {
		t.Run(kind, func(t *testing.T) { endedWithoutThePrompt(t, kind) })
	}
}

func endedWithoutThePrompt(t *testing.T, kind string) {
	h := newHub()
	x := newExecutor(t, h, executor.Options{StartTimeout: time.Hour, Grace: executor.Grace{Cancel: time.Hour, Interrupt: quick.Interrupt, Terminate: quick.Terminate}})
	done := make(chan catalog.ExecutePromptResult, 1)
	go func() { done <- execute(t, x, prompt(t, kind, "turn")) }()
	h.Await(t, func() bool { return len(h.data(catalog.EventProcess)) > 0 }, "that the agent was started")
	if kind == "forger" {
		h.Await(t, func() bool { return len(h.codes()) > 0 }, "that it has its answer")
	}
	x.StopTask(context.Background(), catalog.StopTaskParams{TaskID: "task-1"})
	select {
	case result := <-done:
		assert.Equal(t, catalog.StatusCancelled, result.Status)
	case <-time.After(time.Minute):
		require.FailNow(t, "it gets the hour of an agent that has the prompt")
	}
}

// A task is stopped while its agent starts. The agent may hang, so it is ended too.
func TestAgentOfATaskStoppedAtItsStartIsEnded(t *testing.T) {
	h := newHub()
	x := newExecutor(t, h, executor.Options{})
	h.key = func(string) (string, error) {
		x.StopTask(context.Background(), catalog.StopTaskParams{TaskID: "task-1"})
		return "k", nil
	}
	p := prompt(t, "silent", "turn")
	p.Launch.Keys = map[string]string{"A_KEY": "service"}
	assert.Equal(t, catalog.StatusCancelled, execute(t, x, p).Status)
	started := h.data(catalog.EventProcess)
	require.Len(t, started, 1, "the agent's process")
	var agent catalog.Process
	require.NoError(t, json.Unmarshal([]byte(started[0]), &agent))
	assert.ErrorIs(t, syscall.Kill(agent.PID, 0), syscall.ESRCH)
}

func TestInvalidPrompts(t *testing.T) {
	h := newHub()
	x := newExecutor(t, h, executor.Options{})
	p := prompt(t, "plain", "hang")
	go execute(t, x, p)
	h.Await(t, func() bool { return h.text() != "" }, "that the agent is at it")
	_, err := x.ExecutePrompt(context.Background(), p)
	assert.ErrorContains(t, err, "task_id")
	p.Launch = nil
	_, err = x.ExecutePrompt(context.Background(), p)
	assert.ErrorContains(t, err, "launch")
}

func TestPromptsOfASessionAreSequential(t *testing.T) {
	h := newHub()
	x := newExecutor(t, h, executor.Options{})
	first := prompt(t, "plain", "hang")
	go execute(t, x, first)
	h.Await(t, func() bool { return h.text() != "" }, "that the agent is at it")
	second := first
	second.TaskID, second.Prompt = "task-2", "turn"
	done := make(chan catalog.ExecutePromptResult, 1)
	go func() { done <- execute(t, x, second) }()
	meanwhile := first // a prompt of another session: takes long enough for a second that does not wait
	meanwhile.SessionID, meanwhile.TaskID, meanwhile.Prompt = "another", "task-3", "turn"
	h.Await(t, func() bool { return h.contexts("token") >= 2 }, "that the second is on its way")
	assert.Equal(t, catalog.StatusCompleted, execute(t, x, meanwhile).Status)
	assert.Zero(t, h.reportsOf("task-2"), "the first is not done")
	x.StopTask(context.Background(), catalog.StopTaskParams{TaskID: "task-1"})
	assert.Equal(t, catalog.StatusCompleted, (<-done).Status)
	assert.Contains(t, h.text(), "turn 2", "an agent that took the cancel lives on")
}
