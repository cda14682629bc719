package handlers_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
	"github.com/duet-rpc/duet-rpc/server"
)

func TestExecutePrompt(t *testing.T) {
	var seen catalog.ExecutePromptParams
	w := newWorld(t, func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
		seen = x.ExecutePromptParams
		x.report(catalog.EventUsage, catalog.Usage{TokenUsage: catalog.TokenUsage{InputTokens: 7, OutputTokens: 3}})
		if x.Prompt == "fail" {
			return catalog.ExecutePromptResult{Status: catalog.StatusFailed, Error: &catalog.ExecutionError{Message: "boom", Code: "EXECUTOR_ERROR"}}
		}
		return quick(ctx, x)
	})
	c := w.connect(frame.NDJSON)
	r := object(t, c.ask("execute_prompt", `{"session_id":"mine","task_id":"t-1","prompt":"x","tools":["Read"],"permission_mode":"plan","stream":false}`))
	assert.Equal(t, map[string]any{
		"status": "completed", "message_count": 1.0, "token_usage": map[string]any{"input_tokens": 7.0, "output_tokens": 3.0},
		"stop_reason": "end_turn", "agent": "fake", "session_id": "mine", "task_id": "t-1",
	}, r)
	assert.Equal(t, []string{"Read"}, seen.Tools)
	assert.Equal(t, "plan", seen.PermissionMode)
	s := w.ended("t-1")
	assert.Equal(t, int64(300_000), s.Timeout.Milliseconds())
	assert.True(t, s.Quiet)

	r = object(t, c.ask("execute_prompt", `{"session_id":"mine","task_id":"t-2","prompt":"fail","timeout_ms":1000}`))
	assert.Equal(t, "failed", r["status"], "a failed turn is a result, not an error")
	assert.Equal(t, map[string]any{"message": "boom", "code": "EXECUTOR_ERROR"}, r["error"])
	assert.Equal(t, s.Session.ID, w.ended("t-2").Session.ID, "the same session")
	assert.Equal(t, int64(1000), w.ended("t-2").Timeout.Milliseconds())

	assert.Equal(t, "task_id", c.fail("execute_prompt", `{"task_id":"t-1","prompt":"x"}`).Data["param"])
	for _, id := range []string{"12", "12.3", "last", "task-0099"} { // they would name another session or turn to a user
		assert.Equal(t, "task_id", c.fail("execute_prompt", `{"task_id":"`+id+`","prompt":"x"}`).Data["param"], id)
	}
	for _, id := range []string{"12", "12.3", "task-0099"} {
		assert.Equal(t, "session_id", c.fail("execute_prompt", `{"session_id":"`+id+`","prompt":"x"}`).Data["param"], id)
	}

	stopped := object(t, c.ask("stop_task", `{"task_id":"t-1"}`))
	assert.Equal(t, false, stopped["stopped"])
	assert.NotEmpty(t, stopped["message"])
	assert.Equal(t, false, object(t, c.ask("cancel_task", `{"task_id":"unknown"}`))["stopped"])

	assert.Regexp(t, `^msg-`, testkit.JSONAs[string](t, c.ask("create_message", `{"task_id":"t-1","message":{"role":"user","content":"a note"}}`), "message_id"))
	e := c.fail("create_message", `{"task_id":"unknown","message":{"role":"user","content":"a note"}}`)
	assert.Equal(t, "task_not_found", e.Data["kind"])
	e = c.fail("secret.provide", `{"request_id":"unknown","secret":"s3cret"}`)
	assert.Equal(t, -32602, e.Code)
	assert.NotContains(t, e.Message, "s3cret")
}

func TestEndsOfExecutePrompt(t *testing.T) {
	began := make(chan string, 10)
	w := newWorld(t, func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
		began <- x.Prompt
		return until(ctx, x)
	})
	server.Handle(w.reg, "leave", func(context.Context, struct{}) (struct{}, error) { return struct{}{}, nil }, server.Final())
	c := w.connect(frame.LSP)
	// begins waits until the agent starts a prompt. A prompt that timed out may never have reached
	// the agent.
	begins := func(prompt string) {
		t.Helper()
		for timeout := time.After(patience); ; {
			select {
			case p := <-began:
				if p == prompt {
					return
				}
			case <-timeout:
				require.FailNow(t, "the agent did not begin", prompt)
			}
		}
	}

	id := c.send("execute_prompt", `{"task_id":"stopped","prompt":"a"}`)
	begins("a")
	assert.Equal(t, map[string]any{"stopped": true}, object(t, c.ask("stop_task", `{"task_id":"stopped","reason":"user_cancelled"}`)))
	assert.Equal(t, "cancelled", testkit.JSONAs[string](t, c.wait(id).Result, "status"))

	id = c.send("execute_prompt", `{"task_id":"notified","prompt":"b"}`)
	begins("b")
	c.write(`{"jsonrpc":"2.0","method":"cancel_task","params":{"task_id":"notified"}}`)
	assert.Equal(t, "cancelled", testkit.JSONAs[string](t, c.wait(id).Result, "status"))

	id = c.send("execute_prompt", `{"task_id":"cancelled","prompt":"c"}`)
	begins("c")
	cancelled := c.cancel(id)
	s := w.ended("cancelled")
	assert.Equal(t, "interrupted", string(s.State))
	requireCancelled(t, cancelled, s, "interrupted")

	id = c.send("execute_prompt", `{"task_id":"late","prompt":"d","timeout_ms":1}`)
	m := c.wait(id)
	assert.Equal(t, "failed", testkit.JSONAs[string](t, m.Result, "status"))
	assert.Equal(t, "TIMEOUT", testkit.JSONAs[map[string]any](t, m.Result, "error")["code"])

	// The end of a connection does not stop the turn. A handler has the last quarter of the grace to say
	// so: two seconds, on a slow machine too.
	leaving := connectTo(t, server.New(w.reg, server.Options{Grace: 8 * time.Second}), frame.LSP)
	execute := leaving.send("execute_prompt", `{"task_id":"e goes on","prompt":"e"}`)
	begins("e")
	send := leaving.send("sendTask", `{"taskId":"f goes on","prompt":"f"}`)
	begins("f")
	leaving.send("leave", "")
	for id, name := range map[string]string{execute: "e goes on", send: "f goes on"} {
		s := must(w.hub.Query().Turn(context.Background(), name))(t)
		assert.Equal(t, "running", string(s.State))
		requireCancelled(t, leaving.wait(id), s, "continues")
	}
}

// requireCancelled requires that the error of a cancelled request says what happens to its turn, and
// how to find it.
func requireCancelled(t *testing.T, m message, s domain.TurnInSession, turn string) {
	t.Helper()
	require.NotNil(t, m.Error)
	assert.Equal(t, -32800, m.Error.Code)
	assert.Contains(t, m.Error.Message, domain.TaskName(s.Task))
	assert.Equal(t, map[string]any{"kind": "cancelled", "run": turn, "task_id": domain.TaskName(s.Task), "session_id": s.HumanLayerSession}, m.Error.Data)
}

// A token is optional. A given token must belong to the session.
func TestATokenIsGoodForItsSessionAlone(t *testing.T) {
	tokens := make(chan string, 2)
	w := newWorld(t, func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
		tokens <- x.SessionToken
		return until(ctx, x)
	})
	c := w.connect(frame.LSP)
	c.send("execute_prompt", `{"session_id":"own","task_id":"t-own","prompt":"a"}`)
	own := `"session_token":"` + <-tokens + `"`
	c.send("execute_prompt", `{"session_id":"others","task_id":"t-others","prompt":"b"}`)
	<-tokens
	for method, params := range map[string]string{
		"stop_task":      `"task_id":"t-others"`,
		"cancel_task":    `"task_id":"others"`,
		"create_message": `"task_id":"t-others","message":{"role":"user","content":"x"}`,
		"execute_prompt": `"session_id":"others","prompt":"x"`,
	} {
		for _, token := range []string{own, `"session_token":"wrong"`} {
			e := c.fail(method, `{`+token+`,`+params+`}`)
			assert.Equal(t, -32600, e.Code, method)
			assert.Equal(t, map[string]any{"reason": "invalid-session-token", "kind": "invalid_session_token"}, e.Data)
		}
	}
	assert.Equal(t, -32600, c.fail("execute_prompt", `{`+own+`,"prompt":"a session of its own"}`).Code)
	assert.Equal(t, false, object(t, c.ask("stop_task", `{`+own+`,"task_id":"unknown"}`))["stopped"])
	assert.Regexp(t, `^msg-`, testkit.JSONAs[string](t, c.ask("create_message", `{`+own+`,"task_id":"own","message":{"role":"user","content":"x"}}`), "message_id"))
	assert.Equal(t, true, object(t, c.ask("stop_task", `{`+own+`,"task_id":"t-own"}`))["stopped"])
	assert.Equal(t, true, object(t, c.ask("stop_task", `{"task_id":"t-others"}`))["stopped"])
}

func TestATerminalTellsWhoSpawnedIt(t *testing.T) {
	for _, f := range []frame.Framing{frame.LSP, frame.NDJSON} {
		t.Run(f.String(), func(t *testing.T) {
			w := newWorld(t, quick)
			c := w.connect(f)
			id := c.send("spawn_terminal", `{"cols":100}`)
			first := c.next()
			require.Equal(t, id, string(first.ID), "the reply comes before the output")
			assert.JSONEq(t, `{"terminal_id":"t1","pty_pid":42}`, string(first.Result))
			event := func() (string, map[string]any) {
				m := c.next()
				outer := m.Result
				if f == frame.LSP {
					assert.Equal(t, "event", m.Method)
					outer = m.Params
				}
				assert.Len(t, object(t, outer), 1, "no subscription, no seq: %s", outer)
				e := testkit.JSONAs[map[string]any](t, outer, "event")
				return e["type"].(string), e["data"].(map[string]any)
			}
			var shown strings.Builder
			c.ask("terminal.write", `{"terminal_id":"t1","data":"ls"}`)
			assert.Equal(t, "ls", <-w.executors.typed)
			for shown.Len() < len("$ ls") {
				kind, data := event()
				require.Equal(t, "terminal_output", kind)
				assert.Equal(t, []any{"t1", "utf-8"}, []any{data["terminal_id"], data["encoding"]})
				shown.WriteString(data["data"].(string))
			}
			assert.Equal(t, "$ ls", shown.String())
			assert.JSONEq(t, `{"success":true}`, string(c.ask("terminal.resize", `{"terminal_id":"t1","cols":80,"rows":24}`)))
			assert.JSONEq(t, `{"closed":true}`, string(c.ask("terminal.close", `{"terminal_id":"t1"}`)))
			kind, data := event()
			assert.Equal(t, "terminal_exit", kind)
			assert.Equal(t, "hangup", data["signal"])
			c.failsAs("terminal.write", `{"terminal_id":"t1","data":"x"}`, -32050, "terminal_not_found")
		})
	}
}

// The connection that starts a terminal watches it: it gets output and end as events of no subscription.
func TestATerminalIsWatchedByWhoStartedIt(t *testing.T) {
	w := newWorld(t, quick)
	c := w.connect(frame.NDJSON)
	assert.JSONEq(t, `{"terminal_id":"t1","pty_pid":42}`, string(c.ask("terminal.start", `{"program":"sh","args":["-i"],"cols":100}`)))
	c.ask("terminal.write", `{"terminal_id":"t1","data":"ls"}`)
	shown := ""
	for len(shown) < len("$ ls") {
		e := eventIn(t, c)
		require.Equal(t, []any{protocol.KindTerminalOutput, int64(0), ""}, []any{e.Kind, e.Seq, e.SubscriptionID})
		var d protocol.TerminalOutputEvent
		require.NoError(t, json.Unmarshal(e.Data, &d))
		shown += d.Data
	}
	assert.Equal(t, "$ ls", shown)
	c.ask("terminal.close", `{"terminal_id":"t1"}`)
	e := eventIn(t, c)
	assert.Equal(t, protocol.KindTerminalExited, e.Kind)
	assert.Contains(t, string(e.Data), `"signal":"hangup"`)
	c.rejects("terminal.start", `{"cols":100000}`, "cols")
}

func TestOthersAttachToATerminal(t *testing.T) {
	w := newWorld(t, quick)
	spawner, c := w.connect(frame.LSP), w.connect(frame.NDJSON)
	assert.JSONEq(t, `{"terminals":[]}`, string(c.ask("terminal.list", "")))
	spawner.ask("spawn_terminal", `{"shell":"sh","args":["-i"]}`)
	list := testkit.JSONAs[[]any](t, c.ask("terminal.list", ""), "terminals")
	require.Len(t, list, 1)
	info := list[0].(map[string]any)
	assert.NotEmpty(t, info["started_at"])
	delete(info, "started_at")
	assert.Equal(t, map[string]any{
		"terminal_id": "t1", "pty_pid": 42.0, "program": "sh", "args": []any{"-i"}, "cwd": w.dir,
		"read_only": false, "attached": 1.0, "taken": false,
	}, info)
	output := func(c *client) (text string) {
		for _, m := range c.aside {
			text += terminalText(t, m)
		}
		c.aside = nil
		return text
	}
	// awaits waits for this output at a client.
	awaits := func(c *client, want string) {
		t.Helper()
		text := output(c)
		for len(text) < len(want) {
			text += terminalText(t, c.next())
		}
		assert.Equal(t, want, text)
	}
	attached := object(t, c.ask("terminal.attach", `{"terminal_id":"t1","cols":90,"rows":9}`))
	assert.Equal(t, []any{"t1", 90.0, 9.0, 2.0}, []any{attached["terminal_id"], attached["cols"], attached["rows"], attached["attached"]})
	assert.NotContains(t, attached, "recent")
	awaits(c, "$ ")
	c.ask("terminal.write", `{"terminal_id":"t1","data":"ls"}`)
	awaits(c, "ls")
	awaits(spawner, "$ ls")

	// A second attach repeats the output, and duplicates no later output.
	c.ask("terminal.attach", `{"terminal_id":"t1"}`)
	awaits(c, "$ ls")
	c.ask("terminal.write", `{"terminal_id":"t1","data":"x"}`)
	awaits(c, "x")
	assert.JSONEq(t, `{"detached":true}`, string(c.ask("terminal.detach", `{"terminal_id":"t1"}`)))
	assert.JSONEq(t, `{"detached":false}`, string(c.ask("terminal.detach", `{"terminal_id":"t1"}`)))
	spawner.ask("terminal.write", `{"terminal_id":"t1","data":"y"}`)
	awaits(spawner, "xy")
	assert.Empty(t, output(c))

	// The end of a connection detaches it. The terminal stays.
	spawner.close()
	assert.Zero(t, w.hub.Terminals().List()[0].Views, "the closed connection is still attached")
	c.ask("terminal.attach", `{"terminal_id":"t1"}`)
	awaits(c, "$ lsxy")
	assert.Equal(t, "terminal_not_found", c.fail("terminal.attach", `{"terminal_id":"unknown"}`).Data["kind"])

	// A pipe in memory passes no descriptor.
	for _, method := range []string{"spawn_terminal", "terminal.start", "terminal.attach"} {
		e := c.rejects(method, `{"terminal_id":"t1","descriptor":true}`, "descriptor")
		assert.Contains(t, e.Message, "to be left out")
	}
}

// terminalText returns the terminal output in a message, or "".
func terminalText(t *testing.T, m message) string {
	outer := m.Result
	if m.Method == "event" {
		outer = m.Params
	}
	type output struct {
		Data struct{ Data string }
	}
	var e struct { // of terminal.attach, and of spawn_terminal
		output
		Event output
	}
	require.NoError(t, json.Unmarshal(outer, &e))
	return e.Data.Data + e.Event.Data.Data
}
