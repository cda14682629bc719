package handlers_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// What was decided for good is listed, and asked again when it is taken back.
func TestStandingRules(t *testing.T) {
	w := newWorld(t, asking)
	c := w.connect(frame.NDJSON)
	rules := func() []any { return object(t, c.ask("getRules", ""))["rules"].([]any) }
	assert.Equal(t, []any{}, rules())
	launch := func() string {
		return testkit.JSONAs[string](t, c.ask("launchSession", `{"query":"edit"}`), "session_id")
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
	assert.Equal(t, "*", filepath.Base(rule["path"].(string)), "of one directory alone")
	delete(rule, "path")
	assert.Equal(t, map[string]any{"rule_id": 1.0, "effect": "allow", "tool_name": "Edit", "scope": "project"}, rule)

	assert.JSONEq(t, `{"success":true}`, string(c.ask("deleteRule", `{"rule_id":1}`)))
	assert.Empty(t, rules())
	e := c.fail("deleteRule", `{"rule_id":1}`)
	assert.Equal(t, "rule_not_found", e.Data["kind"])

	again := launch()
	decide(again, `"deny","comment":"no","scope":"session"`)
	rule = rules()[0].(map[string]any)
	state := object(t, c.ask("getSessionState", `{"session_id":"`+again+`"}`))["session"].(map[string]any)
	assert.Equal(t, []any{"deny", "session", state["thread_id"]}, []any{rule["effect"], rule["scope"], rule["thread_id"]})
}

// Old clients scan lines of 1 MiB.
func TestLongRulesFitIntoALine(t *testing.T) {
	w := newWorld(t, func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
		input, _ := json.Marshal(map[string]string{"command": x.Prompt + strings.Repeat("x", 700_000)})
		x.ask(ctx, catalog.RequestPermissionParams{ToolName: "Bash", ToolKind: "execute", ToolInput: input, ToolUseID: "toolu_1"})
		return done
	})
	c := w.connect(frame.NDJSON)
	for _, prompt := range []string{"a", "b"} {
		session := testkit.JSONAs[string](t, c.ask("launchSession", `{"query":"`+prompt+`"}`), "session_id")
		a := pending(t, w, c, session) // it is listed, though not whole
		assert.Equal(t, true, a["truncated"])
		assert.Contains(t, a["tool_input"].(map[string]any)["command"], "bytes left out")
		c.ask("sendDecision", `{"approval_id":"`+a["approval_id"].(string)+`","decision":"approve","scope":"project"}`)
		w.ended(session)
	}
	reply := c.ask("getRules", "")
	assert.Less(t, len(reply), 1<<20)
	rules := object(t, reply)["rules"].([]any)
	assert.Len(t, rules, 2)
	for i, r := range rules {
		assert.True(t, strings.HasPrefix(r.(map[string]any)["command"].(string), []string{"ax", "bx"}[i]))
	}
}
