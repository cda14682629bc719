//go:build unix

package executor_test

import (
	"context"
	"encoding/json"
	"strings"
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
			done := executing(t, x, prompt(t, "plain", c.word))
			h.Await(t, func() bool { return h.text() != "" }, "the agent's first text")
			result := must(x.Shutdown(context.Background(), catalog.ShutdownParams{TimeoutMS: c.timeout}))(t)
			assert.Equal(t, c.status, result.Status)
			assert.Equal(t, c.result, (<-done).Status)
			assert.True(t, exited.Load())
			assert.ErrorContains(t, errorOf(x.ExecutePrompt(context.Background(), prompt(t, "plain", "turn"))), "shutting down")
			_, err := x.SpawnTerminal(context.Background(), catalog.SpawnTerminalParams{})
			assert.ErrorContains(t, err, "shutting down")
		})
	}
}

// An agent that hangs before it has the prompt has nothing to cancel, so a stop ends it without the
// grace of a cancel. A response that repeats an agent's request id with the text of a prompt is not
// a prompt.
func TestAgentWithoutPromptIsEndedAtOnce(t *testing.T) {
	for _, kind := range []string{"silent", "forger"} {
		t.Run(kind, func(t *testing.T) {
			h := newHub()
			x := newExecutor(t, h, executor.Options{StartTimeout: time.Hour, Grace: executor.Grace{Cancel: time.Hour, Interrupt: quick.Interrupt, Terminate: quick.Terminate}})
			done := executing(t, x, prompt(t, kind, "turn"))
			h.Await(t, func() bool { return len(h.data(catalog.EventProcess)) > 0 }, "the start of the agent")
			if kind == "forger" {
				h.Await(t, func() bool { return len(h.codes()) > 0 }, "the agent's error after the response")
			}
			x.StopTask(context.Background(), catalog.StopTaskParams{TaskID: "task-1"})
			select {
			case result := <-done:
				assert.Equal(t, catalog.StatusCancelled, result.Status)
			case <-time.After(time.Minute):
				require.FailNow(t, "the agent gets the hour that only an agent with a prompt has")
			}
		})
	}
}

// A stop during the start of an agent also ends the agent, which may hang.
func TestAgentOfATaskStoppedAtItsStartIsEnded(t *testing.T) {
	h, x := hubAndExecutor(t)
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
	h, x := hubAndExecutor(t)
	p := prompt(t, "plain", "hang")
	go execute(t, x, p)
	h.Await(t, func() bool { return h.text() != "" }, "the agent's first text")
	assert.ErrorContains(t, errorOf(x.ExecutePrompt(context.Background(), p)), "task_id")
	p.Launch = nil
	assert.ErrorContains(t, errorOf(x.ExecutePrompt(context.Background(), p)), "launch")
}

func TestPromptsOfASessionAreSequential(t *testing.T) {
	h, x := hubAndExecutor(t)
	first := prompt(t, "plain", "hang")
	go execute(t, x, first)
	h.Await(t, func() bool { return h.text() != "" }, "the agent's first text")
	second := first
	second.TaskID, second.Prompt = "task-2", "turn"
	done := executing(t, x, second)
	meanwhile := first // a prompt of another session: takes long enough for a second that does not wait
	meanwhile.SessionID, meanwhile.TaskID, meanwhile.Prompt = "another", "task-3", "turn"
	h.Await(t, func() bool {
		h.Lock()
		defer h.Unlock()
		return h.begun["token"] >= 2
	}, "the second prompt")
	completes(t, x, meanwhile)
	assert.Zero(t, h.reportsOf("task-2"), "the second prompt waits")
	x.StopTask(context.Background(), catalog.StopTaskParams{TaskID: "task-1"})
	assert.Equal(t, catalog.StatusCompleted, (<-done).Status)
	assert.Contains(t, h.text(), "turn 2", "an agent that took the cancel still runs")
}

func release(t *testing.T, x *executor.Executor, session string) catalog.ReleaseSessionResult {
	t.Helper()
	return must(x.ReleaseSession(context.Background(), catalog.ReleaseSessionParams{SessionID: session}))(t)
}

// A session continues after the release of its idle agent, with any session methods of the
// agent.
func TestSessionContinuesAfterRelease(t *testing.T) {
	for kind, resumed := range map[string]string{
		"resume": `{"session_id":"native-1","resumed":true}`, "load": `{"session_id":"native-1","resumed":true}`,
		"plain": `{"session_id":"native-1","primed":true}`,
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			h, x := hubAndExecutor(t)
			p := prompt(t, kind, "echo one")
			execute(t, x, p)
			h.context.NativeSessionID = "native-1"
			h.context.Messages = []catalog.Message{{Role: "user", Content: "echo one"}, {Role: "assistant", Content: "what was answered"}, {Role: "user", Content: "echo two"}}
			assert.True(t, release(t, x, p.SessionID).Released)
			p.TaskID, p.Prompt = "task-2", "echo two"
			completes(t, x, p)
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
	h, x := hubAndExecutor(t)
	assert.True(t, release(t, x, "nobody").Released)

	p := prompt(t, "plain", "turn")
	execute(t, x, p)
	p.TaskID, p.Prompt = "task-2", "hang"
	done := executing(t, x, p)
	h.Await(t, func() bool { return strings.Contains(h.text(), "hanging") }, "the agent's first text")
	assert.Equal(t, catalog.ReleaseSessionResult{Reason: "busy"}, release(t, x, p.SessionID))
	must(x.StopTask(context.Background(), catalog.StopTaskParams{TaskID: p.TaskID}))(t)
	<-done

	p.TaskID, p.Prompt = "task-3", "leftover"
	execute(t, x, p)
	assert.Equal(t, catalog.ReleaseSessionResult{Reason: "terminals"}, release(t, x, p.SessionID))
	p.TaskID, p.Prompt = "task-4", "tidy"
	execute(t, x, p)
	h.Await(t, func() bool { return len(h.Exits()) == 1 }, "the terminal's end")
	assert.True(t, release(t, x, p.SessionID).Released)
}

// silences returns the reports of the agent's silence.
func (h *hub) silences(t *testing.T) (all []catalog.Silence) {
	t.Helper()
	for _, data := range h.data(catalog.EventSilence) {
		var s catalog.Silence
		require.NoError(t, json.Unmarshal([]byte(data), &s))
		all = append(all, s)
	}
	return all
}

func TestSilentAgentIsReported(t *testing.T) {
	for words, want := range map[string]catalog.Silence{
		"mutter": {Note: "API error 500, trying again"},
		"retry":  {Note: "Reconnecting... 1/5: high demand"},
		"dangle": {Note: "API error 500, trying again", ToolID: "t1", Tool: "Look into it"},
	} {
		t.Run(words, func(t *testing.T) {
			t.Parallel()
			h := newHub()
			x := newExecutor(t, h, executor.Options{SilentAfter: 300 * time.Millisecond, SilentToolAfter: 300 * time.Millisecond})
			began := time.Now()
			go func() {
				h.Await(t, func() bool { // it may be slow to start, too
					all := h.silences(t)
					return len(all) > 0 && all[len(all)-1].Note == want.Note
				}, "the report of the silence")
				x.StopTask(t.Context(), catalog.StopTaskParams{TaskID: "task-1"})
			}()
			result := execute(t, x, prompt(t, "plain", words))
			assert.Equal(t, catalog.StatusCancelled, result.Status)
			all := h.silences(t)
			last := all[len(all)-1]
			assert.True(t, last.Ended)
			assert.WithinRange(t, time.UnixMilli(last.SinceMS), began, time.Now())
			assert.Positive(t, last.LastedMS)
			last.SinceMS, last.LastedMS, last.Ended = 0, 0, false
			assert.Equal(t, want, last)
			types := h.types()
			assert.Equal(t, []string{"agent_silent", "content_block_delta"}, types[len(types)-2:], "the end of the silence precedes its cause")
		})
	}
}
