package relay_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/relay"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
	"github.com/duet-rpc/duet-rpc/server"
)

// journal is a log of events that outlives its hubs.
type journal struct {
	testkit.Witness // guards the fields below
	last            int64
	grown           chan struct{}
	subs            int      // the number of subscriptions, for ids
	asked           []string // the params of each subscription
	methods         []string // of the other calls
	live            map[string]context.CancelFunc
}

func newJournal() *journal {
	return &journal{grown: make(chan struct{}), live: make(map[string]context.CancelFunc)}
}

func (j *journal) append() {
	j.Lock()
	defer j.Unlock()
	j.last++
	close(j.grown)
	j.grown = make(chan struct{})
}

func (j *journal) called(method string) {
	j.Lock()
	defer j.Unlock()
	j.methods = append(j.methods, method)
}

type subscribeParams struct {
	ID    string `json:"subscription_id,omitempty"`
	Since *int64 `json:"since,omitempty"`
	Label string `json:"label,omitempty"`
}

type unsubscribeParams struct {
	ID string `json:"subscription_id"`
}

// server returns a hub that serves the log.
func (j *journal) server() *server.Server {
	reg := server.NewRegistry()
	server.HandleRaw(reg, "echo", func(_ context.Context, params json.RawMessage) (json.RawMessage, error) { return params, nil })
	server.Handle(reg, "daemon.status", func(context.Context, struct{}) (any, error) {
		j.called("daemon.status")
		return 1, nil
	})
	server.Handle(reg, "task.stats", func(context.Context, struct{}) (any, error) { j.called("task.stats"); return 1, nil })
	server.Handle(reg, "event.subscribe", j.subscribe)
	server.Handle(reg, "Subscribe", j.subscribe)
	server.Handle(reg, "event.unsubscribe", func(_ context.Context, p unsubscribeParams) (any, error) {
		j.Lock()
		defer j.Unlock()
		j.methods = append(j.methods, "event.unsubscribe")
		stop := j.live[p.ID]
		if stop == nil {
			return nil, server.NewError(-32603, "no such subscription", map[string]string{"kind": "subscription_not_found"})
		}
		stop()
		delete(j.live, p.ID)
		return map[string]bool{"success": true}, nil
	})
	return server.New(reg, server.Options{})
}

func (j *journal) subscribe(ctx context.Context, p subscribeParams) (any, error) {
	conn := server.ConnFrom(ctx)
	defer j.Note(func() {})
	j.Lock()
	defer j.Unlock()
	asked := p
	asked.ID = ""
	raw, _ := json.Marshal(asked)
	j.asked = append(j.asked, string(raw))
	cursor := j.last
	if p.Since != nil {
		cursor = *p.Since
		if cursor > j.last {
			return nil, server.InvalidParam(server.ParamError{Param: "since", Expected: "a seq of this log", Received: "one after its end"})
		}
	}
	j.subs++
	id := cmp.Or(p.ID, fmt.Sprintf("sub_%d", j.subs))
	alive, stop := context.WithCancel(context.Background())
	j.live[id] = stop
	server.AfterReply(ctx, func() { go j.tail(alive, conn, id, p.Label, cursor) })
	return map[string]any{"subscription_id": id, "message": "Subscription established.", "seq": cursor}, nil
}

func (j *journal) tail(ctx context.Context, conn *server.Conn, id, label string, cursor int64) {
	send := func(method, params string) error {
		return conn.Send(ctx, json.RawMessage(fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":%s}`, method, params)))
	}
	for {
		j.Lock()
		last, grown := j.last, j.grown
		j.Unlock()
		for ; cursor < last; cursor++ {
			if send("event", fmt.Sprintf(`{"subscription_id":%q,"seq":%d,"kind":"x","data":{"subscription_id":%q,"label":%q}}`, id, cursor+1, "decoy", label)) != nil {
				return
			}
		}
		if label != "" && send("heartbeat", fmt.Sprintf(`{"subscription_id":%q,"type":"heartbeat"}`, id)) != nil {
			return
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return
		case <-conn.Done():
			return
		}
	}
}

func (j *journal) methodsCalled() string {
	j.Lock()
	defer j.Unlock()
	return strings.Join(j.methods, " ")
}

// nextEvent returns the next message that is not a heartbeat.
func (s *setting) nextEvent() string {
	s.t.Helper()
	for {
		if m := s.next(); !strings.Contains(m, `"heartbeat"`) {
			return m
		}
	}
}

type eventMessage struct {
	Method string
	Params struct {
		SubscriptionID string `json:"subscription_id"`
		Seq            int64
		Data           struct{ Label string }
	}
}

// Hubs die one after the other during a flood of events. Each subscription gets all events
// once, in order, under its id.
func TestSubscriptionsSurviveTakeovers(t *testing.T) {
	const hubs = 8
	total := int64(takeoverEvents)
	for _, kind := range []string{"pipe", "socket"} {
		t.Run(kind, func(t *testing.T) {
			j := newJournal()
			for range 100 {
				j.append()
			}
			s := start(t)
			serve := func() func() {
				if kind == "pipe" {
					return s.serve(j.server())
				}
				ours, theirs := sockets(t)
				s.hubs <- ours
				return serveOn(t, j.server(), theirs)
			}
			kill := serve()
			ids := map[string]string{}
			last := map[string]int64{"all": 0, "new": 100}
			note := func(m string) {
				var e eventMessage
				require.NoError(t, json.Unmarshal([]byte(m), &e))
				require.Contains(t, []string{"event", "heartbeat"}, e.Method, "%s", m)
				if e.Method == "heartbeat" {
					require.Contains(t, []string{ids["all"], ids["new"]}, e.Params.SubscriptionID)
					return
				}
				label := e.Params.Data.Label
				require.Equal(t, ids[label], e.Params.SubscriptionID)
				require.Equal(t, last[label]+1, e.Params.Seq, "%s", m)
				last[label]++
			}
			for i, label := range []string{"all", "new"} {
				params := `[{"label":"all","since":0}]`
				if label == "new" {
					params = `{"label":"new"}`
				}
				s.send(request(i, "event.subscribe", params))
				for ids[label] == "" {
					m := s.next()
					if strings.Contains(m, `"result"`) {
						require.NoError(t, json.Unmarshal(testkit.JSONMember(t, m, "result.subscription_id"), new(string)))
						ids[label] = strings.Trim(string(testkit.JSONMember(t, m, "result.subscription_id")), `"`)
						continue
					}
					note(m)
				}
			}
			go func() {
				for range total - 100 {
					j.append()
				}
			}()
			for n := 1; last["all"] < total || last["new"] < total; {
				note(s.next())
				if n < hubs && last["all"]+last["new"] > int64(n)*2*total/hubs {
					n++
					kill()
					kill = serve()
				}
			}
			assert.Equal(t, response(9, `1`), s.askUntilServed(request(9, "echo", `1`)))
			s.send(request(10, "event.unsubscribe", `{"subscription_id":"`+ids["all"]+`"}`))
			assert.Equal(t, response(10, `{"success":true}`), s.nextEvent())
			s.send(`[` + request(11, "event.unsubscribe", `{"subscription_id":"`+ids["new"]+`"}`) + `,` + request(12, "event.unsubscribe", `{"subscription_id":"sub_x"}`) + `]`)
			m := s.nextEvent()
			assert.Contains(t, m, `[`+response(11, `{"success":true}`))
			assert.Contains(t, m, `"kind":"subscription_not_found"`)
			j.Lock()
			before := len(j.asked)
			j.Unlock()
			kill()
			serve()
			assert.Equal(t, response(13, `1`), s.askUntilServed(request(13, "echo", `1`)))
			assert.Len(t, j.asked, before, "the relay does not restore an ended subscription")
		})
	}
}

// A subscription without events is restored from its first position in the log.
func TestQuietSubscriptionIsRestored(t *testing.T) {
	j := newJournal()
	for range 5 {
		j.append()
	}
	s := start(t)
	kill := s.serve(j.server())
	s.send(`[` + request(1, "event.subscribe", `{ "other":[1] }`) + `,` + request(2, "Subscribe", `null`) + `]`)
	assert.Contains(t, s.nextEvent(), `[{"jsonrpc":"2.0","id":1,"result":{`)
	s.await("connected")
	kill()
	s.await("lost")
	j.append() // without a hub
	s.serve(j.server())
	assert.Contains(t, s.nextEvent(), `"seq":6`)
	assert.Contains(t, s.nextEvent(), `"seq":6`)
	assert.ElementsMatch(t, []string{`{}`, `{}`, `{"since":5}`, `{"since":5}`}, j.asked)
	assert.Empty(t, j.methodsCalled(), "no client becomes a receiver of broadcasts")
}

// If the next hub has another log, the subscription continues at its end.
func TestNextHubHasAnotherLog(t *testing.T) {
	j, other := newJournal(), newJournal()
	for range 5 {
		j.append()
	}
	s := start(t)
	kill := s.serve(j.server())
	s.send(request(1, "event.subscribe", `{"since":4}`))
	assert.Contains(t, s.nextEvent(), `"result"`)
	assert.Contains(t, s.nextEvent(), `"seq":5`)
	kill()
	s.serve(other.server())
	s.askUntilServed(request(2, "echo", `1`))
	other.Await(t, func() bool { // until the second attempt restores it
		other.Lock()
		defer other.Unlock()
		return len(other.asked) == 2
	}, "event.subscribe without since")
	other.append()
	assert.Contains(t, s.nextEvent(), `"seq":1`)
}

func TestBroadcastMembershipIsRestored(t *testing.T) {
	for _, c := range []struct{ called, want string }{
		{`{"jsonrpc":"2.0","id":1,"method":"task.stats"}`, "task.stats task.stats"},
		{`[{"jsonrpc":"2.0","id":1,"method":"task\u002estats"}]`, "task.stats task.stats"},
		{`{"jsonrpc":"2.0","id":1,"method":"daemon.status"}`, "daemon.status daemon.status"},
		{`{"jsonrpc":"2.0","id":1,"method":"echo"}`, ""},
	} {
		j := newJournal()
		s := start(t)
		kill := s.serve(j.server())
		s.ask(c.called)
		kill()
		s.serve(j.server())
		assert.Equal(t, response(2, `1`), s.askUntilServed(request(2, "echo", `1`)), "the relay keeps the answer to its own call")
		assert.Equal(t, c.want, j.methodsCalled())
		s.end.Close()
		require.NoError(t, s.returned())
	}
}

// Every hub learns that the editor does not trust the workspace, before any other message, until
// the editor reports otherwise.
func TestEveryHubLearnsRestrictedMode(t *testing.T) {
	const reported = `"method":"initialize","params":{"workspaceTrusted":false}`
	for name, c := range map[string]struct {
		params []string // of initialize
		early  bool     // before the first hub
		want   bool
	}{
		"false":                      {[]string{`{"workspaceTrusted":false}`}, false, true},
		"false, by position":         {[]string{`[{"workspaceTrusted":false}]`}, false, true},
		"true":                       {[]string{`{"workspaceTrusted":true}`}, false, false},
		"not said":                   {[]string{`{}`}, false, false},
		"false and then not said":    {[]string{`{"workspaceTrusted":false}`, `{}`}, false, true},
		"false and then true":        {[]string{`{"workspaceTrusted":false}`, `{"workspaceTrusted":true}`}, false, false},
		"false before there is one":  {[]string{`{"workspaceTrusted":false}`}, true, true},
		"true after it, there, too":  {[]string{`{"workspaceTrusted":false}`, `{"workspaceTrusted":true}`}, true, false},
		"not said before there is 1": {[]string{`{}`}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, func(o *relay.Options) {
				if c.early {
					o.Early = func(m *frame.Message) ([]byte, bool) {
						return []byte(response(string(m.ID), `"early"`)), string(m.Method) == `"initialize"`
					}
				}
			})
			var hub *wire
			if !c.early {
				hub = s.hub()
			}
			for i, params := range c.params {
				s.send(request(i, "initialize", params))
				if !c.early {
					assert.Equal(t, request(i, "initialize", params), hub.next())
					hub.send(response(i, `0`))
				}
				s.next()
			}
			if hub != nil {
				hub.end.Close()
				s.await("lost")
			}
			s.send(request(9, "x", `[]`))
			hub = s.hub()
			first := hub.next()
			if c.want {
				assert.Contains(t, first, reported)
				first = hub.next()
			}
			assert.Equal(t, request(9, "x", `[]`), first)
			hub.send(response(9, `0`))
			s.next()
			s.end.Close()
			hub.end.Close()
			require.NoError(t, s.returned())
		})
	}
}

// If the editor ends a subscription during the restore, the relay ends it at the next hub too.
func TestUnsubscribeDuringATakeover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		hub := s.hub()
		s.send(request(1, "event.subscribe", `{"since":3}`))
		hub.next()
		go hub.send(response(1, `{"subscription_id":"one","seq":3}`))
		s.next()
		hub.end.Close()
		s.await("lost")
		s.send(request(2, "Unsubscribe", `{"subscription_id":"one"}`), request(3, "x", `[]`))
		hub = s.hub()
		restore := hub.next()
		assert.Equal(t, `{"since":3,"subscription_id":"one"}`, string(testkit.JSONMember(t, restore, "params")))
		assert.Equal(t, request(2, "Unsubscribe", `{"subscription_id":"one"}`), hub.next())
		assert.Equal(t, request(3, "x", `[]`), hub.next())
		restored := string(testkit.JSONMember(t, restore, "id"))
		hub.send(response(restored, `{"subscription_id":"one"}`), `{"jsonrpc":"2.0","method":"event","params":{"subscription_id":"one","seq":3,"event":{}}}`, // the editor has this event
			`{"jsonrpc":"2.0","method":"event","params":{"event":{"a":1},"seq":4,"subscription_id":"one"}}`, response(2, `1`))
		assert.Equal(t, `{"jsonrpc":"2.0","method":"event","params":{"event":{"a":1},"seq":4,"subscription_id":"one"}}`, s.next())
		assert.Equal(t, response(2, `1`), s.next())
		hub.end.Close()
		s.await("lost")
		hub = s.hub()
		s.send(request(4, "x", `[]`))
		assert.Equal(t, request(4, "x", `[]`), hub.next(), "the relay does not restore the subscription again")
	})
}

// restoring starts a relay that has lost its hub after a subscription. It returns the next hub, and
// the id of the request that restores the subscription there.
func restoring(t *testing.T) (s *setting, hub *wire, id string) {
	s = start(t)
	hub = s.hub()
	s.send(request(1, "event.subscribe", `{"since":3}`))
	hub.next()
	go hub.send(response(1, `{"subscription_id":"one","seq":3}`))
	s.next()
	hub.end.Close()
	s.await("lost")
	hub = s.hub()
	return s, hub, string(testkit.JSONMember(t, hub.next(), "id"))
}

// The relay renews a subscription if the next hub has another log. It ends the renewed one if the
// editor has ended the old one.
func TestUnsubscribeBeforeRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, hub, id := restoring(t)
		s.send(request(2, "Unsubscribe", `{"subscription_id":"one"}`))
		assert.Equal(t, request(2, "Unsubscribe", `{"subscription_id":"one"}`), hub.next())
		go hub.send(`{"jsonrpc":"2.0","id":`+id+`,"error":{"code":-32602,"message":"m","data":{"param":"since"}}}`, `{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"m"}}`)
		assert.Contains(t, s.next(), `"error"`)
		again := hub.next()
		assert.Equal(t, `{"subscription_id":"one"}`, string(testkit.JSONMember(t, again, "params")))
		go hub.send(response(string(testkit.JSONMember(t, again, "id")), `{"subscription_id":"one"}`), `{"jsonrpc":"2.0","method":"event","params":{"subscription_id":"one","seq":1,"event":{}}}`, `{"jsonrpc":"2.0","method":"x"}`)
		end := hub.next()
		assert.Equal(t, `{"subscription_id":"one"}`, string(testkit.JSONMember(t, end, "params")))
		assert.Contains(t, end, `"event.unsubscribe"`)
		assert.Equal(t, `{"jsonrpc":"2.0","method":"x"}`, s.next(), "the editor gets no event of the subscription")
	})
}

// A hub that is about to end refuses to restore subscriptions. The relay asks the next hub.
func TestEndingHubRefusesSubscription(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, hub, id := restoring(t)
		go hub.send(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32010,"message":"Subsystem unavailable: it is ending","data":{"kind":"subsystem_unavailable"}}}`)
		synctest.Wait()
		hub.end.Close()
		s.await("lost")
		hub = s.hub()
		again := hub.next()
		assert.Equal(t, `{"since":3,"subscription_id":"one"}`, string(testkit.JSONMember(t, again, "params")))
		hub.send(response(string(testkit.JSONMember(t, again, "id")), `{"subscription_id":"one"}`),
			`{"jsonrpc":"2.0","method":"event","params":{"subscription_id":"one","seq":4,"event":{}}}`)
		assert.Equal(t, `{"jsonrpc":"2.0","method":"event","params":{"subscription_id":"one","seq":4,"event":{}}}`, s.next())
	})
}
