package handlers_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// queueIs asserts which prompts wait, as a result of a method tells it.
func queueIs(t *testing.T, result json.RawMessage, want ...string) {
	t.Helper()
	var r struct{ Queued []struct{ Query string } }
	require.NoError(t, json.Unmarshal(result, &r))
	got := []string{}
	for _, q := range r.Queued {
		got = append(got, q.Query)
	}
	assert.Equal(t, append([]string{}, want...), got)
}

func TestQueuedPromptsAreEditedAndMoved(t *testing.T) {
	type seen struct {
		prompt string
		before []string
	}
	reported := make(chan seen, 8)
	release := make(chan struct{})
	w := newWorld(t, func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
		before, err := x.daemon.GetExecutionContext(ctx, catalog.GetExecutionContextParams{SessionToken: x.SessionToken})
		if err != nil {
			return catalog.ExecutePromptResult{Status: catalog.StatusFailed}
		}
		s := seen{prompt: x.Prompt, before: []string{}}
		for _, m := range before.Messages {
			s.before = append(s.before, m.Content)
		}
		reported <- s
		select {
		case <-release:
		case <-ctx.Done():
		}
		return done
	})
	c, other := w.connect(frame.LSP), w.connect(frame.LSP)
	other.ask("Subscribe", `{"event_types":["queue_changed"]}`)
	follow := func(id, query string, more string) string {
		return testkit.JSONAs[string](t, c.ask("continueSession", `{"session_id":"`+id+`","query":"`+query+`"`+more+`}`), "session_id")
	}
	first := testkit.JSONAs[string](t, c.ask("launchSession", `{"query":"one"}`), "session_id")
	assert.Equal(t, seen{"one", []string{}}, <-reported)
	two := follow(first, "two", "")
	three := follow(first, "three", "")
	four := follow(first, "four", `,"priority":1`)
	queueIs(t, c.ask("session.queue", `{"session_id":"`+first+`"}`), "four", "two", "three")
	event := object(t, other.event("queue_changed"))
	assert.Equal(t, []any{four, two, three}, event["order"], "a prompt that is more urgent goes before the others")

	queueIs(t, c.ask("session.editQueued", `{"session_id":"`+two+`","query":"2"}`), "four", "2", "three")
	event = object(t, other.event("queue_changed"))
	assert.Equal(t, two, event["session_id"])
	assert.Equal(t, "2", event["content"])
	assert.Equal(t, []any{four, two, three}, event["order"])

	queueIs(t, c.ask("session.moveQueued", `{"session_id":"`+three+`","before":"`+four+`"}`), "three", "four", "2")
	event = object(t, other.event("queue_changed"))
	assert.Equal(t, three, event["session_id"])
	assert.NotContains(t, event, "content")
	assert.Equal(t, []any{three, four, two}, event["order"])
	queueIs(t, c.ask("session.moveQueued", `{"session_id":"`+four+`"}`), "three", "2", "four")
	queueIs(t, c.ask("session.moveQueued", `{"session_id":"`+four+`","before":"`+four+`"}`), "three", "2", "four")
	queueIs(t, c.ask("session.moveQueued", `{"session_id":"`+two+`"}`), "three", "four", "2")

	close(release)
	w.ended(two)
	assert.Equal(t, seen{"three", []string{"one"}}, <-reported)
	assert.Equal(t, seen{"four", []string{"one", "three"}}, <-reported)
	assert.Equal(t, seen{"2", []string{"one", "three", "four"}}, <-reported)
	queueIs(t, c.ask("session.queue", `{"session_id":"`+first+`"}`))

	// What has begun is not changed, and the conversation goes on behind what ran last.
	for _, e := range []wireError{
		c.fail("session.editQueued", `{"session_id":"`+two+`","query":"late"}`),
		c.fail("session.moveQueued", `{"session_id":"`+two+`"}`),
	} {
		assert.Equal(t, "bad_state", e.Data["kind"])
		assert.Contains(t, e.Message, "completed")
	}
	c.fail("session.editQueued", `{"session_id":"`+two+`","query":" "}`)
	five := follow("last", "five", "")
	w.ended(five)
	assert.Equal(t, seen{"five", []string{"one", "three", "four", "2"}}, <-reported)
	var r struct{ Events []struct{ Content string } }
	require.NoError(t, json.Unmarshal(c.ask("getConversation", `{"session_id":"`+five+`"}`), &r))
	assert.Equal(t, []struct{ Content string }{{"one"}, {"three"}, {"four"}, {"2"}, {"five"}}, r.Events)
	state := object(t, c.ask("getSessionState", `{"session_id":"`+five+`"}`))["session"].(map[string]any)
	assert.Equal(t, two, state["parent_session_id"])
	var leaves struct{ Sessions []struct{ ID string } }
	require.NoError(t, json.Unmarshal(c.ask("getSessionLeaves", `{}`), &leaves))
	assert.Equal(t, []struct{ ID string }{{five}}, leaves.Sessions)
}
