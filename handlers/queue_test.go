package handlers_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

// queueIs asserts which prompts wait, as a result of a method tells it.
func queueIs(t *testing.T, result json.RawMessage, want ...string) {
	t.Helper()
	var r protocol.QueueResult
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
		reported <- seen{x.Prompt, x.transcript(ctx)}
		select {
		case <-release:
		case <-ctx.Done():
		}
		return done
	})
	c, other := w.connect(frame.LSP), w.connect(frame.LSP)
	other.ask("Subscribe", `{"event_types":["queue_changed"]}`)
	follow := func(id, query string, more string) string {
		return c.sessionID("continueSession", `{"session_id":"`+id+`","query":"`+query+`"`+more+`}`)
	}
	first := c.launch(`{"query":"one"}`)
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
	r := answer[struct{ Events []struct{ Content string } }](c, "getConversation", `{"session_id":"`+five+`"}`)
	assert.Equal(t, []struct{ Content string }{{"one"}, {"three"}, {"four"}, {"2"}, {"five"}}, r.Events)
	state := c.state(five)
	assert.Equal(t, two, state["parent_session_id"])
	leaves := answer[struct{ Sessions []struct{ ID string } }](c, "getSessionLeaves", `{}`)
	assert.Equal(t, []struct{ ID string }{{five}}, leaves.Sessions)
}
