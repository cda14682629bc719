package handlers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

func TestATaskFromItsStartToItsEnd(t *testing.T) {
	w := newWorld(t, quick)
	c := w.connect(frame.NDJSON)
	submitted := c.ask("task.submit", `{"prompt":"hello","priority":3}`)
	assert.Equal(t, "task-0001", testkit.JSONAs[string](t, submitted, "taskId"))
	assert.Contains(t, []string{"running", "queued"}, testkit.JSONAs[string](t, submitted, "state"))
	assert.Equal(t, "fake", testkit.JSONAs[string](t, submitted, "agent"))
	w.ended("task-0001")

	task := object(t, c.ask("task.get", `{"taskId":"task-0001"}`))
	for name, want := range map[string]any{
		"id": "task-0001", "prompt": "hello", "agent": "fake", "priority": 3.0, "state": "completed", "pid": nil, "error": nil,
		"result": "Done: hello", "output": "Done: hello", "metadata": map[string]any{}, "cwd": w.dir, "status": "completed",
	} {
		assert.Equal(t, want, task[name], name)
	}
	for _, name := range []string{"createdAt", "startedAt", "completedAt"} {
		assert.Regexp(t, `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`, task[name], name)
	}
	for _, alias := range []string{task["session_id"].(string), task["run_id"].(string), task["thread_id"].(string)} {
		assert.Equal(t, "task-0001", testkit.JSONAs[string](t, c.ask("task.get", `{"taskId":"`+alias+`"}`), "id"))
	}
	assert.JSONEq(t, `{"total":1,"running":0,"queued":0,"completed":1,"failed":0,"cancelled":0}`, string(c.ask("task.stats", "")))
}

func TestListsOfTasks(t *testing.T) {
	w := newWorld(t, func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
		if strings.HasPrefix(x.Prompt, "fail") {
			return catalog.ExecutePromptResult{Status: catalog.StatusFailed, Error: &catalog.ExecutionError{Message: "boom", Code: "EXECUTOR_ERROR"}}
		}
		return quick(ctx, x)
	})
	c := w.connect(frame.LSP)
	for i := range 25 {
		prompt := fmt.Sprintf("task %d", i+1)
		if i == 2 {
			prompt = "fail"
		}
		w.ended(testkit.JSONAs[string](t, c.ask("task.submit", fmt.Sprintf(`{"prompt":%q}`, prompt)), "taskId"))
	}
	must(w.hub.Launch(context.Background(), hub.LaunchSpec{Prompt: "only a draft", Draft: true}))(t)
	list := func(params string) (ids []string) {
		tasks := answer[[]struct{ ID string }](c, "task.list", params)
		for _, task := range tasks {
			ids = append(ids, task.ID)
		}
		return ids
	}
	assert.Len(t, list(""), 20)
	assert.Equal(t, []string{"task-0025", "task-0024"}, list(`{"limit":2}`))
	assert.Equal(t, []string{"task-0023", "task-0022"}, list(`{"limit":2,"before":"task-0024"}`))
	assert.Len(t, list(`{"limit":100000}`), 25)
	assert.Equal(t, []string{"task-0003"}, list(`{"state":"failed"}`))
	assert.Empty(t, list(`{"agent":"unknown"}`))
	assert.JSONEq(t, `[]`, string(c.ask("task.list", `{"state":"queued"}`)), "never null")
	e := c.fail("task.list", `{"state":"waiting"}`)
	assert.Equal(t, []any{"queued", "running", "completed", "failed", "cancelled"}, e.Data["accepted"])
	task := object(t, c.ask("task.get", `{"taskId":"task-0003"}`))
	assert.Equal(t, "boom", task["error"])
	assert.Nil(t, task["result"])
}

func TestWhatCannotBeDoneToTasks(t *testing.T) {
	w := newWorld(t, until, func(o *hub.Options) { o.Limits.MaxTurns, o.Limits.QueueCap = 1, 1 })
	c := w.connect(frame.LSP)
	e := c.failsAs("task.get", `{"taskId":"task-0999"}`, -32000, "task_not_found")
	assert.Contains(t, e.Message, "Task not found")
	assert.Equal(t, -32000, c.fail("task.cancel", `{"taskId":"nope"}`).Code)
	e = c.rejects("task.submit", `{"prompt":"x","agent":"unknown"}`, "agent")
	assert.Equal(t, []any{"fake"}, e.Data["accepted"])
	c.rejects("task.submit", `{"prompt":"x","cwd":"not/here"}`, "cwd", "the parameter has its name in this method")

	assert.Equal(t, "running", testkit.JSONAs[string](t, c.ask("task.submit", `{"prompt":"a"}`), "state"))
	assert.Equal(t, "queued", testkit.JSONAs[string](t, c.ask("task.submit", `{"prompt":"b"}`), "state"))
	c.failsAs("task.submit", `{"prompt":"c"}`, -32002, "queue_full")

	assert.JSONEq(t, `{"cancelled":true}`, string(c.ask("task.cancel", `{"taskId":"task-0002"}`)))
	c.failsAs("task.cancel", `{"taskId":"task-0002"}`, -32001, "task_not_cancellable")
	assert.JSONEq(t, `{"cancelled":true}`, string(c.ask("task.cancel", `{"taskId":"task-0001"}`)))
	w.ended("task-0001")
	assert.JSONEq(t, `{"total":2,"running":0,"queued":0,"completed":0,"failed":0,"cancelled":2}`, string(c.ask("task.stats", "")))
}

func TestTheChatIsOneSession(t *testing.T) {
	w := newWorld(t, quick)
	c := w.connect(frame.LSP)
	var sessions []string
	for range 2 {
		id := testkit.JSONAs[string](t, c.ask("chat.send", `{"message":"hi"}`), "taskId")
		w.ended(id)
		task := object(t, c.ask("task.get", `{"taskId":"`+id+`"}`))
		assert.Equal(t, 5.0, task["priority"])
		assert.Equal(t, map[string]any{"source": "ipc-chat"}, task["metadata"])
		assert.Equal(t, "Done: hi", task["output"], "only this turn's")
		sessions = append(sessions, task["thread_id"].(string))
	}
	assert.Equal(t, sessions[0], sessions[1])
}

func TestBroadcastsGoToThoseWhoAskedForTasks(t *testing.T) {
	release := make(chan struct{})
	w := newWorld(t, func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
		<-release
		return quick(ctx, x)
	})
	member1, stranger := w.connect(frame.NDJSON), w.connect(frame.NDJSON)
	stranger.ask("listSessions", "")
	reply := member1.send("task.submit", `{"prompt":"hello"}`)
	first := member1.next()
	assert.Equal(t, reply, string(first.ID), "the response precedes the events that it caused")
	close(release)
	var methods []string
	for {
		m := member1.next()
		methods = append(methods, m.Method)
		assert.Equal(t, "task-0001", testkit.JSONAs[string](t, m.Params, "taskId"))
		switch m.Method {
		case "event.taskQueued":
			assert.Equal(t, "hello", testkit.JSONAs[string](t, m.Params, "prompt"))
		case "event.taskOutput":
			assert.Equal(t, "stdout", testkit.JSONAs[string](t, m.Params, "stream"))
		}
		if m.Method == "event.taskCompleted" {
			assert.Equal(t, "Done: hello", testkit.JSONAs[string](t, m.Params, "result"))
			assert.GreaterOrEqual(t, testkit.JSONAs[float64](t, m.Params, "duration"), 0.0)
			break
		}
	}
	assert.Equal(t, []string{"event.taskQueued", "event.taskStarted", "event.taskOutput", "event.taskCompleted"}, methods)
	stranger.ask("listSessions", "")
	assert.Empty(t, stranger.aside)
}

func TestBroadcastsOfOtherEnds(t *testing.T) {
	w := newWorld(t, func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
		if x.Prompt == "fail" {
			return catalog.ExecutePromptResult{Status: catalog.StatusFailed, Error: &catalog.ExecutionError{Message: "boom", Code: "X"}}
		}
		return until(ctx, x)
	})
	c := w.connect(frame.LSP)
	await := func(method string) json.RawMessage {
		for {
			if m := c.next(); m.Method == method {
				return m.Params
			}
		}
	}
	c.ask("task.submit", `{"prompt":"fail"}`)
	assert.Equal(t, "boom", testkit.JSONAs[string](t, await("event.taskFailed"), "error"))
	c.ask("task.submit", `{"prompt":"go on"}`)
	await("event.taskStarted")
	c.ask("task.cancel", `{"taskId":"task-0002"}`)
	assert.NotEmpty(t, testkit.JSONAs[string](t, await("event.taskCancelled"), "reason"))
	must(w.hub.Launch(context.Background(), hub.LaunchSpec{Prompt: "too long", Timeout: 1}))(t)
	assert.Equal(t, "task-0003", testkit.JSONAs[string](t, await("event.taskTimeout"), "taskId"))
}

func TestDaemonStatus(t *testing.T) {
	w := newWorld(t, until, func(o *hub.Options) { o.Limits.MaxTurns = 1 })
	c := w.connect(frame.LSP)
	long := strings.Repeat("long ", 40)
	c.ask("task.submit", `{"prompt":"`+long+`"}`)
	c.ask("task.submit", `{"prompt":"later","priority":2}`)
	status := object(t, c.ask("daemon.status", ""))
	assert.Equal(t, "healthy", status["health"])
	assert.NotContains(t, status, "issues")
	assert.Equal(t, "0.0.0-test", status["version"])
	sub := status["subsystems"].(map[string]any)
	assert.Equal(t, map[string]any{"clients": 1.0}, sub["ipc"])
	supervisor := sub["supervisor"].(map[string]any)
	assert.Equal(t, []any{1.0, 1.0, 1.0}, []any{supervisor["running"], supervisor["queued"], supervisor["maxConcurrency"]})
	running := supervisor["tasks"].(map[string]any)["running"].([]any)[0].(map[string]any)
	assert.Equal(t, "task-0001", running["id"])
	assert.Len(t, []rune(running["prompt"].(string)), 80)
	queued := supervisor["tasks"].(map[string]any)["queued"].([]any)[0].(map[string]any)
	assert.Equal(t, 2.0, queued["priority"])
	assert.Equal(t, map[string]any{"enabled": true, "ruleCount": 0.0, "rules": []any{}, "recentExecutions": []any{}}, sub["automation"])
	assert.NotZero(t, sub["store"].(map[string]any)["last_seq"])

	assert.JSONEq(t, `{"stopping":true}`, string(c.ask("daemon.stop", `{"force":true}`)))
	assert.True(t, <-w.stopped)
}

func TestWhatTasksHaveUsed(t *testing.T) {
	w := newWorld(t, func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
		x.report(catalog.EventUsage, catalog.Usage{TokenUsage: catalog.TokenUsage{InputTokens: 30, OutputTokens: 4}, CostUSD: 0.5})
		return done
	})
	c := w.connect(frame.LSP)
	one := w.finished(c.launch(`{"query":"q","title":"T"}`))
	w.ended(testkit.JSONAs[string](t, c.ask("task.submit", `{"prompt":"p"}`), "taskId"))

	assert.JSONEq(t, `{"total":2,"states":{"completed":2}}`, string(c.ask("turn.count", "")))
	all := c.ask("usage.get", `{}`)
	total := testkit.JSONAs[map[string]any](t, all, "total")
	assert.Equal(t, []any{2.0, 60.0, 8.0, 1.0}, []any{total["turns"], total["input_tokens"], total["output_tokens"], total["cost_usd"]})
	assert.NotContains(t, string(all), "rows")
	rows := testkit.JSONAs[[]any](t, c.ask("usage.get", `{"by":"session","session":"`+one+`"}`), "rows")
	assert.Len(t, rows, 1)
	assert.Equal(t, []any{"1", "T"}, []any{rows[0].(map[string]any)["key"], rows[0].(map[string]any)["title"]})
	untitled := testkit.JSONAs[[]any](t, c.ask("usage.get", `{"by":"session","session":2}`), "rows")
	assert.Equal(t, "p", untitled[0].(map[string]any)["title"])
	assert.NotContains(t, string(c.ask("usage.get", `{"by":"day","until":"2001-01-01"}`)), "rows")
	for params, param := range map[string]string{`{"by":"week"}`: "by", `{"since":"yesterday"}`: "since", `{"until":"x"}`: "until"} {
		c.rejects("usage.get", params, param)
	}
	assert.Equal(t, "not_found", c.fail("usage.get", `{"session":"unknown"}`).Data["kind"])
}

func TestALaunchHasABudget(t *testing.T) {
	w := newWorld(t, func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
		x.report(catalog.EventUsage, catalog.Usage{CostUSD: 0.5})
		<-ctx.Done()
		return catalog.ExecutePromptResult{Status: catalog.StatusCancelled}
	})
	c := w.connect(frame.LSP)
	for _, launched := range []json.RawMessage{
		c.ask("launchSession", `{"query":"q","budget":{"cost_usd":0.5}}`), c.ask("task.submit", `{"prompt":"q","budget":{"cost_usd":0.4,"tokens":7}}`),
	} {
		s := w.ended(testkit.JSONAs[string](t, launched, "session_id"))
		assert.Equal(t, "RUN_BUDGET_REACHED", s.ErrorCode)
		next := w.ended(testkit.JSONAs[string](t, c.ask("continueSession", `{"session_id":"`+s.HumanLayerSession+`","query":"on"}`), "session_id"))
		assert.Equal(t, "RUN_BUDGET_REACHED", next.ErrorCode, "each turn of the session has the budget")
	}
	c.rejects("task.submit", `{"prompt":"q","budget":{"cost_usd":-1}}`, "budget.cost_usd")
	c.rejects("launchSession", `{"query":"q","budget":{"cost_usd":-0.1}}`, "budget.cost_usd")
	c.rejects("launchSession", `{"query":"q","max_turns":-1}`, "max_turns")
	c.rejects("continueSession", `{"session_id":"s","query":"q","budget":{"cost_usd":-1}}`, "budget.cost_usd")
	c.rejects("attempt.start", `{"prompt":"q","agents":[{"agent":"a"},{"agent":"b"}],"budget":{"cost_usd":-1}}`, "budget.cost_usd")
}

// Every report of a turn that needs a login has the authentication methods.
func TestATurnThatNeedsASignInHasTheWays(t *testing.T) {
	w := newWorld(t, func(context.Context, *turn) catalog.ExecutePromptResult {
		return catalog.ExecutePromptResult{Status: catalog.StatusFailed, Error: &catalog.ExecutionError{
			Message: "log in first", Code: "AGENT_AUTH_REQUIRED", AuthMethods: []domain.AuthMethod{
				{ID: "browser", Name: "In a browser", Description: "With your account", Type: "agent"}, {ID: "", Name: "no id"}, {ID: "key", Name: "With a key", Type: "env_var"},
			},
		}}
	})
	c := w.connect(frame.LSP)
	want := []any{
		map[string]any{"id": "browser", "name": "In a browser", "description": "With your account", "type": "agent"},
		map[string]any{"id": "key", "name": "With a key", "type": "env_var"},
	}
	c.ask("Subscribe", `{"event_types":["session_status_changed"]}`)
	c.ask("task.submit", `{"prompt":"x"}`)
	var event, broadcast any
	for event == nil || broadcast == nil {
		switch m := c.next(); m.Method {
		case "event.taskFailed":
			broadcast = object(t, m.Params)["auth_methods"]
		case "event":
			data := object(t, m.Params)["event"].(map[string]any)["data"].(map[string]any)
			if data["new_status"] == "failed" {
				event = data["auth_methods"]
			}
		}
	}
	assert.Equal(t, want, event)
	assert.Equal(t, want, broadcast)
	w.ended("task-0001")
	assert.Equal(t, want, testkit.JSONAs[any](t, c.ask("task.get", `{"taskId":"task-0001"}`), "auth_methods"))
	assert.Equal(t, want, testkit.JSONAs[map[string]any](t, c.ask("getSessionState", `{"session_id":"task-0001"}`), "session")["auth_methods"])
	assert.Equal(t, want, object(t, c.ask("execute_prompt", `{"prompt":"x"}`))["error"].(map[string]any)["auth_methods"])
}
