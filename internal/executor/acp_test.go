//go:build unix

package executor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/executor"
	"github.com/duet-rpc/duet-rpc/internal/executor/task"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// Invalid usage figures of an agent do not fail a completed turn.
func TestInvalidUsageIsIgnored(t *testing.T) {
	for usage, want := range map[string]*catalog.TokenUsage{
		`{"inputTokens":7,"outputTokens":1e300,"cachedReadTokens":-3}`:                       {InputTokens: 7},
		`{"inputTokens":7.5,"outputTokens":"5","cachedReadTokens":[],"cachedWriteTokens":8}`: {CacheWriteTokens: 8},
		`{"inputTokens":1e999,"outputTokens":9223372036854775807,"cachedReadTokens":3e0}`:    {CacheReadTokens: 3},
		`{"inputTokens":{},"outputTokens":123456789012345678901234567890}`:                   {},
		`[]`: nil, `"none"`: nil, `1e300`: nil, `null`: nil,
	} {
		h := newHub()
		result := execute(t, newExecutor(t, h, executor.Options{}), prompt(t, "plain", "figures "+usage))
		assert.Equal(t, catalog.StatusCompleted, result.Status, usage)
		assert.Equal(t, want, result.TokenUsage, usage)
		reported := h.data("usage")
		require.GreaterOrEqual(t, len(reported), 4, usage)
		assert.Equal(t, []string{
			`{"input_tokens":0,"output_tokens":0}`, `{"input_tokens":0,"output_tokens":0,"context_used":10}`, `{"input_tokens":0,"output_tokens":0}`,
			`{"input_tokens":0,"output_tokens":0,"context_used":20,"context_size":200,"cost_usd":0.5}`,
		}, reported[:4], usage)
	}
}

func TestTurnWithPermissionAndDiff(t *testing.T) {
	h, x := hubAndExecutor(t)
	p := prompt(t, "plain", "edit")
	path := filepath.Join(p.CWD, "demo.txt")
	require.NoError(t, os.WriteFile(path, []byte("old\n"), 0o600))
	h.answers(catalog.RequestPermissionResult{Approved: true, UpdatedInput: json.RawMessage(`{"a":1}`)}, nil)
	result := execute(t, x, p)
	assert.Equal(t, catalog.StatusCompleted, result.Status)
	assert.Equal(t, "end_turn", result.StopReason)
	assert.Equal(t, 2, result.MessageCount, "one before the tool and one after it")
	assert.Equal(t, &catalog.TokenUsage{InputTokens: 7, OutputTokens: 5, CacheReadTokens: 3}, result.TokenUsage)
	assert.Equal(t, []catalog.ReportCompletionParams{{SessionToken: p.SessionToken, TaskID: p.TaskID, Status: catalog.StatusCompleted, TokenUsage: result.TokenUsage}},
		h.ends, "the report precedes the response")
	assert.Equal(t, []string{
		"process", "native_session", "session", "mode", "content_block_delta", "tool_call", "tool_result", "file_change", "content_block_delta", "usage",
	}, h.types())
	for i, r := range h.reports {
		assert.EqualValues(t, i+1, r.Sequence)
		assert.Equal(t, "token", r.SessionToken)
		assert.Equal(t, "task-1", r.TaskID)
	}
	require.Len(t, h.asked, 1)
	ask := h.asked[0]
	assert.Equal(t, "Edit", ask.ToolName, "from the tool call before")
	assert.Equal(t, "Edit demo.txt", ask.Title)
	assert.JSONEq(t, `{"file_path":"`+path+`"}`, string(ask.ToolInput))
	assert.Equal(t, []string{path}, ask.Paths)
	assert.Len(t, ask.Diffs, 1)
	assert.Len(t, ask.Options, 2)
	assert.False(t, ask.IsQuestion)
	assert.True(t, ask.InputFixed, "the agent did not announce support for changed input")
	assert.Equal(t, `{"tool_id":"t1","tool":"Edit","status":"completed","result":"written"}`, h.data("tool_result")[0])
	assert.JSONEq(t, `{"path":"`+path+`","before":"old\n","after":"new\n"}`, h.data("file_change")[0])
	assert.Contains(t, h.text(), `"duet":{"updatedInput":{"a":1}}`)
}

func TestChangedInputIsSentIfTheAgentSupportsIt(t *testing.T) {
	h, x := hubAndExecutor(t)
	completes(t, x, prompt(t, "heeding", "edit"))
	require.Len(t, h.asked, 1)
	assert.False(t, h.asked[0].InputFixed)
}

// The policy also applies to an agent's actions without a permission request.
func TestPolicyDenialsApplyWithoutAsking(t *testing.T) {
	p := prompt(t, "plain", "unasked") // first: its directory must outlive the programs in it
	h, x := hubAndExecutor(t)
	h.answers(catalog.RequestPermissionResult{Reason: "mode=plan"}, nil)
	there := filepath.Join(p.CWD, "there.txt")
	require.NoError(t, os.WriteFile(there, []byte("old"), 0o600))
	completes(t, x, p)
	assert.Equal(t, "old", string(must(os.ReadFile(there))(t)))
	for _, name := range []string{"new.txt", "told.txt", "made"} {
		assert.NoFileExists(t, filepath.Join(p.CWD, name))
	}
	assert.Equal(t, 6, strings.Count(h.text(), "denied by mode=plan"), h.text())
	assert.Empty(t, h.started)
	type asked struct {
		tool, kind, input string
		unasked           []string
	}
	var got []asked
	for _, q := range h.asked {
		assert.Equal(t, []string{"token", "task-1"}, []string{q.SessionToken, q.TaskID})
		got = append(got, asked{q.ToolName, q.ToolKind, string(q.ToolInput), q.Unasked})
	}
	file := func(name string) string { return `{"file_path":"` + filepath.Join(p.CWD, name) + `"}` }
	assert.Equal(t, []asked{
		{"Write", "edit", file("there.txt"), []string{"Write", "Edit"}},
		{"Write", "edit", file("new.txt"), []string{"Write"}},
		{"Write", "edit", file("told.txt"), []string{"Write", "Patch"}},
		{"Bash", "execute", `{"command":"touch made; true"}`, []string{"Bash"}},
		{"Bash", "execute", `{"command":"touch made 'a b'"}`, []string{"Bash"}},
		{"Bash", "execute", `{"command":"touch made"}`, []string{"Bash"}},
	}, got)

	h.answers(catalog.RequestPermissionResult{}, errors.New("it is gone"))
	p.TaskID = "task-2"
	execute(t, x, p)
	assert.Contains(t, h.text(), "cannot ask the hub for permission: it is gone")
	assert.NoFileExists(t, filepath.Join(p.CWD, "new.txt"))
	h.decide = nil
	p.TaskID = "task-3"
	execute(t, x, p)
	assert.FileExists(t, filepath.Join(p.CWD, "new.txt"))
}

func TestQuestionWithoutOptionsIsNotAsked(t *testing.T) {
	h, x := hubAndExecutor(t)
	completes(t, x, prompt(t, "plain", "mute"))
	assert.Empty(t, h.asked)
	assert.Equal(t, []string{"PERMISSION_FAILED"}, h.codes())
	assert.Contains(t, h.text(), "cancelled")
}

// Without an answer of the hub, the action does not happen. The agent gets no denial, because it
// would remember one after a resume. A report that the hub refuses fails the turn.
func TestTurnFailsIfTheHubRefusesReports(t *testing.T) {
	h, x := hubAndExecutor(t)
	p := prompt(t, "plain", "edit")
	h.answers(catalog.RequestPermissionResult{}, errors.New("the session token is unknown"))
	result := execute(t, x, p)
	assert.Equal(t, catalog.StatusFailed, result.Status)
	assert.Equal(t, task.CodePermission, result.Error.Code)
	assert.Contains(t, result.Error.Message, "Edit demo.txt")
	assert.Contains(t, result.Error.Message, "the session token is unknown")
	assert.Equal(t, []string{task.CodePermission}, h.codes())
	assert.Contains(t, h.text(), `"outcome":"cancelled"`, "no user has decided")
	assert.NotContains(t, h.text(), `"optionId"`)

	p.TaskID, p.Prompt = "task-2", "unasked"
	result = execute(t, x, p)
	assert.Equal(t, catalog.StatusFailed, result.Status)
	assert.Equal(t, task.CodePermission, result.Error.Code)
	assert.Contains(t, result.Error.Message, "cannot ask the hub for permission")

	h.decide = nil
	p.TaskID, p.Prompt = "task-3", "plan"
	h.refuse = func(p catalog.ReportMessageParams) error {
		if p.EventType == catalog.EventPlan {
			return errors.New("I will not")
		}
		return nil
	}
	result = execute(t, x, p)
	assert.Equal(t, catalog.StatusFailed, result.Status)
	assert.Equal(t, &catalog.ExecutionError{Code: task.CodeOutput, Message: "output is missing: the hub did not accept the agent's output: I will not"}, result.Error)
	h.refuse = nil
	p.TaskID = "task-4"
	assert.Equal(t, catalog.StatusCompleted, execute(t, x, p).Status, "the next task is independent")
}

func TestDeniedTool(t *testing.T) {
	h, x := hubAndExecutor(t)
	h.answers(catalog.RequestPermissionResult{Comment: "not today"}, nil)
	completes(t, x, prompt(t, "plain", "edit"))
	assert.Contains(t, h.text(), "not done")
	assert.Contains(t, h.text(), `"optionId":"n"`)
	assert.Contains(t, h.text(), "not today")
	assert.Empty(t, h.data("file_change"))
}

func TestQuestion(t *testing.T) {
	h, x := hubAndExecutor(t)
	h.answers(catalog.RequestPermissionResult{Approved: true, OptionID: "red"}, nil)
	execute(t, x, prompt(t, "plain", "ask"))
	assert.True(t, h.asked[0].IsQuestion)
	assert.Equal(t, `{"big":12345678901234567890}`, string(h.asked[0].ToolInput), "numbers keep all digits")
	assert.Contains(t, h.text(), `"optionId":"red"`)
}

func TestProtocolErrorsOfAgents(t *testing.T) {
	for _, c := range []struct {
		word  string
		check func(t *testing.T, h *hub)
	}{
		{"garbage", func(t *testing.T, h *hub) {
			assert.Equal(t, []string{"AGENT_GARBAGE", "AGENT_GARBAGE", "AGENT_GARBAGE", "AGENT_GARBAGE", "AGENT_GARBAGE", "AGENT_GARBAGE"}, h.codes())
			assert.Contains(t, h.errors[0].Error.Message, "garbage 0 \uFFFD")
			assert.Contains(t, h.errors[5].Error.Message, "12 lines in all")
			assert.Equal(t, "after", h.text())
		}},
		{"long", func(t *testing.T, h *hub) {
			assert.Equal(t, []string{"AGENT_LINE_TOO_LONG"}, h.codes())
			assert.Equal(t, "after", h.text())
		}},
		{"longcall", func(t *testing.T, h *hub) { assert.Contains(t, h.text(), "longer than 10 MiB") }},
		{"invalid", func(t *testing.T, h *hub) { assert.Equal(t, "a\uFFFDb\uFFFDc", h.text()) }},
		{"unknown", func(t *testing.T, h *hub) {
			assert.Len(t, h.data("raw"), 3)
			assert.Equal(t, []string{`{"content":{"type":"image","mimeType":"image/png"}}`}, h.data("content"), "the hub rejects invalid content")
			assert.Contains(t, h.data("raw")[0], `"sessionUpdate":"notice"`)
			assert.Contains(t, h.data("raw")[1], `"toolCallId":17`)
			assert.Len(t, h.data("content_block_delta"), 1, "an empty chunk is not reported")
		}},
		{"plan", func(t *testing.T, h *hub) {
			assert.Equal(t, []string{`{"entries":[{"content":"one","priority":"high","status":"pending"}]}`}, h.data("plan"))
			assert.Equal(t, []string{`{"delta":{"text":"hm"}}`}, h.data("thinking_chunk"))
			assert.Contains(t, h.data("mode"), `{"current":"plan"}`)
			assert.Contains(t, h.data("usage")[0], `"context_used":10,"context_size":100,"cost_usd":0.5`)
			assert.Empty(t, h.text())
		}},
		{"flood", func(t *testing.T, h *hub) {
			assert.Len(t, h.data("content_block_delta"), 50_000)
			assert.True(t, strings.HasSuffix(h.text(), ",49998,49999,"))
		}},
		{"noise", func(t *testing.T, h *hub) { assert.Empty(t, h.errors) }},
		{"last", func(t *testing.T, h *hub) { assert.Empty(t, h.errors) }},
	} {
		t.Run(c.word, func(t *testing.T) {
			t.Parallel()
			h, x := hubAndExecutor(t)
			completes(t, x, prompt(t, "plain", c.word))
			c.check(t, h)
		})
	}
}

func TestRequestsOfAnAgentAreBounded(t *testing.T) {
	h, x := hubAndExecutor(t)
	h.decide = func(ctx context.Context, _ catalog.RequestPermissionParams) (catalog.RequestPermissionResult, error) {
		<-ctx.Done()
		return catalog.RequestPermissionResult{}, ctx.Err()
	}
	go stopAtWork(t, h, x)
	assert.Equal(t, catalog.StatusCancelled, execute(t, x, prompt(t, "plain", "many")).Status)
	assert.Equal(t, "refused 6", h.text(), "of 1,030 where 1,024 may be open")
}

func TestProcessesOfADeadAgentAreKilled(t *testing.T) {
	h, x := hubAndExecutor(t)
	assert.Equal(t, task.CodeExited, execute(t, x, prompt(t, "plain", "litter")).Error.Code)
	requireGone(t, h.text())
}

// requireGone requires the exit of a process, which carries no mark.
func requireGone(t *testing.T, pid string) {
	t.Helper()
	testkit.AwaitExit(t, must(strconv.Atoi(pid))(t))
}

func TestResponseRightBeforeExitCounts(t *testing.T) {
	_, x := hubAndExecutor(t)
	p := prompt(t, "plain", "last")
	for i := range 30 {
		p.TaskID = fmt.Sprint("task-", i)
		p.SessionID = p.TaskID
		completes(t, x, p)
	}
}

// codex uses its key only after authenticate.
func TestAuthenticateWithKey(t *testing.T) {
	h := newHub()
	completes(t, newExecutor(t, h, executor.Options{}), prompt(t, "keyed", "echo"))
}

// A session that failed and is active again has not failed.
func TestRecoveredSessionCompletes(t *testing.T) {
	h := newHub()
	completes(t, newExecutor(t, h, executor.Options{}), prompt(t, "plain", "recover"))
}

func TestAgentFailures(t *testing.T) {
	for _, c := range []struct {
		name, kind, word, code string
		says                   []string
	}{
		{"crash", "plain", "crash", task.CodeExited, []string{"exited with status 3", "the sky is falling"}},
		{"error", "plain", "error", task.CodeAgent, []string{"no credit left"}},
		{"end_turn of a session that failed", "plain", "give-up unexpected status 400 Bad Request", task.CodeAgent, []string{"fake: unexpected status 400 Bad Request"}},
		{"the same without words", "plain", "give-up", task.CodeAgent, []string{"fake: Reconnecting... 5/5: high demand"}},
		{"malformed error", "plain", "badresult", task.CodeAgent, []string{"malformed"}},
		{"login", "locked", "echo", task.CodeAuthRequired, []string{"log in", "duet-rpc agents login", "Fake login"}},
		{"silence", "silent", "echo", task.CodeTimeout, []string{"initialize", "waiting for a login"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newHub()
			opts := executor.Options{StartTimeout: time.Minute}
			if c.code == task.CodeTimeout {
				opts.StartTimeout = time.Second
			}
			x := newExecutor(t, h, opts)
			result := execute(t, x, prompt(t, c.kind, c.word))
			require.Equal(t, catalog.StatusFailed, result.Status)
			assert.Equal(t, c.code, result.Error.Code)
			for _, says := range c.says {
				assert.Contains(t, result.Error.Message, says)
			}
			if c.code == task.CodeAuthRequired {
				assert.Equal(t, []domain.AuthMethod{
					{ID: "x", Name: "Fake login", Type: "of-the-future"}, {ID: "no", Name: "Another key", Type: "env_var"}, {ID: "key", Name: "Key", Type: "env_var"},
				}, result.Error.AuthMethods)
			}
		})
	}
}

// Agents do not report servers that fail to start.
func TestUnavailableMCPServersAreReported(t *testing.T) {
	h, x := hubAndExecutor(t)
	p := prompt(t, "forgetful", "echo") // so the agent gets them twice
	program := filepath.Join(p.CWD, "server")
	testkit.Program(t, program, "#!/bin/sh\n")
	require.NoError(t, os.WriteFile(program+".txt", nil, 0o600))
	h.context.NativeSessionID = "before"
	h.context.MCPServers = []catalog.MCPServer{
		{Name: "there", Command: "sh"},
		{Name: "here", Command: "./server"},
		{Name: "own-path", Command: "server", Env: map[string]string{"PATH": p.CWD}},
		{Name: "missing", Command: "no-such-server"},
		{Name: "text", Command: program + ".txt"},
		{Name: "remote", Type: "http", URL: "http://localhost:1"},
	}
	completes(t, x, p)
	var said []string
	for _, e := range h.errors {
		assert.Equal(t, task.CodeMCPServer, e.Error.Code)
		said = append(said, e.Error.Message)
	}
	assert.Equal(t, []string{
		`the MCP server missing will not start: the program "no-such-server" was not found; install it, or correct its command in the configuration`,
		`the MCP server text will not start: the program "` + program + `.txt" is not an executable file; install it, or correct its command in the configuration`,
		"fake continues without the MCP server remote: the agent does not support servers of the type http",
	}, said)
}

func TestMissingProgram(t *testing.T) {
	_, x := hubAndExecutor(t)
	p := prompt(t, "plain", "echo")
	p.Launch.Command = []string{"no-such-agent", "--acp"}
	result := execute(t, x, p)
	require.NotNil(t, result.Error)
	assert.Equal(t, task.CodeNotFound, result.Error.Code)
	assert.Contains(t, result.Error.Message, `the program "no-such-agent" was not found: install it (`)

	p.Launch.Install = "install it with `npm install -g it`"
	assert.Contains(t, execute(t, x, p).Error.Message, `the program "no-such-agent" was not found: install it with `+"`npm install -g it`")
}

func TestKeysAndEnvironment(t *testing.T) {
	t.Setenv("SECRET_OF_MINE", "x")
	h := newHub()
	h.key = func(service string) (string, error) { return "key of " + service, nil }
	x := newExecutor(t, h, executor.Options{})
	p := prompt(t, "plain", "env")
	p.Launch.Keys = map[string]string{"THE_KEY": "anthropic"}
	execute(t, x, p)
	assert.Contains(t, h.text(), "THE_KEY=key of anthropic")
	assert.Contains(t, h.text(), catalog.MarkVariable+"=")
	assert.NotContains(t, h.text(), "DUET_AGENT=", "a duet-rpc that the agent runs would take it for the name of an agent")
	assert.Contains(t, h.text(), "PATH=")
	assert.NotContains(t, h.text(), "SECRET_OF_MINE")

	h.key = func(string) (string, error) { return "", errors.New("there is none") }
	p.SessionID, p.TaskID = "other", "task-2"
	result := execute(t, x, p)
	require.NotNil(t, result.Error)
	assert.Equal(t, task.CodeNoKey, result.Error.Code)
}

func TestStopping(t *testing.T) {
	for _, word := range []string{"hang", "deaf", "stubborn"} {
		t.Run(word, func(t *testing.T) {
			t.Parallel()
			h := newHub()
			grace := quick
			if word == "hang" {
				grace = patient
			}
			x := newExecutor(t, h, executor.Options{Grace: grace})
			go func() {
				h.Await(t, func() bool { return h.text() != "" }, "the agent's first text")
				stopped, err := x.StopTask(context.Background(), catalog.StopTaskParams{TaskID: "task-1"})
				assert.NoError(t, err)
				assert.True(t, stopped.Stopped)
			}()
			result := execute(t, x, prompt(t, "plain", word))
			assert.Equal(t, catalog.StatusCancelled, result.Status)
			assert.Nil(t, result.Error)
			if word != "hang" {
				requireNoProcess(t, h)
				requireGone(t, h.text())
			}
		})
	}
	t.Run("by the context", func(t *testing.T) {
		h, x := hubAndExecutor(t)
		ctx, cancel := context.WithCancel(context.Background())
		go func() {
			h.Await(t, func() bool { return h.text() != "" }, "the agent's first text")
			cancel()
		}()
		assert.Equal(t, catalog.StatusCancelled, must(x.ExecutePrompt(ctx, prompt(t, "plain", "hang")))(t).Status)
	})
	t.Run("while a permission is asked", func(t *testing.T) {
		h, x := hubAndExecutor(t)
		h.decide = func(ctx context.Context, _ catalog.RequestPermissionParams) (catalog.RequestPermissionResult, error) {
			x.StopTask(ctx, catalog.StopTaskParams{TaskID: "task-1"})
			<-ctx.Done()
			return catalog.RequestPermissionResult{}, ctx.Err()
		}
		assert.Equal(t, catalog.StatusCancelled, execute(t, x, prompt(t, "plain", "edit")).Status)
		assert.Contains(t, h.text(), `"outcome":"cancelled"`)
	})
	t.Run("before its prompt has come", func(t *testing.T) {
		h, x := hubAndExecutor(t)
		assert.True(t, must(x.StopTask(context.Background(), catalog.StopTaskParams{TaskID: "task-1"}))(t).Stopped)
		p := prompt(t, "plain", "hang")
		assert.Equal(t, catalog.StatusCancelled, execute(t, x, p).Status)
		assert.Empty(t, h.text(), "no agent started")
		p.TaskID, p.Prompt = "task-2", "env"
		assert.Equal(t, catalog.StatusCompleted, execute(t, x, p).Status, "other tasks run")
	})
	t.Run("nobody", func(t *testing.T) {
		x := newExecutor(t, newHub(), executor.Options{})
		assert.False(t, must(x.StopTask(context.Background(), catalog.StopTaskParams{}))(t).Stopped)
	})
}
