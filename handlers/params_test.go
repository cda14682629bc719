package handlers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/handlers"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
	"github.com/duet-rpc/duet-rpc/server"
	"github.com/duet-rpc/duet-rpc/server/schema"
)

// without returns a client and the registry of a server whose store cannot open.
func without(t *testing.T) (*client, *server.Registry) {
	reg := server.NewRegistry()
	register(reg, handlers.Domain{
		Hub: func(context.Context) (*hub.Hub, error) {
			return nil, &domain.Error{Kind: domain.KindUnavailable, Message: "the database is damaged; run `duet-rpc doctor`"}
		},
		Version: "0.0.0-test",
	})
	return connectTo(t, server.New(reg, server.Options{}), frame.LSP), reg
}

// rightAndWrong returns a value that a schema accepts and one that it rejects. wrong is "" if the
// schema accepts any value.
func rightAndWrong(s *schema.Schema) (right, wrong string) {
	switch {
	case s.Enum != nil:
		b, _ := json.Marshal(s.Enum[len(s.Enum)-1])
		return string(b), `"no such value"`
	case s.Type == "string", len(s.Types) > 0:
		return `"x"`, `{}`
	case s.Type == "integer":
		return `1`, `"1"`
	case s.Type == "number":
		return `1.5`, `"1"`
	case s.Type == "boolean":
		return `true`, `"true"`
	case s.Type == "array":
		item, _ := rightAndWrong(s.Items)
		return "[" + item + "]", `"x"`
	case s.Values != nil:
		return `{}`, `[]`
	case s.Type == "object":
		return objectWith(s, "", ""), `5`
	}
	return `{}`, ""
}

// objectWith returns an object with all required members. The member name has the value, or is
// missing if value is "".
func objectWith(s *schema.Schema, name, value string) string {
	members := map[string]json.RawMessage{}
	for _, p := range s.Properties {
		if p.Required {
			right, _ := rightAndWrong(p.Schema)
			members[p.Name] = json.RawMessage(right)
		}
	}
	delete(members, name)
	if value != "" {
		members[name] = json.RawMessage(value)
	}
	b, _ := json.Marshal(members)
	return string(b)
}

// The error for a wrong parameter names it, for every parameter of every method, also without a
// store.
func TestWrongParametersAreNamed(t *testing.T) {
	c, reg := without(t)
	expect := func(method, params, param string) {
		t.Helper()
		e := c.rejects(method, params, param)
		assert.NotEmpty(t, e.Data["expected"])
		assert.NotEmpty(t, e.Data["received"])
	}
	for _, m := range reg.Methods() {
		schema := m.Params()
		expect(m.Name, `"x"`, "params")
		expect(m.Name, `[1]`, "params")
		for _, p := range schema.Properties {
			if _, wrong := rightAndWrong(p.Schema); wrong != "" {
				expect(m.Name, objectWith(schema, p.Name, wrong), p.Name)
			}
			if p.Required {
				expect(m.Name, objectWith(schema, p.Name, ""), p.Name)
			}
			assert.NotEmpty(t, p.Schema.Description, "%s: %s has no doc", m.Name, p.Name)
		}
	}
}

// Deep and wide parameters cost no more than their length: every parameter of every method gets
// nested arrays and objects, and every method 100,000 unknown members.
func TestDeepAndWideParameters(t *testing.T) {
	c, reg := without(t)
	const levels = 4900
	deep := []string{
		strings.Repeat("[", levels) + strings.Repeat("]", levels), strings.Repeat(`{"a":`, levels) + "1" + strings.Repeat("}", levels),
		strings.Repeat(`[{"a":`, levels) + `"` + strings.Repeat("x", 100_000) + `"` + strings.Repeat("}]", levels),
	}
	wide := `{` + strings.Repeat(`"":[],`, 100_000) + `"x":1}`
	for _, m := range reg.Methods() {
		c.wait(c.send(m.Name, wide))
		for _, value := range deep {
			c.wait(c.send(m.Name, value))
			for _, p := range m.Params().Properties {
				c.wait(c.send(m.Name, objectWith(m.Params(), p.Name, value)))
			}
		}
	}
}

// A value of a client that other clients get fits into their messages with any nesting that a method
// accepts.
func TestTheDeepestValueReachesOtherClients(t *testing.T) {
	w := newWorld(t, until)
	c := w.connect(frame.LSP)
	nested := func(levels int) string { return strings.Repeat("[", levels) + strings.Repeat("]", levels) }
	input := `{"a":` + nested(999) + `}`
	session := testkit.JSONAs[string](t, c.ask("launchSession", `{"query":"x","metadata":{"m":`+nested(999)+`}}`), "session_id")
	c.ask("createApproval", `{"session_id":"`+session+`","tool_name":"Run","tool_input":`+input+`}`)
	assert.Contains(t, string(w.connect(frame.LSP).ask("fetchApprovals", "")), input)
	e := c.fail("createApproval", `{"session_id":"`+session+`","tool_name":"Run","tool_input":`+nested(1001)+`}`)
	assert.Equal(t, "a value that nests at most 1000 levels", e.Data["expected"])
}

// Methods also reject values that their schema cannot exclude.
func TestParametersThatMakeNoSense(t *testing.T) {
	c, _ := without(t)
	long := fmt.Sprint(10_001)
	for _, test := range []struct{ method, params, param string }{
		{"task.submit", `{"prompt":""}`, "prompt"},
		{"task.submit", `{"prompt":" \n"}`, "prompt"},
		{"chat.send", `{"message":""}`, "message"},
		{"task.get", `{"taskId":""}`, "taskId"},
		{"task.cancel", `{"taskId":""}`, "taskId"},
		{"task.list", `{"state":"waiting"}`, "state"},
		{"task.list", `{"limit":-1}`, "limit"},
		{"launchSession", `{"query":""}`, "query"},
		{"launchSession", `{"query":"x","mcp_config":5}`, "mcp_config"},
		{"launchSession", `{"query":"x","mcp_config":"not json"}`, "mcp_config"},
		{"launchSession", `{"query":"x","mcp_config":{"mcpServers":{"a":{}}}}`, "mcp_config.mcpServers.a"},
		{"launchSession", `{"query":"x","metadata":[]}`, "metadata"},
		{"continueSession", `{"session_id":"","query":"x"}`, "session_id"},
		{"continueSession", `{"session_id":"x","query":""}`, "query"},
		{"interruptSession", `{"session_id":""}`, "session_id"},
		{"getSessionState", `{"session_id":""}`, "session_id"},
		{"getSessionSnapshots", `{"session_id":""}`, "session_id"},
		{"updateSessionSettings", `{"session_id":""}`, "session_id"},
		{"updateSessionTitle", `{"session_id":"","title":"x"}`, "session_id"},
		{"archiveSession", `{"session_id":"","archived":true}`, "session_id"},
		{"bulkArchiveSessions", `{"session_ids":[],"archived":true}`, "session_ids"},
		{"getConversation", `{}`, "session_id"},
		{"session.search", `{"query":""}`, "query"},
		{"createApproval", `{"tool_name":"Bash"}`, "run_id"},
		{"createApproval", `{"run_id":"x"}`, "tool_name"},
		{"createApproval", `{"run_id":"x","type":"human_contact"}`, "message"},
		{"createApproval", `{"run_id":"x","tool_name":"x","options":{}}`, "options"},
		{"getApproval", `{}`, "call_id"},
		{"rule.delete", `{}`, "rule_id"},
		{"rule.delete", `{"rule_id":-1}`, "rule_id"},
		{"sendDecision", `{"decision":"approve"}`, "call_id"},
		{"sendDecision", `{"call_id":"x","decision":"perhaps"}`, "decision"},
		{"sendDecision", `{"call_id":"x","decision":"deny"}`, "comment"},
		{"sendDecision", `{"call_id":"x","decision":"respond"}`, "comment"},
		{"sendDecision", `{"call_id":"x","type":"function_call","decision":"respond","comment":"x"}`, "decision"},
		{"sendDecision", `{"call_id":"x","type":"human_contact","decision":"approve"}`, "decision"},
		{"sendDecision", `{"call_id":"x","decision":"approve","scope":"world"}`, "scope"},
		{"Subscribe", `{"event_types":["new_approval",5]}`, "event_types[1]"},
		{"Subscribe", `{"event_types":"new_approval"}`, "event_types"},
		{"Subscribe", `{"since":-1}`, "since"},
		{"Subscribe", `{"delta_interval_ms":15}`, "delta_interval_ms"},
		{"Subscribe", `{"delta_interval_ms":1001}`, "delta_interval_ms"},
		{"Unsubscribe", `{"subscription_id":""}`, "subscription_id"},
		{"execute_prompt", `{"prompt":""}`, "prompt"},
		{"execute_prompt", `{"prompt":"x","permission_mode":"yolo"}`, "permission_mode"},
		{"stop_task", `{"task_id":""}`, "task_id"},
		{"cancel_task", `{"task_id":""}`, "task_id"},
		{"create_message", `{"task_id":"","message":{"role":"user","content":"x"}}`, "task_id"},
		{"create_message", `{"task_id":"x","message":{"role":"robot","content":"x"}}`, "message.role"},
		{"secret.provide", `{"request_id":"","secret":"x"}`, "request_id"},
		{"spawn_terminal", `{"cols":` + long + `}`, "cols"},
		{"spawn_terminal", `{"rows":` + long + `}`, "rows"},
		{"spawn_terminal", `{"env":{"":"x"}}`, "env"},
		{"terminal.start", `{"env":{"":"x"}}`, "env"},
		{"spawn_terminal", `{"env":{"A=B":"x"}}`, "env"},
		{"spawn_terminal", `{"env":{"A":"x\u0000"}}`, "env"},
		{"terminal.write", `{"terminal_id":"","data":"x"}`, "terminal_id"},
		{"terminal.write", `{"terminal_id":"t","data":"%","encoding":"base64"}`, "data"},
		{"terminal.resize", `{"terminal_id":"t","cols":0,"rows":1}`, "cols"},
		{"terminal.resize", `{"terminal_id":"t","cols":1,"rows":` + long + `}`, "rows"},
		{"terminal.close", `{"terminal_id":""}`, "terminal_id"},
		{"terminal.attach", `{"terminal_id":""}`, "terminal_id"},
		{"terminal.attach", `{"terminal_id":"t","cols":` + long + `}`, "cols"},
		{"terminal.attach", `{"terminal_id":"t","rows":` + long + `}`, "rows"},
		{"terminal.detach", `{"terminal_id":""}`, "terminal_id"},
	} {
		c.rejects(test.method, test.params, test.param)
	}
}

// Without a store, methods fail with the code of their family, and daemon.stop works.
func TestWithoutAStore(t *testing.T) {
	c, reg := without(t)
	codes := map[string]int{"task.submit": -32003, "task.list": -32003, "chat.send": -32003, "launchSession": -32603, "execute_prompt": -32603, "daemon.status": -32052, "Subscribe": -32603, "terminal.close": -32052, "session.start": -32052}
	for _, m := range reg.Methods() {
		code, ok := codes[m.Name]
		if !ok {
			continue
		}
		e := c.fail(m.Name, objectWith(m.Params(), "", ""))
		assert.Equal(t, code, e.Code, m.Name)
		assert.Equal(t, "subsystem_unavailable", e.Data["kind"], m.Name)
		assert.Contains(t, e.Message, "duet-rpc doctor", m.Name)
	}
	require.Equal(t, map[string]any{"stopping": true}, object(t, c.ask("daemon.stop", "")))
}
