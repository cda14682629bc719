package handlers_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// The service to sign in to is data, wherever the end of the run is reported.
func TestARunThatNeedsASignInHasTheWays(t *testing.T) {
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
