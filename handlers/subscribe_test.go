package handlers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/dialect/humanlayer"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
	"github.com/duet-rpc/duet-rpc/server"
)

func TestEventsAsNotifications(t *testing.T) {
	w := newWorld(t, quick)
	c := w.connect(frame.LSP)
	r := object(t, c.ask("Subscribe", `{"event_types":["session_status_changed"]}`))
	assert.Regexp(t, `^sub_[0-9a-f-]{36}$`, r["subscription_id"])
	assert.Equal(t, "Subscription established. Waiting for events...", r["message"])
	assert.Equal(t, 0.0, r["seq"], "the log is empty")
	assert.Equal(t, 0.0, object(t, c.ask("Subscribe", `{"since":0,"event_types":["usage"]}`))["seq"])
	session := c.launch(`{"query":"x"}`)
	last, status := 0.0, ""
	for status != "completed" {
		m := c.next()
		assert.Equal(t, "event", m.Method)
		params := object(t, m.Params)
		assert.Equal(t, r["subscription_id"], params["subscription_id"])
		assert.Greater(t, params["seq"].(float64), last)
		last = params["seq"].(float64)
		event := params["event"].(map[string]any)
		assert.Equal(t, "session_status_changed", event["type"])
		assert.NotContains(t, event, "seq")
		assert.Contains(t, event, "timestamp")
		data := event["data"].(map[string]any)
		assert.Equal(t, session, data["session_id"])
		status = data["new_status"].(string)
	}
	assert.JSONEq(t, `{"success":true}`, string(c.ask("Unsubscribe", `{"subscription_id":"`+r["subscription_id"].(string)+`"}`)))
	c.failsAs("Unsubscribe", `{"subscription_id":"`+r["subscription_id"].(string)+`"}`, -32603, "subscription_not_found")
	assert.GreaterOrEqual(t, object(t, c.ask("Subscribe", `{"event_types":["usage"]}`))["seq"], last, "where the log is now")
}

func TestEventsAsLines(t *testing.T) {
	w := newWorld(t, quick)
	w.ended(must(w.hub.Launch(context.Background(), hub.LaunchSpec{Prompt: "before"}))(t).HumanLayerSession)
	c := w.connect(frame.NDJSON)
	id := c.send("Subscribe", `{"since":0,"event_types":["session_status_changed"]}`)
	first := c.next()
	assert.Equal(t, id, string(first.ID), "the reply comes before the events")
	assert.Len(t, object(t, first.Result), 2, "HumanLayer's reply, nothing more: %s", first.Result)
	last := 0.0
	for status := ""; status != "completed"; {
		m := c.next()
		assert.Empty(t, m.Method)
		assert.Nil(t, m.ID)
		result := object(t, m.Result)
		assert.Len(t, result, 1, "only the event: %s", m.Result)
		event := result["event"].(map[string]any)
		assert.Greater(t, event["seq"].(float64), last)
		last = event["seq"].(float64)
		status = event["data"].(map[string]any)["new_status"].(string)
	}
	c.ask("listSessions", "") // the connection still serves requests
}

func TestASubscriptionBelongsToItsConnection(t *testing.T) {
	w := newWorld(t, quick)
	one, other := w.connect(frame.LSP), w.connect(frame.LSP)
	id := testkit.JSONAs[string](t, one.ask("Subscribe", ""), "subscription_id")
	assert.Equal(t, -32603, other.fail("Unsubscribe", `{"subscription_id":"`+id+`"}`).Code)
	assert.JSONEq(t, `{"success":true}`, string(one.ask("Unsubscribe", `{"subscription_id":"`+id+`"}`)))
	assert.Equal(t, "session_not_found", one.fail("Subscribe", `{"session_id":"nope"}`).Data["kind"])
	one.rejects("Subscribe", `{"since":1000000}`, "since")
}

// A client for another version or another server may name unknown event types. It receives the
// known types, or nothing without any, as from HumanLayer's own daemon.
func TestUnknownEventTypesAreIgnored(t *testing.T) {
	for _, f := range []frame.Framing{frame.LSP, frame.NDJSON} {
		t.Run(f.String(), func(t *testing.T) {
			w := newWorld(t, quick)
			some, none := w.connect(f), w.connect(f)
			some.ask("Subscribe", `{"event_types":["session_forgotten","session_status_changed",""]}`)
			r := object(t, none.ask("Subscribe", `{"since":0,"event_types":["session_forgotten"]}`))
			assert.Regexp(t, `^sub_`, r["subscription_id"])
			session := none.launch(`{"query":"x"}`)
			for status := ""; status != "completed"; {
				m := some.next()
				raw := m.Params
				if f == frame.NDJSON {
					raw = m.Result
				}
				event := testkit.JSONAs[map[string]any](t, raw, "event")
				assert.Equal(t, "session_status_changed", event["type"])
				status = event["data"].(map[string]any)["new_status"].(string)
			}
			w.ended(session)
			id := none.send("listSessions", "")
			assert.Equal(t, id, string(none.next().ID), "no event came before the reply")
		})
	}
}

// HumanLayer's terminal client of June 2025 subscribes with names that its own daemon never had. It
// receives the events under their true names.
func TestFormerNamesOfEventTypes(t *testing.T) {
	w := newWorld(t, asking)
	c, asks := w.connect(frame.NDJSON), w.connect(frame.NDJSON)
	c.ask("Subscribe", `{"event_types":["approval_requested","approval_responded","session_updated"]}`)
	session := asks.launch(`{"query":"permit:1"}`)
	var came []string
	for status := ""; status != "completed"; {
		event := testkit.JSONAs[map[string]any](t, c.next().Result, "event")
		data := event["data"].(map[string]any)
		came = append(came, event["type"].(string))
		switch event["type"] {
		case "new_approval":
			asks.ask("sendDecision", fmt.Sprintf(`{"call_id":%q,"type":"function_call","decision":"approve"}`, data["approval_id"]))
		case "session_status_changed":
			status = data["new_status"].(string)
		}
	}
	assert.Subset(t, []string{"new_approval", "approval_resolved", "session_status_changed"}, came)
	assert.Subset(t, came, []string{"new_approval", "approval_resolved", "session_status_changed"})
	w.ended(session)
}

func TestASubscriptionToATurnOfASession(t *testing.T) {
	w := newWorld(t, quick)
	c := w.connect(frame.LSP)
	launch := func(session string) map[string]any {
		id := testkit.JSONAs[string](t, c.ask("execute_prompt", `{"session_id":"`+session+`","prompt":"x"}`), "task_id")
		return c.state(id)
	}
	one, two, other := launch("one"), launch("one"), launch("other")
	subscribe := func(session, turn any) string {
		return fmt.Sprintf(`{"session_id":%q,"run_id":%q,"since":0}`, session, turn)
	}
	c.rejects("Subscribe", subscribe(one["id"], other["run_id"]), "run_id")
	assert.Equal(t, "session_not_found", c.fail("Subscribe", subscribe(one["id"], "nope")).Data["kind"])
	c.ask("Subscribe", subscribe("one", two["run_id"]))
	for {
		var p struct {
			Event struct {
				Type string
				Data struct {
					TurnID string `json:"run_id"`
					Status string `json:"new_status"`
				}
			}
		}
		m := c.next()
		require.NoError(t, json.Unmarshal(m.Params, &p))
		if p.Event.Data.TurnID != "" {
			assert.Equal(t, two["run_id"], p.Event.Data.TurnID, "only the turn's own")
		}
		if p.Event.Data.Status == "completed" {
			return
		}
	}
}

func TestPendingApprovalsAreTold(t *testing.T) {
	w := newWorld(t, asking)
	c := w.connect(frame.LSP)
	session := c.launch(`{"query":"edit"}`)
	a := pending(t, w, c, session)
	c.ask("Subscribe", `{"event_types":["new_approval","approval_resolved"]}`)
	event := func() (string, map[string]any) {
		e := testkit.JSONAs[map[string]any](t, c.next().Params, "event")
		return e["type"].(string), e["data"].(map[string]any)
	}
	kind, data := event()
	assert.Equal(t, "new_approval", kind)
	assert.Equal(t, a["id"], data["approval_id"])
	c.ask("sendDecision", `{"call_id":"toolu_1","decision":"deny","comment":"no"}`)
	kind, data = event()
	assert.Equal(t, "approval_resolved", kind)
	assert.Equal(t, false, data["approved"])
	w.ended(session)
}

// A client that subscribes endlessly, and may not read, costs no more than 64 subscriptions.
func TestSubscriptionsOfAConnectionAreLimited(t *testing.T) {
	w := newWorld(t, quick)
	for _, framing := range []frame.Framing{frame.LSP, frame.NDJSON} {
		c, other := w.connect(framing), w.connect(framing)
		var ids []string
		for range 64 {
			ids = append(ids, testkit.JSONAs[string](t, c.ask("Subscribe", `{"event_types":["usage"]}`), "subscription_id"))
		}
		for range 3 {
			e := c.failsAs("Subscribe", `{}`, -32040, "too_many_subscriptions")
			assert.Contains(t, e.Message, "Unsubscribe")
		}
		other.ask("Subscribe", `{"event_types":["usage"]}`)
		c.ask("Unsubscribe", `{"subscription_id":"`+ids[7]+`"}`)
		assert.Equal(t, "session_not_found", c.fail("Subscribe", `{"session_id":"nope"}`).Data["kind"], "a failed subscription takes no place")
		c.ask("Subscribe", `{"event_types":["usage"]}`)
		assert.Equal(t, "too_many_subscriptions", c.fail("Subscribe", `{}`).Data["kind"])
	}
}

// A client may choose the id of a subscription, to keep it with a new hub.
func TestSubscriptionGetsTheIDThatAClientChooses(t *testing.T) {
	w := newWorld(t, quick)
	one, other := w.connect(frame.LSP), w.connect(frame.LSP)
	for _, c := range []*client{one, other} {
		assert.Equal(t, "mine", testkit.JSONAs[string](t, c.ask("Subscribe", `{"subscription_id":"mine"}`), "subscription_id"))
	}
	assert.Equal(t, "subscription_id", one.fail("Subscribe", `{"subscription_id":"mine"}`).Data["param"])
	assert.Equal(t, -32602, one.fail("Subscribe", `{"subscription_id":"`+strings.Repeat("x", 101)+`"}`).Code)
	one.ask("Unsubscribe", `{"subscription_id":"mine"}`)
	assert.Equal(t, "subscription_not_found", one.fail("Unsubscribe", `{"subscription_id":"mine"}`).Data["kind"])
	other.ask("Unsubscribe", `{"subscription_id":"mine"}`)
	one.ask("Subscribe", `{"subscription_id":"mine"}`)
}

// flush waits for connections that do not read until its context ends. The other connections
// receive everything meanwhile.
func TestOneWhoDoesNotReadHoldsUpNobodyAtTheEnd(t *testing.T) {
	w := newWorld(t, quick)
	small := server.New(w.reg, server.Options{MaxQueued: 100}) // after the first event there is no room
	const stuckOnes = 8
	for range stuckOnes {
		ours, end := server.Pipe()
		served := make(chan error, 1)
		go func() { served <- small.Serve(context.Background(), ours, frame.LSP) }()
		defer func() {
			end.Close()
			<-served
		}()
		reader := frame.NewReader(end, frame.LSP, frame.Limits{})
		var reply frame.Message
		for id, method := range []string{"Subscribe", "task.stats"} { // task.stats starts task notifications
			must(end.Write(frame.Append(nil, frame.LSP, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":{}}`, id+1, method))))(t)
			require.NoError(t, reader.Next(&reply))
		}
	}
	c := w.connect(frame.LSP)
	c.ask("task.stats", "")
	c.ask("Subscribe", `{"event_types":["session_status_changed"]}`)
	w.ended(c.launch(`{"query":"x"}`))

	ctx, cancel := context.WithCancel(t.Context())
	flushed := make(chan struct{})
	go func() {
		defer close(flushed)
		w.flush(ctx)
	}()
	for status, reported := "", false; status != "completed" || !reported; {
		switch m := c.next(); m.Method {
		case "event":
			status = testkit.JSONAs[map[string]any](t, m.Params, "event")["data"].(map[string]any)["new_status"].(string)
		case "event.taskCompleted":
			reported = true
		}
	}
	select {
	case <-flushed:
		assert.Fail(t, "flush does not wait for a connection that does not read")
	default:
	}
	cancel()
	<-flushed
}

// The hub merges deltas, so a delta may start within text that a client has already read. The
// length of the message in the delta shows its new part.
func TestWhoReadsAMessageThatIsBeingWrittenHasNothingTwice(t *testing.T) {
	var whole strings.Builder
	more := make(chan struct{})
	w := newWorld(t, func(_ context.Context, x *turn) catalog.ExecutePromptResult {
		for i := range 60 {
			if i%20 == 0 {
				<-more
			}
			piece := fmt.Sprintf("Piece %d 🙂. ", i)
			whole.WriteString(piece)
			x.say(piece)
		}
		<-more
		return done
	})
	c := w.connect(frame.LSP)
	c.ask("Subscribe", `{"event_types":["message_delta"],"delta_interval_ms":1000}`)
	id := c.launch(`{"query":"write"}`)

	written := func() []uint16 {
		r := answer[humanlayer.ConversationResult](c, "getConversation", `{"session_id":"`+id+`"}`)
		last := r.Events[len(r.Events)-1]
		if last.Role != "assistant" {
			return nil
		}
		return utf16.Encode([]rune(last.Content))
	}
	upTo := func(n int) {
		for until := time.Now().Add(patience); !strings.Contains(string(utf16.Decode(written())), fmt.Sprintf("Piece %d ", n)); {
			require.True(t, time.Now().Before(until), "piece %d is not written", n)
		}
	}
	more <- struct{}{}
	upTo(19)
	have := written() // the first piece has come as a delta, most others wait to be merged
	more <- struct{}{}
	upTo(39)
	more <- struct{}{}
	upTo(59)
	want := utf16.Encode([]rune(whole.String()))
	for len(have) < len(want) {
		var d struct {
			Delta  string
			Length int
		}
		require.NoError(t, json.Unmarshal(c.event("message_delta"), &d))
		text := utf16.Encode([]rune(d.Delta))
		require.Equal(t, string(utf16.Decode(want[d.Length-len(text):d.Length])), d.Delta)
		if d.Length > len(have) {
			have = append(have, text[len(text)-(d.Length-len(have)):]...)
		}
	}
	assert.Equal(t, whole.String(), string(utf16.Decode(have)))
	close(more)
	w.ended(id)
}
