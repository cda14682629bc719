package handlers_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

func withTriggers(o *hub.Options) {
	configure(o, config.Config{
		Automation: config.DefaultAutomation(), Triggers: []config.Trigger{
			{ID: "failed", Type: "turn.failed", Enabled: true, FromProject: true, Cooldown: 1000, Action: domain.TriggerAction{Type: "notify", Message: "{{payload.task_id}} failed"}},
			{ID: "night", Cron: "0 3 * * *", Action: domain.TriggerAction{Type: "agent", Prompt: "tidy up"}, RequiresApproval: true},
		},
	})
}

func failing(context.Context, *turn) catalog.ExecutePromptResult {
	return catalog.ExecutePromptResult{Status: catalog.StatusFailed}
}

// The results have the shapes that AIWG's client reads.
func TestAutomationAsAIWGReadsIt(t *testing.T) {
	w := newWorld(t, failing, withTriggers)
	c := w.connect(frame.NDJSON)
	status := object(t, c.ask("automation.status", ""))
	assert.Equal(t, []any{true, 2.0, []any{}}, []any{status["enabled"], status["ruleCount"], status["recentExecutions"]})
	rule := status["rules"].([]any)[0].(map[string]any)
	assert.Equal(t, map[string]any{"type": "turn.failed"}, rule["trigger"])
	assert.Equal(t, map[string]any{"type": "notify", "message": "{{payload.task_id}} failed"}, rule["action"])
	assert.Equal(t, []any{"failed", true, 0.0, false}, []any{rule["id"], rule["enabled"], rule["cooldownMs"], rule["requiresApproval"]})

	assert.Equal(t, true, object(t, c.ask("automation.enable", `{"ruleId":"night"}`))["success"])
	assert.Equal(t, false, object(t, c.ask("automation.disable", `{"ruleId":"unknown"}`))["success"])
	assert.Equal(t, false, object(t, c.ask("automation.disable", ""))["enabled"])
	assert.Equal(t, false, object(t, c.ask("automation.status", ""))["enabled"])
	assert.Equal(t, true, object(t, c.ask("automation.enable", "{}"))["enabled"])

	c.ask("task.submit", `{"prompt":"x"}`)
	w.until(func() bool {
		return len(must(w.hub.Triggers().Executions(context.Background(), "", 10, true))(t)) > 0
	}, "an execution of the trigger")
	recent := object(t, c.ask("automation.status", ""))["recentExecutions"].([]any)
	require.Len(t, recent, 1)
	one := recent[0].(map[string]any)
	assert.Equal(t, []any{"failed", "turn.failed", "notified"}, []any{one["ruleId"], one["eventType"], one["status"]})
	assert.Regexp(t, `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`, one["timestamp"])
}

func TestTriggers(t *testing.T) {
	w := newWorld(t, failing, withTriggers)
	c := w.connect(frame.LSP)
	listed := answer[protocol.TriggerList](c, "trigger.list", "")
	require.Len(t, listed.Triggers, 2)
	first := listed.Triggers[0]
	assert.Equal(t, []any{"failed", true, "turn.failed", "project"}, []any{first.ID, first.Enabled, first.Event.Type, first.From})
	assert.Equal(t, protocol.TriggerSwitched{Enabled: true}, answer[protocol.TriggerSwitched](c, "trigger.enable", `{"trigger":"night"}`))
	assert.Equal(t, `no trigger has the id "unknown"`, c.failsAs("trigger.disable", `{"trigger":"unknown"}`, -32050, "trigger_not_found").Message)
	c.ask("trigger.disable", "")
	assert.False(t, answer[protocol.TriggerList](c, "trigger.list", "").Enabled)
	c.ask("trigger.enable", "")

	w.finished(answer[protocol.Started](c, "session.start", `{"prompt":"x"}`).ID)
	w.until(func() bool {
		return len(must(w.hub.Triggers().Executions(context.Background(), "", 10, true))(t)) > 0
	}, "an execution of the trigger")
	assert.Equal(t, "failed", answer[protocol.TriggerList](c, "trigger.list", "").Recent[0].Trigger)
	log := object(t, c.ask("trigger.log", `{"trigger":"failed","limit":5}`))["executions"].([]any)
	assert.Equal(t, map[string]any{"type": "notify", "message": "task-0001 failed"}, log[0].(map[string]any)["does"])

	tried := object(t, c.ask("trigger.test", `{"type":"turn.failed","source":"turn","payload":{"task_id":"task-7"}}`))["trials"].([]any)
	assert.Equal(t, map[string]any{"trigger": "failed", "fits": true, "does": map[string]any{"type": "notify", "message": "task-7 failed"}}, tried[0])
	assert.Equal(t, false, tried[1].(map[string]any)["fits"])
	assert.Equal(t, -32602, c.fail("trigger.test", `{"type":"a","source":"b","payload":7}`).Code)
}

func TestDaemonStatusHasTheTriggers(t *testing.T) {
	w := newWorld(t, failing, withTriggers)
	c := w.connect(frame.NDJSON)
	c.ask("automation.enable", `{"ruleId":"night"}`)
	sub := object(t, c.ask("daemon.status", ""))["subsystems"].(map[string]any)
	assert.Equal(t, 2.0, sub["automation"].(map[string]any)["ruleCount"])
	scheduler := sub["scheduler"].(map[string]any)
	assert.Equal(t, []any{true, 1.0}, []any{scheduler["enabled"], scheduler["jobs"]})
}

// An editor that does not trust the workspace sees and switches only the triggers of the user's own
// file.
func TestWhoDoesNotTrustTheWorkspaceHasTheUsersTriggers(t *testing.T) {
	w := newWorld(t, failing, withTriggers)
	trusted := w.hub.Triggers()
	s := must(trusted.Status(context.Background(), 10, false))(t)
	require.Len(t, s.Triggers, 1)
	assert.Equal(t, "night", s.Triggers[0].ID)
	assert.False(t, must(trusted.Switch(context.Background(), "failed", false, false))(t))
}
