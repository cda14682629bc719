//go:build unix

package executor_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor"
)

func TestAgentIsReused(t *testing.T) {
	h, x := hubAndExecutor(t)
	p := prompt(t, "plain", "turn")
	execute(t, x, p)
	p.TaskID = "task-2"
	h.context.NativeSessionID = "native-1"
	execute(t, x, p)
	assert.Contains(t, h.text(), "turn 2")
	assert.Len(t, h.data("native_session"), 2)
	assert.Contains(t, h.data("native_session")[1], `"resumed":true`)
	processes := h.data("process")
	assert.Equal(t, processes[0], processes[1])

	p.TaskID, p.Prompt = "task-3", "crash"
	assert.Equal(t, catalog.StatusFailed, execute(t, x, p).Status)
	p.TaskID, p.Prompt = "task-4", "turn"
	assert.Equal(t, catalog.StatusCompleted, execute(t, x, p).Status, "a dead agent is started again")

	p.TaskID, p.Launch.Environment, p.Launch.Program = "task-another-client", map[string]string{"DISPLAY": ":1"}, os.Args[0]
	execute(t, x, p)
	processes = h.data("process")
	assert.Equal(t, processes[len(processes)-2], processes[len(processes)-1], "also for another client")

	p.TaskID, p.Launch.Env["OTHER"] = "task-5", "x"
	execute(t, x, p)
	processes = h.data("process")
	assert.NotEqual(t, processes[4], processes[5], "another launch is another process")
}

func TestResuming(t *testing.T) {
	for kind, check := range map[string]func(*testing.T, *hub){
		"resume": func(t *testing.T, h *hub) {
			assert.Equal(t, []string{`{"session_id":"before","resumed":true}`}, h.data("native_session"))
			assert.Equal(t, "echo again", h.text())
		},
		"load": func(t *testing.T, h *hub) {
			assert.Equal(t, []string{`{"session_id":"before","resumed":true}`}, h.data("native_session"))
			assert.Equal(t, "echo again", h.text(), "the replay is dropped")
		},
		"forgetful": func(t *testing.T, h *hub) {
			assert.Equal(t, []string{`{"session_id":"native-1","primed":true}`}, h.data("native_session"))
			assert.Contains(t, h.text(), "User: what was said")
			assert.Contains(t, h.text(), "Assistant: what was answered")
		},
		"plain": func(t *testing.T, h *hub) {
			assert.Equal(t, []string{`{"session_id":"native-1","primed":true}`}, h.data("native_session"))
		},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			h := newHub()
			h.context = catalog.GetExecutionContextResult{
				NativeSessionID: "before",
				Messages: []catalog.Message{
					{Role: "user", Content: "what was said"}, {Role: "assistant", Content: "what was answered"}, {Role: "user", Content: "echo again"},
				},
			}
			x := newExecutor(t, h, executor.Options{})
			completes(t, x, prompt(t, kind, "echo again"))
			check(t, h)
		})
	}
}

// A resumed agent gets the user's messages without later activity again. They may never have
// reached the agent: its executor may have died, or the turn may have stopped, right after the
// session opened.
func TestResumedAgentGetsUnansweredMessages(t *testing.T) {
	said := func(role, content string) catalog.Message { return catalog.Message{Role: role, Content: content} }
	for name, test := range map[string]struct {
		messages      []catalog.Message
		reported, not []string
	}{
		"nothing was answered": {
			[]catalog.Message{said("user", "the first"), said("user", "the second")}, []string{"User: the first", "User: the second"}, nil,
		},
		"the end was not answered": {
			[]catalog.Message{said("user", "the first"), said("assistant", "an answer"), said("user", "the second")}, []string{"User: the second"}, []string{"the first", "an answer"},
		},
		"a tool was called": {
			[]catalog.Message{said("user", "the first"), {Role: "assistant", Type: "tool_call", Content: "Bash: ls"}}, nil, []string{"the first", "Bash"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHub()
			h.context = catalog.GetExecutionContextResult{NativeSessionID: "before", Messages: test.messages}
			x := newExecutor(t, h, executor.Options{})
			p := prompt(t, "load", "echo again")
			completes(t, x, p)
			assert.True(t, strings.HasSuffix(h.text(), "echo again"), h.text())

			p.TaskID = "task-2" // to the agent that is still running
			before := len(h.text())
			execute(t, x, p)
			for _, text := range []string{h.text()[:before], h.text()[before:]} {
				for _, want := range test.reported {
					assert.Contains(t, text, want)
				}
				for _, other := range test.not {
					assert.NotContains(t, text, other)
				}
			}
		})
	}
}

func TestModeAndModel(t *testing.T) {
	h := newHub()
	h.context.ModelConfig = &catalog.ModelConfig{Model: "big"}
	x := newExecutor(t, h, executor.Options{})
	p := prompt(t, "plain", "turn")
	p.PermissionMode = catalog.ModePlan
	execute(t, x, p)
	assert.Contains(t, h.text(), "mode plan")
	assert.Contains(t, h.text(), "model big")
	assert.Equal(t, []string{`{"current":"plan","available":["default","plan"],"choices":[{"id":"default","name":"Default"},{"id":"plan","name":"Plan"}]}`}, h.data("mode"))
	p.TaskID, p.Prompt = "task-2", "leave"
	execute(t, x, p)
	p.TaskID, p.Prompt = "task-3", "turn"
	execute(t, x, p)
	assert.Equal(t, 2, strings.Count(h.text(), "mode plan"), "it is set again if the agent left it, and only then")
}

func TestFilesStayInWorkspace(t *testing.T) {
	h, x := hubAndExecutor(t)
	p := prompt(t, "plain", "files")
	require.NoError(t, os.WriteFile(filepath.Join(p.CWD, "lines.txt"), []byte("1\n2\n3\n4\n"), 0o640))
	require.NoError(t, os.Symlink("/etc", filepath.Join(p.CWD, "out")))
	require.NoError(t, syscall.Mkfifo(filepath.Join(p.CWD, "fifo"), 0o600))
	execute(t, x, p)
	lines := strings.Split(h.text(), "\n")
	assert.Equal(t, `lines {"content":"2\n3\n"}`, lines[0])
	assert.Contains(t, lines[1], "outside of ")
	assert.Contains(t, lines[2], "leads to /etc/passwd")
	assert.JSONEq(t, fmt.Sprintf(`{"code":-32002,"message":"Resource not found: %s"}`, filepath.Join(p.CWD, "missing.txt")), strings.TrimPrefix(lines[3], "missing "))
	assert.Contains(t, lines[4], "not a regular file")
	assert.Equal(t, "write ", lines[5])
	assert.Contains(t, lines[6], "outside of ")
	info := must(os.Stat(filepath.Join(p.CWD, "lines.txt")))(t)
	assert.EqualValues(t, 0o640, info.Mode().Perm(), "the mode is kept")
	assert.Len(t, h.data("file_change"), 1)
	assert.Contains(t, h.data("file_change")[0], `"after":"changed"`)
	assert.Empty(t, must(filepath.Glob(filepath.Join(p.CWD, ".duet-*")))(t))
}

func TestAgentTerminals(t *testing.T) {
	h, x := hubAndExecutor(t)
	execute(t, x, prompt(t, "plain", "terminal"))
	assert.Contains(t, h.text(), `{"exitCode":4}`)
	assert.Contains(t, h.text(), `"output":"hällothere\n"`)
	assert.True(t, strings.HasSuffix(h.text(), "true"), "a released terminal is gone")
	// The agent may see the end before the hub.
	h.Await(t, func() bool { return len(h.Exits()) == 1 }, "the terminal's end")
	exit := h.Exits()[0]
	assert.Equal(t, 4, exit.ExitCode)
	assert.Equal(t, "task-1", exit.TaskID)
	h.Lock()
	require.NotEmpty(t, h.started)
	assert.Equal(t, exit.TerminalID, h.started[0].TerminalID)
	assert.Equal(t, "task-1", h.started[0].TaskID)
	assert.Positive(t, h.started[0].PID)
	h.Unlock()

	p := prompt(t, "plain", "leftover")
	p.TaskID = "task-2"
	execute(t, x, p) // requireNoProcess checks for it
}

func TestPausing(t *testing.T) {
	h, x := hubAndExecutor(t)
	paused := make(chan struct{})
	h.onReport = func(r catalog.ReportMessageParams) {
		if r.EventType == catalog.EventNativeSession {
			x.PauseNotifications(context.Background())
			close(paused)
		}
	}
	done := executing(t, x, prompt(t, "plain", "flood"))
	<-paused
	before := len(h.data(catalog.EventContentDelta))
	// Another agent, which is not paused, sends the same amount: long enough for the first.
	execute(t, newExecutor(t, newHub(), executor.Options{}), prompt(t, "plain", "flood"))
	assert.Empty(t, done, "the executor does not read the agent")
	assert.Less(t, len(h.data(catalog.EventContentDelta)), before+5000, "no more than was read already")
	x.ResumeNotifications(context.Background())
	assert.Equal(t, catalog.StatusCompleted, (<-done).Status)
	assert.Len(t, h.data(catalog.EventContentDelta), 50_000)
}

// A prompt that comes with its context does not ask the hub for it, unless the agent needs the history.
func TestAPromptWithItsContext(t *testing.T) {
	h := newHub()
	x := newExecutor(t, h, executor.Options{})
	p := prompt(t, "load", "echo one")
	p.Context = &catalog.GetExecutionContextResult{NativeSessionID: "before", Messages: []catalog.Message{{Role: "user", Content: "unanswered"}}}
	completes(t, x, p)
	assert.Contains(t, h.text(), "User: unanswered")
	assert.Empty(t, h.begun)
	p.SessionID, p.TaskID, p.Context = "another", "task-2", &catalog.GetExecutionContextResult{}
	h.context.Messages = []catalog.Message{{Role: "user", Content: "long ago"}}
	execute(t, x, p)
	assert.Contains(t, h.text(), "User: long ago")
}
