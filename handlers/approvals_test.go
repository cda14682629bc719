package handlers_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// asking is an agent that requests permission for a tool call and reports the answer.
func asking(ctx context.Context, x *turn) catalog.ExecutePromptResult {
	old := "old\n"
	r := x.ask(ctx, catalog.RequestPermissionParams{
		ToolName: "Edit", ToolInput: json.RawMessage(`{"path":"a.txt"}`), ToolUseID: "toolu_1", Title: "Edit a.txt", ToolKind: "edit",
		Paths: []string{"a.txt"}, Diffs: []domain.Diff{{Path: x.CWD + "/a.txt", OldText: &old, NewText: "new\n"}},
		Options: []catalog.PermissionOption{{OptionID: "yes", Name: "Allow", Kind: "allow_once"}},
	})
	answer, _ := json.Marshal(r)
	x.say(string(answer))
	return done
}

// pending waits for the only open approval of a session, or of all if session is "".
func pending(t *testing.T, w *world, c *client, session string) map[string]any {
	t.Helper()
	w.waiting(session, 1)
	list := answer[struct{ Approvals []map[string]any }](c, "fetchApprovals", `{"session_id":"`+session+`"}`).Approvals
	require.Len(t, list, 1)
	return list[0]
}

func TestAnApprovalHasBothShapes(t *testing.T) {
	w := newWorld(t, asking)
	c := w.connect(frame.NDJSON)
	launched := c.ask("launchSession", `{"query":"edit"}`)
	session, turn := testkit.JSONAs[string](t, launched, "session_id"), testkit.JSONAs[string](t, launched, "run_id")
	a := pending(t, w, c, session)
	id := a["id"].(string)
	for name, want := range map[string]any{
		"approval_id": id, "call_id": "toolu_1", "tool_use_id": "toolu_1", "run_id": turn, "session_id": session, "task_id": "task-0001", "status": "pending",
		"tool_name": "Edit", "tool_input": map[string]any{"path": "a.txt"}, "title": "Edit a.txt", "tool_kind": "edit", "stale": false, "input_editable": true,
		"paths": []any{"a.txt"}, "diff": "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-old\n+new\n", "type": "function_call",
		"options": []any{map[string]any{"option_id": "yes", "name": "Allow", "kind": "allow_once"}},
	} {
		assert.Equal(t, want, a[name], name)
	}
	call := a["function_call"].(map[string]any)
	assert.Equal(t, []any{turn, "toolu_1"}, []any{call["run_id"], call["call_id"]})
	assert.Equal(t, map[string]any{"fn": "Edit", "kwargs": map[string]any{"path": "a.txt"}}, call["spec"])
	assert.Equal(t, map[string]any{"requested_at": a["created_at"]}, call["status"])
	assert.NotContains(t, a, "human_contact")
	assert.Len(t, object(t, c.ask("fetchApprovals", ""))["approvals"], 1, "of all sessions")

	// The hub refuses a decision that does not fit the approval, and changes nothing.
	c.rejects("sendDecision", `{"call_id":"toolu_1","type":"human_contact","decision":"respond","comment":"x"}`, "type")
	e := c.fail("sendDecision", `{"call_id":"toolu_1","decision":"respond","comment":"x"}`)
	assert.Equal(t, []any{"approve", "deny"}, e.Data["accepted"])

	e = c.fail("sendDecision", `{"call_id":"toolu_1","decision":"approve","client":"`+strings.Repeat("a", 101)+`"}`)
	assert.Equal(t, "client", e.Data["param"])

	r := object(t, c.ask("sendDecision", `{"call_id":"toolu_1","type":"function_call","decision":"approve","comment":"fine","client":"VS Code","updated_input":{"path":"b.txt"}}`))
	assert.Equal(t, map[string]any{"success": true, "status": "approved"}, r)
	ended := w.ended(session)
	assert.Contains(t, ended.Result, `"updated_input":{"path":"b.txt"}`)

	r = object(t, c.ask("sendDecision", `{"approval_id":"`+id+`","decision":"deny","comment":"no"}`))
	assert.Equal(t, false, r["success"])
	assert.Equal(t, "approval "+id+" already decided with status: approved", r["error"])
	r = object(t, c.ask("sendDecision", `{"approval_id":"zzz","decision":"approve"}`))
	assert.Equal(t, map[string]any{"success": false, "error": "approval not found: zzz"}, r)

	decided := object(t, c.ask("getApproval", `{"approval_id":"`+id+`"}`))["approval"].(map[string]any)
	assert.Equal(t, "approved", decided["status"])
	status := decided["function_call"].(map[string]any)["status"].(map[string]any)
	assert.Equal(t, []any{true, "fine"}, []any{status["approved"], status["comment"]})
	assert.Contains(t, status, "responded_at")
	assert.JSONEq(t, `{"approvals":[]}`, string(c.ask("fetchApprovals", "")))
	e = c.failsAs("getApproval", `{"approval_id":"zzz"}`, -32603, "approval_not_found")
}

// Agents number their calls anew in each session. HumanLayer's clients identify an approval only by
// its call id, so call ids must be unique.
func TestACallIDNamesOneApproval(t *testing.T) {
	w := newWorld(t, asking)
	c := w.connect(frame.NDJSON)
	var sessions, calls []string
	for range 3 {
		session := c.launch(`{"query":"edit"}`)
		a := pending(t, w, c, session)
		call := a["call_id"].(string)
		assert.Equal(t, call, a["function_call"].(map[string]any)["call_id"])
		assert.Equal(t, "toolu_1", a["tool_use_id"], "the agent's own id, which identifies the tool call")
		assert.NotContains(t, calls, call)
		sessions, calls = append(sessions, session), append(calls, call)
		for _, e := range object(t, c.ask("getConversation", `{"session_id":"`+session+`"}`))["events"].([]any) {
			if e := e.(map[string]any); e["event_type"] == "tool_call" {
				assert.Equal(t, []any{"toolu_1", a["id"]}, []any{e["tool_id"], e["approval_id"]})
			}
		}
	}
	for i := range calls {
		got := object(t, c.ask("getApproval", `{"call_id":"`+calls[i]+`"}`))["approval"].(map[string]any)
		assert.Equal(t, sessions[i], got["session_id"])
	}
	for i := range calls {
		r := object(t, c.ask("sendDecision", `{"call_id":"`+calls[i]+`","type":"function_call","decision":"deny","comment":"no"}`))
		assert.Equal(t, true, r["success"])
		w.ended(sessions[i])
		assert.Len(t, must(w.hub.Approvals().Pending(context.Background(), ""))(t), 2-i, "the others wait")
	}
}

func TestAHumanIsContacted(t *testing.T) {
	w := newWorld(t, until)
	c := w.connect(frame.LSP)
	session := c.launch(`{"query":"go on"}`)
	id := testkit.JSONAs[string](t, c.ask("createApproval", `{"session_id":"`+session+`","type":"human_contact","message":"Which one?","subject":"A choice",
		"options":[{"option_id":"a","name":"The first"}]}`), "approval_id")
	a := pending(t, w, c, session)
	contact := a["human_contact"].(map[string]any)
	assert.Equal(t, map[string]any{"msg": "Which one?", "subject": "A choice", "response_options": []any{map[string]any{"name": "a", "title": "The first"}}}, contact["spec"])
	assert.NotContains(t, a, "function_call")
	e := c.fail("sendDecision", `{"call_id":"`+id+`","decision":"approve"}`)
	assert.Equal(t, []any{"respond"}, e.Data["accepted"])
	assert.Equal(t, true, object(t, c.ask("sendDecision", `{"call_id":"`+id+`","type":"human_contact","decision":"respond","comment":"The second"}`))["success"])

	decided := object(t, c.ask("getApproval", `{"call_id":"`+id+`"}`))["approval"].(map[string]any)
	assert.Equal(t, "responded", decided["status"])
	assert.Equal(t, "The second", decided["human_contact"].(map[string]any)["status"].(map[string]any)["response"])

	// The session keeps the answer, except for clients that know no such event.
	last := func(c *client) (answer map[string]any) { // a message may follow it
		for _, e := range object(t, c.ask("getConversation", `{"session_id":"`+session+`"}`))["events"].([]any) {
			if e.(map[string]any)["event_type"] == "approval" {
				answer = e.(map[string]any)
			}
		}
		return answer
	}
	said := last(c)
	assert.Equal(t, []any{"approval", "user", "Which one? — responded: The second"}, []any{said["event_type"], said["role"], said["content"]})
	assert.Equal(t, map[string]any{"approval_id": id, "type": "human_contact", "decision": "responded", "title": "Which one?", "response_text": "The second"}, said["data"])
	assert.Nil(t, last(w.connect(frame.NDJSON)))
	for decision, kept := range map[string]any{
		`"approve"`: nil, `"approve","updated_input":null`: nil, `"approve","updated_input":{"a":2}`: "Bash — approved", `"deny","comment":"not today"`: "Bash — denied: not today",
	} {
		id := testkit.JSONAs[string](t, c.ask("createApproval", `{"session_id":"`+session+`","tool_name":"Bash","tool_input":{"a":1}}`), "approval_id")
		before := last(c)["id"]
		c.ask("sendDecision", `{"approval_id":"`+id+`","decision":`+decision+`}`)
		if kept == nil {
			assert.Equal(t, before, last(c)["id"], "a plain approval adds no event")
			continue
		}
		assert.Equal(t, kept, last(c)["content"])
		assert.Equal(t, decision == `"approve","updated_input":{"a":2}`, last(c)["data"].(map[string]any)["input_was_edited"] == true)
	}
	assert.Equal(t, "session_not_found", c.fail("createApproval", `{"run_id":"nope","tool_name":"Bash"}`).Data["kind"])
}

// approval.create returns at once. The answer comes as an event, and from approval.get.
func TestAnApprovalIsCreated(t *testing.T) {
	w := newWorld(t, until, func(o *hub.Options) {
		fakeOf(o).rules = func() []config.Rule { return []config.Rule{{Tool: "Read", Effect: config.EffectAllow}} }
	})
	c := w.connect(frame.LSP)
	started := answer[protocol.Started](c, "session.start", `{"prompt":"go on"}`)
	w.reaches(started.ID, domain.Running)
	c.ask("event.subscribe", `{"kinds":["approval.closed"]}`)
	a := answer[protocol.ApprovalResult](c, "approval.create", `{"turn":1,"tool_name":"Bash","tool_input":{"command":"make"},"tool_use_id":"mine"}`).Approval
	assert.Equal(t, []any{"1.1", protocol.ApprovalStatus("pending"), "mine", "Bash", protocol.FunctionCall}, []any{a.Turn, a.Status, a.CallID, a.ToolName, a.Type})
	w.reaches(started.ID, domain.WaitingInput)
	c.ask("approval.decide", `{"approval":"mine","decision":"approve"}`)
	assert.Equal(t, protocol.KindApprovalClosed, eventIn(t, c).Kind)
	assert.Equal(t, protocol.ApprovalStatus("approved"), answer[protocol.ApprovalResult](c, "approval.get", `{"approval":"`+a.ApprovalID+`"}`).Approval.Status)

	assert.Equal(t, protocol.ApprovalStatus("approved"), answer[protocol.ApprovalResult](c, "approval.create", `{"turn":1,"tool_name":"Read","tool_input":{"file_path":"a"}}`).Approval.Status, "a rule decides")
	form := answer[protocol.ApprovalResult](c, "approval.create", `{"turn":"1.1","type":"human_contact","message":"Where to?",
		"schema":{"type":"object","properties":{"port":{"type":"integer"}}}}`).Approval
	assert.Equal(t, []any{protocol.ApprovalStatus("pending"), "form", "Where to?"}, []any{form.Status, form.Mode, form.Title})

	for param, params := range map[string]string{
		"turn": `{"turn":"","tool_name":"Bash"}`, "tool_name": `{"turn":1}`, "message": `{"turn":1,"type":"human_contact"}`,
		"type": `{"turn":1,"tool_name":"Bash","url":"http://example.com"}`, "options": `{"turn":1,"tool_name":"Bash","options":{}}`,
	} {
		c.rejects("approval.create", params, param)
	}
	c.failsAs("approval.create", `{"turn":9,"tool_name":"Bash"}`, -32050, "not_found")
	c.ask("turn.interrupt", `{"turn":1}`)
	w.ended(started.ID)
	c.failsAs("approval.create", `{"turn":1,"tool_name":"Bash"}`, -32051, "bad_state")
}

func TestAnInputThatCannotBeChanged(t *testing.T) {
	w := newWorld(t, func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
		r := x.ask(ctx, catalog.RequestPermissionParams{ToolName: "Edit", ToolInput: json.RawMessage(`{"path":"a.txt"}`), InputFixed: true})
		x.say(r.Comment)
		return done
	})
	c := w.connect(frame.NDJSON)
	session := c.launch(`{"query":"edit"}`)
	a := pending(t, w, c, session)
	assert.Equal(t, false, a["input_editable"])
	e := c.fail("sendDecision", `{"approval_id":"`+a["id"].(string)+`","decision":"approve","updated_input":{"path":"b.txt"}}`)
	assert.Equal(t, []any{-32602, "updated_input"}, []any{e.Code, e.Data["param"]})
	assert.Contains(t, e.Data["expected"], "deny instead, with a comment")
	assert.Equal(t, "pending", pending(t, w, c, session)["status"])
	c.ask("sendDecision", `{"approval_id":"`+a["id"].(string)+`","decision":"deny","comment":"take b.txt","updated_input":{"path":"b.txt"}}`)
	assert.Equal(t, "take b.txt", w.ended(session).Result)
}

// Clients receive all options of an agent or a client unchanged, also unknown kinds and members.
func TestOptionsAreToldAsTheyWereOffered(t *testing.T) {
	agents := []catalog.PermissionOption{{OptionID: "a", Name: "Yes", Kind: "allow_once"}, {OptionID: "b", Name: "Ask the boss", Kind: "ask_the_boss"}}
	w := newWorld(t, func(_ context.Context, x *turn) catalog.ExecutePromptResult {
		x.ask(context.Background(), catalog.RequestPermissionParams{ToolName: "Edit", ToolUseID: "1", Title: "Edit", Options: agents})
		return done
	})
	c := w.connect(frame.LSP)
	session := c.launch(`{"query":"edit"}`)
	a := pending(t, w, c, session)
	assert.Equal(t, []any{
		map[string]any{"option_id": "a", "name": "Yes", "kind": "allow_once"}, map[string]any{"option_id": "b", "name": "Ask the boss", "kind": "ask_the_boss"},
	}, a["options"])

	offered := `[{"option_id":"a","name":"First","kind":"allow_once","_meta":{"n":1.50}},{"name":"Second"}]`
	created := c.ask("createApproval", `{"session_id":"`+session+`","tool_name":"Bash","options":`+offered+`}`)
	id := testkit.JSONAs[string](t, created, "approval_id")
	shown := c.ask("getApproval", `{"call_id":"`+id+`"}`)
	assert.Contains(t, string(shown), `"options":`+offered)
	c.ask("sendDecision", `{"call_id":"`+id+`","decision":"approve","option":"First"}`)
	c.ask("sendDecision", `{"call_id":"`+a["id"].(string)+`","decision":"approve","option":"b"}`)
	w.ended(session)
}

// A client can ask for a form. Every client receives the schema, and an answer must match it.
func TestAFormIsToldAndAnsweredByItsValues(t *testing.T) {
	w := newWorld(t, until)
	c, watcher := w.connect(frame.NDJSON), w.connect(frame.LSP)
	watcher.ask("Subscribe", `{"event_types":["new_approval"]}`)
	session := c.launch(`{"query":"work"}`)
	schema := `{"type":"object","properties":{"port":{"type":"integer","minimum":1024}},"required":["port"]}`
	e := c.fail("createApproval", `{"run_id":"`+session+`","tool_name":"Bash","schema":`+schema+`}`)
	assert.Equal(t, "type", e.Data["param"])
	e = c.fail("createApproval", `{"run_id":"`+session+`","type":"human_contact","message":"Where to?","schema":[]}`)
	assert.Equal(t, "schema", e.Data["param"])
	id := testkit.JSONAs[string](t, c.ask("createApproval", `{"run_id":"`+session+`","type":"human_contact","message":"Where to?","schema":`+schema+`}`), "approval_id")
	event := object(t, watcher.event("new_approval"))
	listed := object(t, c.ask("fetchApprovals", ""))["approvals"].([]any)[0].(map[string]any)
	got := object(t, c.ask("getApproval", `{"approval_id":"`+id+`"}`))["approval"].(map[string]any)
	want := object(t, json.RawMessage(schema))
	for _, reported := range []map[string]any{event, listed, got} {
		assert.Equal(t, []any{"form", want}, []any{reported["mode"], reported["schema"]})
		assert.NotContains(t, reported, "url")
		assert.NotContains(t, reported, "content")
	}
	e = c.fail("sendDecision", `{"approval_id":"`+id+`","decision":"respond","content":{"port":"80"}}`)
	assert.Equal(t, -32602, e.Code)
	assert.Equal(t, []any{"content.port", "a whole number of at least 1024", `"80"`}, []any{e.Data["param"], e.Data["expected"], e.Data["received"]})
	r := object(t, c.ask("sendDecision", `{"approval_id":"`+id+`","decision":"respond","content":{"port":8080}}`))
	assert.Equal(t, map[string]any{"success": true, "status": "responded"}, r)
	got = object(t, c.ask("getApproval", `{"approval_id":"`+id+`"}`))["approval"].(map[string]any)
	assert.Equal(t, map[string]any{"port": 8080.0}, got["content"])
	assert.Equal(t, "port: 8080", got["response"])

	id = testkit.JSONAs[string](t, c.ask("createApproval", `{"run_id":"`+session+`","type":"human_contact","message":"Sign in","url":"http://example.com/x"}`), "approval_id")
	got = object(t, c.ask("getApproval", `{"approval_id":"`+id+`"}`))["approval"].(map[string]any)
	assert.Equal(t, []any{"url", "http://example.com/x", "example.com"}, []any{got["mode"], got["url"], got["url_host"]})
	assert.Len(t, got["url_warnings"], 1)
	r = object(t, c.ask("sendDecision", `{"approval_id":"`+id+`","decision":"cancel"}`))
	assert.Equal(t, map[string]any{"success": true, "status": "cancelled"}, r)
}

// The answer to an agent's choice must be one of its options. The question says so. Another answer
// fails with the accepted options, and the question stays open.
func TestAChoiceIsAnsweredWithItsOptionsAlone(t *testing.T) {
	w := newWorld(t, func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
		x.say(x.ask(ctx, catalog.RequestPermissionParams{
			ToolUseID: "1", ToolName: "ask", Title: "Which colour?", IsQuestion: true,
			Options: []catalog.PermissionOption{{OptionID: "r", Name: "Red", Kind: "allow_once"}, {OptionID: "g", Name: "Green", Kind: "allow_once"}, {OptionID: "n", Name: "None", Kind: "reject_once"}},
		}).OptionID)
		return done
	})
	c := w.connect(frame.LSP)
	c.ask("Subscribe", `{"event_types":["new_approval"]}`)
	session := c.launch(`{"query":"ask"}`)
	announced := object(t, c.event("new_approval"))
	a := pending(t, w, c, session)
	for _, q := range []map[string]any{announced, a} {
		assert.Equal(t, []any{true, true}, []any{q["options_only"], q["declinable"]})
	}
	id := a["id"].(string)
	e := c.fail("sendDecision", `{"approval_id":"`+id+`","decision":"respond","comment":"dark red"}`)
	assert.Equal(t, -32602, e.Code)
	assert.Equal(t, []any{"option", "one of Red, Green (the agent accepts no other answer)", `"dark red"`, []any{"Red", "Green"}}, []any{e.Data["param"], e.Data["expected"], e.Data["received"], e.Data["accepted"]})
	assert.Equal(t, "pending", pending(t, w, c, session)["status"])
	assert.Equal(t, true, object(t, c.ask("sendDecision", `{"approval_id":"`+id+`","decision":"respond","comment":"green"}`))["success"])
	assert.Equal(t, "g", w.ended(session).Result)
}

// A standing decision is in the list of rules. Without its rule, the hub asks again.
func TestStandingRules(t *testing.T) {
	w := newWorld(t, asking)
	c := w.connect(frame.NDJSON)
	rules := func() []any { return object(t, c.ask("rule.list", ""))["rules"].([]any) }
	assert.Equal(t, []any{}, rules())
	launch := func() string {
		return c.launch(`{"query":"edit"}`)
	}
	decide := func(session, decision string) {
		a := pending(t, w, c, session)
		c.ask("sendDecision", `{"approval_id":"`+a["approval_id"].(string)+`","decision":`+decision+`}`)
		w.ended(session)
	}

	first := launch()
	decide(first, `"approve","scope":"project"`)
	w.ended(launch()) // without a question
	listed := rules()
	assert.Len(t, listed, 1)
	rule := listed[0].(map[string]any)
	assert.NotEmpty(t, rule["created_at"])
	delete(rule, "created_at")
	assert.Equal(t, "**", filepath.Base(rule["path"].(string)), "the rule covers the project")
	delete(rule, "path")
	assert.Equal(t, map[string]any{"rule_id": 1.0, "effect": "allow", "tool_name": "Edit", "scope": "project"}, rule)

	assert.JSONEq(t, `{"success":true}`, string(c.ask("rule.delete", `{"rule_id":1}`)))
	assert.Empty(t, rules())
	assert.Equal(t, "rule_not_found", c.fail("rule.delete", `{"rule_id":1}`).Data["kind"])

	again := launch()
	decide(again, `"deny","comment":"no","scope":"session"`)
	rule = rules()[0].(map[string]any)
	state := c.state(again)
	assert.Equal(t, []any{"deny", "session", state["thread_id"]}, []any{rule["effect"], rule["scope"], rule["session_uuid"]})
}

// Long approvals and rules fit into the lines of 1 MiB that old clients read.
func TestLongRulesFitIntoALine(t *testing.T) {
	w := newWorld(t, func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
		input, _ := json.Marshal(map[string]string{"command": x.Prompt + strings.Repeat("x", 700_000)})
		x.ask(ctx, catalog.RequestPermissionParams{ToolName: "Bash", ToolKind: "execute", ToolInput: input, ToolUseID: "toolu_1"})
		return done
	})
	c := w.connect(frame.NDJSON)
	for _, prompt := range []string{"a", "b"} {
		session := c.launch(`{"query":"` + prompt + `"}`)
		a := pending(t, w, c, session) // the list has a shortened approval
		assert.Equal(t, true, a["truncated"])
		assert.Contains(t, a["tool_input"].(map[string]any)["command"], "bytes left out")
		c.ask("sendDecision", `{"approval_id":"`+a["approval_id"].(string)+`","decision":"approve","scope":"project"}`)
		w.ended(session)
	}
	reply := c.ask("rule.list", "")
	assert.Less(t, len(reply), 1<<20)
	rules := object(t, reply)["rules"].([]any)
	assert.Len(t, rules, 2)
	for i, r := range rules {
		assert.True(t, strings.HasPrefix(r.(map[string]any)["command"].(string), []string{"ax", "bx"}[i]))
	}
}

// A message has room for the input of a question whose diff is too long for it.
func TestALongDiffLeavesTheInput(t *testing.T) {
	old := strings.Repeat("a line\n", 400_000)
	input := json.RawMessage(`{"path":"a.txt","reason":"` + strings.Repeat("r", 5000) + `"}`)
	w := newWorld(t, func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
		x.ask(ctx, catalog.RequestPermissionParams{
			ToolName: "Delete", ToolInput: input, ToolUseID: "toolu_1", Diffs: []domain.Diff{{Path: x.CWD + "/a.txt", OldText: &old}},
		})
		return done
	})
	c := w.connect(frame.NDJSON)
	c.ask("launchSession", `{"query":"delete"}`)
	a := pending(t, w, c, "")
	assert.Equal(t, true, a["truncated"])
	assert.Less(t, len(a["diff"].(string)), 300<<10)
	assert.Equal(t, string(input), string(must(json.Marshal(a["tool_input"]))(t)))
	assert.Equal(t, a["tool_input"], a["function_call"].(map[string]any)["spec"].(map[string]any)["kwargs"])
}
