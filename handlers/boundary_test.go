package handlers_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// question waits for the only open question and returns it.
func question(t *testing.T, w *world, c *client) map[string]any {
	t.Helper()
	return pending(t, w, c, "")
}

func decide(c *client, q map[string]any, decision string) {
	c.t.Helper()
	c.ask("sendDecision", `{"approval_id":`+strconv.Quote(q["id"].(string))+`,`+decision+`}`)
}

// A script's question is in the inbox and in its own session, which ends with the answer.
func TestAskUser(t *testing.T) {
	w := newWorld(t, quick)
	c, person := w.connect(frame.NDJSON), w.connect(frame.NDJSON)
	id := c.send("askUser", `{"message":"Which colour?","subject":"Paint","options":["red",{"bad":1}]}`)
	assert.Equal(t, -32602, c.wait(id).Error.Code)
	id = c.send("askUser", `{"message":"Which colour?","subject":"Paint","options":["red","blue"]}`)
	q := question(t, w, person)
	assert.Equal(t, []any{"human_contact", "Which colour?"}, []any{q["type"], q["title"]})
	session := q["session_id"].(string)
	state := person.state(session)
	assert.Equal(t, []any{"waiting_input", "question"}, []any{state["status"], state["source"]})
	decide(person, q, `"decision":"respond","option":"blue"`)
	reply := c.wait(id)
	require.Nil(t, reply.Error)
	assert.Equal(t, map[string]any{"response": "blue", "option": "blue", "approval_id": q["id"]}, object(t, reply.Result))
	state = person.state(session)
	assert.Equal(t, "completed", state["status"])

	// The next question is in the same session, and a comment answers it.
	id = c.send("approval.ask", `{"message":"Why?"}`)
	again := question(t, w, person)
	assert.Equal(t, q["thread_id"], again["thread_id"])
	decide(person, again, `"decision":"respond","comment":"because"`)
	assert.Equal(t, "because", testkit.JSONAs[string](t, c.wait(id).Result, "response"))
}

func TestRequestPermission(t *testing.T) {
	w := newWorld(t, quick, func(o *hub.Options) {
		fakeOf(o).rules = func() []config.Rule {
			return []config.Rule{{Tool: "Read", Effect: config.EffectAllow}, {Tool: "Never", Effect: config.EffectDeny}}
		}
	})
	c, person := w.connect(frame.NDJSON), w.connect(frame.NDJSON)
	r := object(t, c.ask("requestPermission", `{"tool_name":"Read","tool_input":{"file_path":"a"}}`))
	assert.Equal(t, true, r["approved"])
	assert.Contains(t, r["reason"], "rule=")
	e := c.failsAs("requestPermission", `{"tool_name":"Never"}`, -32003, "permission_denied")
	assert.Contains(t, e.Data["reason"], "rule=")
	assert.Empty(t, object(t, c.ask("listSessions", `{}`))["sessions"], "a rule's answer starts no session")

	c.failsAs("approval.request", `{"tool_name":"Never"}`, -32051, "permission_denied")
	assert.Equal(t, r, object(t, c.ask("approval.request", `{"tool_name":"Read","tool_input":{"file_path":"a"}}`)))

	id := c.send("requestPermission", `{"tool_name":"Bash","tool_input":{"command":"make"},"tool_use_id":"toolu_9"}`)
	decide(person, question(t, w, person), `"decision":"approve","updated_input":{"command":"make -n"}`)
	r = object(t, c.wait(id).Result)
	assert.Equal(t, map[string]any{"command": "make -n"}, r["updated_input"])
	assert.Equal(t, "user_approved", r["reason"])

	id = c.send("requestPermission", `{"tool_name":"Bash","tool_input":{"command":"rm -rf /"}}`)
	decide(person, question(t, w, person), `"decision":"deny","comment":"never that"`)
	denied := c.wait(id).Error
	require.NotNil(t, denied)
	assert.Equal(t, []any{-32003, "Permission denied: never that"}, []any{denied.Code, denied.Message})
	assert.Equal(t, map[string]any{"kind": "permission_denied", "reason": "user_denied"}, denied.Data)
}

// A question with a running session's id belongs to that session. The session waits for the answer
// and then continues.
func TestAQuestionOfASession(t *testing.T) {
	w := newWorld(t, until)
	c, person := w.connect(frame.NDJSON), w.connect(frame.NDJSON)
	session := person.launch(`{"query":"work"}`)
	status := func() string {
		return string(must(w.hub.Query().Turn(context.Background(), session))(t).State)
	}
	w.until(func() bool { return status() == "running" }, "the session runs")
	id := c.send("askUser", `{"message":"So?","thread":"`+session+`"}`)
	q := question(t, w, person)
	assert.Equal(t, session, q["session_id"])
	assert.Equal(t, "waiting_input", status())
	decide(person, q, `"decision":"respond","comment":"so"`)
	assert.Equal(t, "so", testkit.JSONAs[string](t, c.wait(id).Result, "response"))
	assert.Equal(t, "running", status())

	// The session also continues after a cancelled question.
	id = c.send("approval.ask", `{"message":"And?","session":"1"}`)
	assert.Equal(t, session, question(t, w, person)["session_id"])
	c.cancel(id)
	w.waiting("", 0)
	assert.Equal(t, "running", status())

	// The end of a session ends its question.
	id = c.send("askUser", `{"message":"Or?","thread":"`+session+`"}`)
	question(t, w, person)
	person.ask("interruptSession", `{"session_id":"`+session+`"}`)
	assert.Equal(t, -32004, c.wait(id).Error.Code)
	w.until(func() bool { return status() == "interrupted" }, "the session has ended")
	assert.Equal(t, "bad_state", c.fail("askUser", `{"message":"Still?","thread":"`+session+`"}`).Data["kind"])
	assert.Equal(t, "task_not_found", c.fail("askUser", `{"message":"Still?","thread":"task-0099"}`).Data["kind"])
	c.failsAs("approval.ask", `{"message":"Still?","session":"99.1"}`, -32050, "not_found")
	c.rejects("approval.ask", `{"message":""}`, "message")
}

// A script's question ends with its request, its session or its connection.
func TestAQuestionEndsWithItsCaller(t *testing.T) {
	w := newWorld(t, quick)
	person := w.connect(frame.NDJSON)
	c := w.connect(frame.NDJSON)
	id := c.send("askUser", `{"message":"One?","keep":true}`)
	q := question(t, w, person)
	c.cancel(id)
	w.waiting("", 0)
	state := person.state(q["session_id"].(string))
	assert.Equal(t, "interrupted", state["status"])

	id = c.send("askUser", `{"message":"Two?"}`)
	q = question(t, w, person)
	person.ask("interruptSession", `{"session_id":"`+q["session_id"].(string)+`"}`)
	reply := c.wait(id)
	assert.Equal(t, []any{-32004, "task_cancelled"}, []any{reply.Error.Code, reply.Error.Data["kind"]})
	assert.Equal(t, "bad_state", person.fail("continueSession", `{"session_id":"`+q["session_id"].(string)+`","query":"go on"}`).Data["kind"])

	c.send("askUser", `{"message":"Three?"}`)
	question(t, w, person)
	c.end.Close()
	w.waiting("", 0)
}

// With keep a question outlives its connection. A client that repeats it receives the answer, once.
func TestAKeptQuestionIsAnsweredLater(t *testing.T) {
	w := newWorld(t, quick)
	person := w.connect(frame.NDJSON)
	const ask = `{"tool_name":"Bash","tool_input":{"command":"make"},"thread":"a-program","keep":true}`
	gone := w.connect(frame.NDJSON)
	gone.send("requestPermission", ask)
	q := question(t, w, person)
	gone.end.Close()
	w.reaches(q["session_id"].(string), domain.Interrupted)
	q = question(t, w, person)
	assert.Equal(t, true, q["stale"])

	// A repeated request opens no second question.
	c := w.connect(frame.NDJSON)
	id := c.send("requestPermission", ask)
	w.until(func() bool {
		list, err := w.hub.Approvals().Pending(context.Background(), "")
		return err == nil && len(list) == 1 && !list[0].Stale
	}, "the question has a caller again")
	c.end.Close()
	_ = id
	w.until(func() bool {
		list, err := w.hub.Approvals().Pending(context.Background(), "")
		return err == nil && len(list) == 1 && list[0].Stale
	}, "the second caller has gone")

	decide(person, question(t, w, person), `"decision":"approve"`)
	c = w.connect(frame.NDJSON)
	assert.Equal(t, "user_approved", testkit.JSONAs[string](t, c.ask("requestPermission", ask), "reason"))
	id = c.send("requestPermission", ask)
	decide(person, question(t, w, person), `"decision":"deny","comment":"once is enough"`)
	assert.Equal(t, -32003, c.wait(id).Error.Code)
}

// Kept questions survive the end of the hub, and others do not.
func TestQuestionsAndTheEndOfTheHub(t *testing.T) {
	w := newWorld(t, quick)
	c := w.connect(frame.NDJSON)
	c.send("askUser", `{"message":"Script?"}`)
	question(t, w, w.connect(frame.NDJSON))
	c.send("askUser", `{"message":"Agent?","keep":true,"thread":"an-agent"}`)
	w.waiting("", 2)
	require.NoError(t, w.hub.Close())
	project := &fakeProject{Agents: agents{}, openStore: sqlite.Opener(filepath.Join(w.dir, "duet.db")), unchanged: make(chan struct{})}
	next := must(hub.Open(context.Background(), hub.Options{
		Project: project, Configuration: project, Database: filepath.Join(w.dir, "duet.db"), Root: w.dir,
		Limits: config.Limits{MaxTurns: 3, QueueCap: 1000}, Getenv: func(string) string { return "" },
		Executors: func(d catalog.Daemon) hub.Executors { return w.executors },
	}))(t)
	defer next.Close()
	list := must(next.Approvals().Pending(context.Background(), ""))(t)
	require.Len(t, list, 1)
	assert.Equal(t, "Agent?", list[0].Title)
	assert.True(t, list[0].Stale)
}

func TestSendTask(t *testing.T) {
	w := newWorld(t, func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
		switch x.Prompt {
		case "wait":
			return until(ctx, x)
		case "overflow":
			return catalog.ExecutePromptResult{Status: catalog.StatusFailed, Error: &catalog.ExecutionError{Code: "AGENT_CONTEXT_OVERFLOW", Message: "Prompt is too long"}}
		case "fail":
			return catalog.ExecutePromptResult{Status: catalog.StatusFailed, Error: &catalog.ExecutionError{Code: "AGENT_ERROR", Message: "no luck"}}
		}
		return quick(ctx, x)
	})
	c, other := w.connect(frame.NDJSON), w.connect(frame.NDJSON)
	r := object(t, c.ask("sendTask", `{"task":"paint"}`))
	assert.Equal(t, []any{"completed", "Done: paint", "fake"}, []any{r["state"], r["result"], r["agent"]})
	r = object(t, c.ask("sendTask", `{"prompt":"fail"}`))
	assert.Equal(t, []any{"failed", "no luck"}, []any{r["state"], r["error"]})
	c.failsAs("sendTask", `{"prompt":"overflow"}`, -32008, "context_overflow")
	assert.Equal(t, -32602, c.fail("sendTask", `{}`).Code)

	id := c.send("sendTask", `{"prompt":"wait","taskId":"my-task"}`)
	w.reaches("my-task", domain.Running)
	assert.Equal(t, true, object(t, other.ask("cancelTask", `{"taskId":"my-task"}`))["cancelled"])
	reply := c.wait(id)
	require.NotNil(t, reply.Error)
	assert.Equal(t, -32004, reply.Error.Code)
	assert.Equal(t, false, object(t, other.ask("cancelTask", `{"taskId":"my-task"}`))["cancelled"])
	assert.Equal(t, "task_not_found", other.fail("cancelTask", `{"taskId":"nothing"}`).Data["kind"])

	id = c.send("sendTask", `{"prompt":"wait","taskId":"second"}`)
	w.reaches("second", domain.Running)
	c.cancel(id)
	w.reaches("second", domain.Interrupted)
}

// serving is the agent fake with MCP servers.
type serving struct {
	agents
	servers []catalog.MCPServer
}

func (s serving) Resolve(name string) (config.Agent, error) {
	a, err := s.agents.Resolve(name)
	a.MCPServers = s.servers
	return a, err
}

func TestToolsOfMCPServers(t *testing.T) {
	tools := mcp.NewServer(&mcp.Implementation{Name: "of the test", Version: "7"}, nil)
	called := make(chan string, 10)
	type input struct {
		Word string `json:"word"`
	}
	mcp.AddTool(tools, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest, in input) (*mcp.CallToolResult, any, error) {
		called <- in.Word
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Word}}}, nil, nil
	})
	mcp.AddTool(tools, &mcp.Tool{Name: "hang"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ any) (*mcp.CallToolResult, any, error) {
		called <- "hang"
		<-ctx.Done()
		return nil, nil, ctx.Err()
	})
	site := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return tools }, nil))
	t.Cleanup(site.Close)
	w := newWorld(t, quick, func(o *hub.Options) {
		fakeOf(o).Agents = serving{servers: []catalog.MCPServer{{Name: "far", Type: "http", URL: site.URL + "/mcp?key=guarded"}, {Name: "missing", Command: "no-such-program"}}}
		fakeOf(o).rules = func() []config.Rule { return []config.Rule{{Tool: "mcp__far__never", Effect: config.EffectDeny}} }
	})
	c, person := w.connect(frame.NDJSON), w.connect(frame.NDJSON)
	list := object(t, c.ask("mcp.servers", `{}`))
	assert.Equal(t, "fake", list["agent"])
	assert.Equal(t, []any{
		map[string]any{"name": "far", "type": "http", "url": site.URL + "/mcp", "connected": false},
		map[string]any{"name": "missing", "type": "stdio", "command": "no-such-program", "connected": false},
	}, list["servers"])

	found := object(t, c.ask("mcp.tools", `{"server":"far"}`))
	assert.Equal(t, "of the test", found["server"])
	require.Len(t, found["tools"], 2)
	e := c.failsAs("mcp.tools", `{"server":"missing"}`, -32053, "mcp_server_error")
	assert.Contains(t, e.Message, "missing: the program")
	e = c.fail("mcp.tools", `{"server":"other"}`)
	assert.Equal(t, -32602, e.Code)
	assert.Equal(t, []any{"far", "missing"}, e.Data["accepted"])

	// The hub asks a person. The person may change the tool's input.
	id := c.send("mcp.call", `{"server":"far","tool":"echo","arguments":{"word":"one"}}`)
	q := question(t, w, person)
	assert.Equal(t, "mcp__far__echo", q["tool_name"])
	assert.Empty(t, called)
	decide(person, q, `"decision":"approve","updated_input":{"word":"two"}`)
	r := object(t, c.wait(id).Result)
	assert.Equal(t, []any{map[string]any{"type": "text", "text": "two"}}, r["content"])
	assert.Equal(t, "two", <-called)
	id = c.send("mcp.call", `{"server":"far","tool":"echo","arguments":{"word":"no"}}`)
	decide(person, question(t, w, person), `"decision":"deny","comment":"no"`)
	assert.Equal(t, -32051, c.wait(id).Error.Code)
	assert.Empty(t, called)

	// A confirmed call asks no user, but deny rules apply.
	c.ask("mcp.call", `{"server":"far","tool":"echo","arguments":{"word":"three"},"confirmed":true}`)
	assert.Equal(t, "three", <-called)
	assert.Equal(t, -32051, c.fail("mcp.call", `{"server":"far","tool":"never","confirmed":true}`).Code)
	e = c.fail("mcp.call", `{"server":"far","tool":"nothing","confirmed":true}`)
	assert.Equal(t, []any{-32053, float64(-32602)}, []any{e.Code, e.Data["upstream"].(map[string]any)["code"]})

	id = c.send("mcp.call", `{"server":"far","tool":"hang","confirmed":true}`)
	assert.Equal(t, "hang", <-called)
	c.cancel(id)
}
