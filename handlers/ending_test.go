package handlers_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// A hub that waits for the end of its turns still answers, with an error that it is ending.
func TestAHubThatEndsSaysSo(t *testing.T) {
	running, stopped, goOn := make(chan struct{}), make(chan struct{}), make(chan struct{})
	w := newWorld(t, func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
		if x.Prompt == "quick" {
			return quick(ctx, x)
		}
		close(running)
		<-ctx.Done()
		close(stopped)
		<-goOn
		return done
	})
	c := w.connect(frame.LSP)
	id := c.launch(`{"query":"quick"}`)
	c.ask("launchSession", `{"query":"long"}`)
	<-running
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		assert.NoError(t, w.hub.Close())
	}()
	defer func() {
		close(goOn)
		<-closed
	}()
	<-stopped
	for method, params := range map[string]string{
		"launchSession":      `{"query":"p"}`,
		"continueSession":    `{"session_id":"` + id + `","query":"p"}`,
		"interruptSession":   `{"session_id":"` + id + `"}`,
		"updateSessionTitle": `{"session_id":"` + id + `","title":"p"}`,
		"archiveSession":     `{"session_id":"` + id + `","archived":true}`,
		"sendDecision":       `{"approval_id":"x","decision":"approve"}`,
		"createApproval":     `{"session_id":"` + id + `","tool_name":"x","tool_input":{}}`,
		"execute_prompt":     `{"prompt":"p"}`,
		"task.submit":        `{"prompt":"p"}`,
		"task.cancel":        `{"taskId":"task-0002"}`,
		"chat.send":          `{"message":"p"}`,
		"approval.create":    `{"turn":1,"tool_name":"x"}`,
	} {
		e := c.fail(method, params)
		assert.Equal(t, "subsystem_unavailable", e.Data["kind"], method)
		assert.Contains(t, e.Message, "duet-rpc is ending; connect again in a moment, and try again", method)
	}
}
