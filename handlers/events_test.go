package handlers_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

// eventIn returns the next event of a client, in the native form.
func eventIn(t *testing.T, c *client) protocol.Event {
	t.Helper()
	m := c.next()
	require.Equal(t, "event", m.Method, "%s", m.Params)
	var e protocol.Event
	require.NoError(t, json.Unmarshal(m.Params, &e))
	return e
}

// In both framings an event is a notification, which names its subscription, its session and its turn.
func TestSubscribersGetEventsOfTheirKinds(t *testing.T) {
	for _, framing := range []frame.Framing{frame.LSP, frame.NDJSON} {
		t.Run(framing.String(), func(t *testing.T) {
			w := newWorld(t, quick)
			c := w.connect(framing)
			r := answer[protocol.SubscribeResult](c, "event.subscribe", `{"kinds":["turn.state","turn.forgotten"]}`)
			assert.Regexp(t, `^sub_[0-9a-f-]{36}$`, r.SubscriptionID)
			assert.Equal(t, []string{"turn.forgotten"}, r.Unknown)
			assert.Zero(t, r.Seq, "the log is empty")
			begun := answer[protocol.Started](c, "session.start", `{"prompt":"x"}`)
			var states []domain.State
			last := int64(0)
			for len(states) == 0 || states[len(states)-1] != "completed" {
				e := eventIn(t, c)
				assert.Greater(t, e.Seq, last)
				last = e.Seq
				assert.Equal(t, []any{r.SubscriptionID, "turn.state", int64(1), "1.1", begun.ID}, []any{e.SubscriptionID, e.Kind, e.Session, e.Turn, e.TurnUUID})
				assert.False(t, e.Time.IsZero())
				data, err := protocol.DecodeEvent(e.Kind, e.Data)
				require.NoError(t, err)
				state := data.(*protocol.TurnStateEvent)
				assert.Equal(t, begun.SessionUUID, state.SessionUUID)
				states = append(states, state.State)
			}
			assert.Equal(t, []domain.State{domain.Queued, domain.Starting, domain.Running, domain.Completed}, states)
			assert.JSONEq(t, `{"success":true}`, string(c.ask("event.unsubscribe", `{"subscription_id":"`+r.SubscriptionID+`"}`)))
			c.failsAs("event.unsubscribe", `{"subscription_id":"`+r.SubscriptionID+`"}`, -32050, "subscription_not_found")

			again := answer[protocol.SubscribeResult](c, "event.subscribe", `{"since":0,"kinds":["item.added"],"session":1}`)
			assert.Zero(t, again.Seq)
			e := eventIn(t, c)
			var said protocol.Item
			require.NoError(t, json.Unmarshal(e.Data, &said))
			assert.Equal(t, protocol.Item{Type: protocol.ItemMessage, Role: "user", Text: "x"}, protocol.Item{Type: said.Type, Role: said.Role, Text: said.Text})
		})
	}
}

// A session selects the events of all its turns, a turn only its own.
func TestSubscribersOfASessionOrATurn(t *testing.T) {
	w := newWorld(t, quick)
	c := w.connect(frame.LSP)
	for range 2 {
		w.ended(answer[protocol.Started](c, "session.start", `{"prompt":"x"}`).ID)
	}
	w.ended(answer[protocol.Started](c, "session.prompt", `{"session":1,"prompt":"y"}`).ID)
	turnsOf := func(session string) (turns []string) {
		c := w.connect(frame.LSP)
		defer c.close()
		c.ask("event.subscribe", `{"since":0,"kinds":["turn.state"],"session":`+session+`}`)
		for len(turns) == 0 || turns[len(turns)-1] != "end" {
			e := eventIn(t, c)
			var state protocol.TurnStateEvent
			require.NoError(t, json.Unmarshal(e.Data, &state))
			if state.State != "completed" {
				continue
			}
			turns = append(turns, e.Turn)
			if e.Turn == "1.2" || session == `"1.1"` {
				turns = append(turns, "end")
			}
		}
		return turns
	}
	assert.Equal(t, []string{"1.1", "1.2", "end"}, turnsOf("1"))
	assert.Equal(t, []string{"1.1", "1.2", "end"}, turnsOf(`"last"`))
	assert.Equal(t, []string{"1.1", "end"}, turnsOf(`"1.1"`))
	c.failsAs("event.subscribe", `{"session":"99"}`, -32050, "not_found")
	c.rejects("event.subscribe", `{"since":1000000}`, "since")
	c.rejects("event.subscribe", `{"kinds":"turn.state"}`, "kinds")
	c.rejects("event.subscribe", `{"kinds":["plan"`+strings.Repeat(`,"plan"`, 100)+`]}`, "kinds")
	c.rejects("event.subscribe", `{"kinds":["plan","`+strings.Repeat("x", 101)+`"]}`, "kinds[1]")
	c.rejects("event.subscribe", `{"delta_interval_ms":15}`, "delta_interval_ms")
}

// A subscription of one form does not change the other one of the same connection.
func TestBothFormsOnOneConnection(t *testing.T) {
	w := newWorld(t, quick)
	c := w.connect(frame.LSP)
	native := answer[protocol.SubscribeResult](c, "event.subscribe", `{"kinds":["change.decided"]}`)
	theirs := answer[protocol.SubscribeResult](c, "Subscribe", `{"event_types":["session_status_changed"]}`)
	assert.NotEqual(t, native.SubscriptionID, theirs.SubscriptionID)
	answer[protocol.Started](c, "session.start", `{"prompt":"x"}`)
	m := c.next()
	assert.Contains(t, string(m.Params), `"event":{"type":"session_status_changed"`)
}
