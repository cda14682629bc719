package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/client/eventstream"
	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// These are the tests of package eventstream, and of the streams of a Client.

// seen collects events.
type seen struct {
	testkit.Witness // guards events
	events          []eventstream.Event
}

func (s *seen) add(e eventstream.Event) { s.Note(func() { s.events = append(s.events, e) }) }

// await waits until the last event has come.
func (s *seen) await(t *testing.T, last int64) {
	t.Helper()
	s.Await(t, func() bool { return s.last() == last }, fmt.Sprintf("the event %d", last))
}

func (s *seen) seqs() (seqs []int64) {
	s.Lock()
	defer s.Unlock()
	for _, e := range s.events {
		seqs = append(seqs, e.Seq)
	}
	return seqs
}

func (s *seen) last() int64 {
	if seqs := s.seqs(); len(seqs) > 0 {
		return seqs[len(seqs)-1]
	}
	return 0
}

// upTo returns from, from+1, … to.
func upTo(from, to int64) (seqs []int64) {
	for n := from; n <= to; n++ {
		seqs = append(seqs, n)
	}
	return seqs
}

func since(n int64) *int64 { return &n }

var framings = []frame.Framing{frame.NDJSON, frame.LSP}

func eventServer(t *testing.T) (*aServer, *eventLog) {
	g, reg := newEventLog(), standard()
	g.register(reg)
	return serve(t, reg), g
}

func TestEvents(t *testing.T) {
	ctx := context.Background()
	for _, f := range framings {
		t.Run(f.String(), func(t *testing.T) {
			s, g := eventServer(t)
			g.add("before", "plan")
			c := dial(t, client.Socket(s.path), client.WithFraming(f))
			var got seen
			sub := subscribe(t, c, eventstream.Options{Kinds: []string{"plan", "x"}, Session: "12", Since: since(1)}, got.add)
			g.add("x")
			got.await(t, 3)
			assert.Equal(t, []eventstream.Event{
				{Kind: "plan", Time: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), Seq: 2, Data: json.RawMessage(`{"n":2}`)},
				{Kind: "x", Time: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), Seq: 3, Data: json.RawMessage(`{"n":3}`)},
			}, got.events)
			assert.Equal(t, []string{`{"kinds":["plan","x"],"session":"12","since":1}`}, g.asked)
			require.NoError(t, c.Call(ctx, "echo", 1, nil), "the connection serves on")
			assert.NoError(t, sub.Err())

			require.NoError(t, sub.Close())
			assert.EqualValues(t, 3, sub.Seq(), "that of the last")
			assert.Zero(t, g.open(), "the server knows")
			assert.NoError(t, sub.Err())
			g.add("after")
			require.NoError(t, c.Call(ctx, "echo", 1, nil))
			assert.Equal(t, []int64{2, 3}, got.seqs())

			// Another one begins from now, and ends with the client.
			sub = subscribe(t, c, eventstream.Options{}, got.add)
			g.add("now")
			got.await(t, 5)
			require.NoError(t, c.Close())
			<-sub.Done()
			assert.ErrorIs(t, sub.Err(), client.ErrClosed)
		})
	}
}

func TestSubscriptionsOfAConnection(t *testing.T) {
	for _, f := range framings {
		t.Run(f.String(), func(t *testing.T) {
			s, g := eventServer(t)
			c := dial(t, client.Socket(s.path), client.WithFraming(f))
			var one, other seen
			subscribe(t, c, eventstream.Options{}, one.add)
			g.add("a")
			one.await(t, 1)
			second := subscribe(t, c, eventstream.Options{Since: since(0)}, other.add)
			g.add("b")
			one.await(t, 2)
			other.await(t, 2)
			require.NoError(t, second.Close())
			g.add("c")
			one.await(t, 3)
			assert.Equal(t, upTo(1, 3), one.seqs())
			assert.Equal(t, upTo(1, 2), other.seqs())
			require.NoError(t, c.Close())
			g.Await(t, func() bool { return g.open() == 0 }, "the end of the connection")
		})
	}
}

func TestSubscriptionsThatTheServerRefuses(t *testing.T) {
	ctx := context.Background()
	s, g := eventServer(t)
	c := dial(t, client.Socket(s.path))
	_, err := eventstream.Subscribe(ctx, c, eventstream.Options{Session: "nope"}, func(eventstream.Event) {})
	assert.ErrorIs(t, err, client.Kind("not_found"))
	// A server that has another log after its restart.
	g.add("a", "b")
	var got seen
	sub := subscribe(t, c, eventstream.Options{Since: since(0)}, got.add)
	got.await(t, 2)
	s.stop()
	g.Lock()
	g.events = nil
	g.Unlock()
	s.start()
	<-sub.Done()
	var e *client.Error
	require.ErrorAs(t, sub.Err(), &e)
	assert.EqualValues(t, -32602, e.Code)
}

// Events continue while the server is stopped and started again, many times: none is lost, none
// comes twice.
func TestEventsOverReconnects(t *testing.T) {
	for _, f := range framings {
		t.Run(f.String(), func(t *testing.T) {
			s, g := eventServer(t)
			c := dial(t, client.Socket(s.path), client.WithFraming(f))
			var got seen
			subscribe(t, c, eventstream.Options{Since: since(0)}, got.add)
			var writer sync.WaitGroup
			stop := make(chan struct{})
			writer.Go(func() {
				tick := time.NewTicker(time.Millisecond)
				defer tick.Stop()
				for {
					select {
					case <-stop:
						return
					case <-tick.C:
						g.add("x", "y", "z")
					}
				}
			})
			for range 5 {
				before := got.last()
				got.Await(t, func() bool { return got.last() > before+20 }, "events after a reconnect")
				s.stop()
				s.start()
			}
			close(stop)
			writer.Wait()
			g.Lock()
			total := int64(len(g.events))
			g.Unlock()
			got.await(t, total)
			assert.Equal(t, upTo(1, total), got.seqs())
		})
	}
}

// Events before the first one received are not lost.
func TestASubscriptionWithoutEventsOverAReconnect(t *testing.T) {
	s, g := eventServer(t)
	g.add("old")
	c := dial(t, client.Socket(s.path))
	var got seen
	subscribe(t, c, eventstream.Options{}, got.add)
	s.stop()
	g.add("meanwhile")
	s.start()
	got.await(t, 2)
	assert.Equal(t, []int64{2}, got.seqs())
}

// A slow handler still gets all events.
func TestEventsThatHaveNoRoomAreFetchedAgain(t *testing.T) {
	for _, f := range framings {
		t.Run(f.String(), func(t *testing.T) {
			s, g := eventServer(t)
			c := dial(t, client.Socket(s.path), client.WithFraming(f), client.WithQueue(10))
			var got seen
			release := make(chan struct{})
			var once sync.Once
			_, err := eventstream.Subscribe(context.Background(), c, eventstream.Options{}, func(e eventstream.Event) {
				once.Do(func() { <-release })
				got.add(e)
			})
			require.NoError(t, err)
			const total = 100
			g.add(slices.Repeat([]string{"x"}, total)...)
			g.Await(t, func() bool {
				g.Lock()
				defer g.Unlock()
				return g.sent == total
			}, "the last event on its way")
			require.NoError(t, c.Call(context.Background(), "echo", 1, nil), "the reader is not held up")
			close(release)
			got.await(t, total)
			assert.Equal(t, upTo(1, total), got.seqs())
			assert.Zero(t, c.Dropped())
			g.Lock()
			assert.Greater(t, len(g.asked), 1)
			g.Unlock()
			assert.Equal(t, 1, g.open())
		})
	}
}

// event is a notification of a subscription.
func event(id, kind string, seq int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"event","params":{"subscription_id":%q,"seq":%d,"kind":%q,"data":{}}}`, id, seq, kind)
}

func TestEventsOverConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c, e := dialFake(t)
		var got seen
		subscribed := make(chan error, 1)
		var sub *eventstream.Subscription
		go func() {
			var err error
			sub, err = eventstream.Subscribe(context.Background(), c, eventstream.Options{Heartbeats: true}, got.add)
			subscribed <- err
		}()
		r := e.next()
		assert.Equal(t, "event.subscribe", r.Method)
		assert.Equal(t, "{}", string(r.Params))
		e.say("%s", event("s", "early", 1))
		e.result(r, `{"subscription_id":"s","seq":5}`)
		e.say(`{"jsonrpc":"2.0","method":"event","params":{"subscription_id":"s","kind":"approval.opened","time":"2026-01-02T03:04:05Z","session":12,"turn":"12.3","turn_uuid":"u","data":{"replayed":true}}}`)
		e.say("%s", event("s", "x", 7))
		e.say("%s", event("s", "again", 7))
		e.say("%s", event("s", "earlier", 6))
		e.say("%s", event("other", "x", 8))
		e.say(`{"jsonrpc":"2.0","method":"event","params":{"subscription_id":"s","seq":"8"}}`)
		e.say(`{"jsonrpc":"2.0","method":"heartbeat","params":{"subscription_id":"s"}}`)
		e.say("%s", event("s", "lagged", 9))
		require.NoError(t, <-subscribed)
		synctest.Wait()
		var kinds []string
		for _, x := range got.events {
			kinds = append(kinds, fmt.Sprint(x.Kind, " ", x.Seq))
		}
		assert.Equal(t, []string{"approval.opened 0", "x 7", "heartbeat 0", "lagged 9"}, kinds)
		assert.Equal(t, eventstream.Event{
			Kind: "approval.opened", Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Session: 12, Turn: "12.3", TurnUUID: "u", Data: json.RawMessage(`{"replayed":true}`),
		}, got.events[0])
		assert.EqualValues(t, 9, sub.Seq())

		// After the loss it continues after the last event, whatever else arrives on the old
		// connection.
		e.Close()
		e = f.accept()
		r = e.next()
		assert.JSONEq(t, `{"since":9}`, string(r.Params))
		e.result(r, `{"subscription_id":"t","seq":9}`)
		e.say("%s", event("t", "y", 10))
		synctest.Wait()
		assert.EqualValues(t, 10, sub.Seq())

		// The client asks a server again that cannot serve yet.
		e.Close()
		e = f.accept()
		for range 3 {
			r = e.next()
			assert.JSONEq(t, `{"since":10}`, string(r.Params))
			e.say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"starting","data":{"kind":"subsystem_unavailable"}}}`, r.ID)
		}
		r = e.next()
		e.result(r, `{"subscription_id":"u","seq":10}`)
		e.say("%s", event("u", "z", 11))
		synctest.Wait()
		assert.EqualValues(t, 11, sub.Seq())
		closed := make(chan error, 1)
		go func() { closed <- sub.Close() }()
		r = e.next()
		assert.Equal(t, "event.unsubscribe", r.Method)
		assert.JSONEq(t, `{"subscription_id":"u"}`, string(r.Params))
		began := time.Now()
		assert.NoError(t, <-closed, "also if the server does not answer")
		assert.InDelta(t, 5, time.Since(began).Seconds(), .1)
		c.Close()
	})
}

// A late event of the old subscription does not hide those before it.
func TestStragglers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c, e := dialFake(t, client.WithQueue(2))
		var got seen
		release := make(chan struct{})
		go func() {
			_, err := eventstream.Subscribe(context.Background(), c, eventstream.Options{}, func(e eventstream.Event) {
				<-release
				got.add(e)
			})
			assert.NoError(t, err)
		}()
		say := func(id string, seq int) {
			e.say("%s", event(id, "x", seq))
			synctest.Wait()
		}
		e.result(e.next(), `{"subscription_id":"s","seq":0}`)
		for seq := range 5 {
			say("s", seq+1) // of which 3, 4 and 5 have no room
		}
		close(release)
		r := e.next()
		assert.Equal(t, "event.unsubscribe", r.Method)
		e.result(r, "true")
		say("s", 6)
		r = e.next()
		assert.JSONEq(t, `{"since":2}`, string(r.Params))
		e.result(r, `{"subscription_id":"t","seq":2}`)
		say("t", 3)
		say("s", 7)
		for seq := 4; seq <= 8; seq++ {
			say("t", seq)
		}
		e.say(`{"jsonrpc":"2.0","method":"heartbeat","params":{"subscription_id":"t"}}`) // not requested
		synctest.Wait()
		assert.Equal(t, upTo(1, 8), got.seqs(), "each of them once")
		c.Close()
	})
}

// Other notifications may take the room of the very first event.
func TestAFirstEventThatHasNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c, e := dialFake(t, client.WithQueue(1))
		release := make(chan struct{})
		c.On("note", func(json.RawMessage) { <-release })
		var got seen
		go func() {
			_, err := eventstream.Subscribe(context.Background(), c, eventstream.Options{}, got.add)
			assert.NoError(t, err)
		}()
		e.result(e.next(), `{"subscription_id":"s","seq":4}`)
		e.say(`{"jsonrpc":"2.0","method":"note"}`)
		e.say("%s", event("s", "x", 5))
		synctest.Wait()
		close(release)
		e.result(e.next(), "true")
		r := e.next()
		assert.JSONEq(t, `{"since":4}`, string(r.Params))
		e.result(r, `{"subscription_id":"t","seq":4}`)
		e.say("%s", event("t", "x", 5))
		synctest.Wait()
		assert.Equal(t, []int64{5}, got.seqs())
		c.Close()
	})
}

// A subscription that timed out does not leave a subscription behind.
func TestSubscribeTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c, e := dialFake(t)
		result := make(chan error, 1)
		began := time.Now()
		go func() {
			_, err := eventstream.Subscribe(context.Background(), c, eventstream.Options{}, func(eventstream.Event) {})
			result <- err
		}()
		r := e.next()
		err := <-result
		assert.ErrorIs(t, err, client.ErrTimeout)
		assert.Equal(t, 30*time.Second, time.Since(began))
		e.result(r, `{"subscription_id":"late"}`)
		r = e.next()
		assert.Equal(t, "event.unsubscribe", r.Method)
		assert.JSONEq(t, `{"subscription_id":"late"}`, string(r.Params))
		e.result(r, `true`)
		c.Close()
	})
}
