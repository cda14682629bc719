package relay_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/relay"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
	"github.com/duet-rpc/duet-rpc/server"
)

// impatient makes a relay notice a silent hub soon.
func impatient(o *relay.Options) {
	o.Silence, o.Patience = 200*time.Millisecond, 100*time.Millisecond
	o.Silent = func() string { return "the daemon (process 7) does not answer; end it" }
	o.Long = func(method []byte) bool { return string(method) == "long" }
}

// nextBut returns the next message with another method. It leaves the skipped requests unanswered.
func (w *wire) nextBut(method string) string {
	w.t.Helper()
	for {
		if m := w.next(); !strings.Contains(m, `"method":"`+method+`"`) {
			return m
		}
	}
}

// assertSilent asserts that a message is the error of a request whose hub does not answer.
func assertSilent(t *testing.T, id, message string, retry bool) {
	t.Helper()
	assert.Equal(t, id, string(testkit.JSONMember(t, message, "id")))
	assert.Equal(t, "-32044", string(testkit.JSONMember(t, message, "error.code")))
	assert.Equal(t, `"hub_silent"`, string(testkit.JSONMember(t, message, "error.data.kind")))
	assert.Equal(t, retry, string(testkit.JSONMember(t, message, "error.data.retry")) == "true")
	assert.Contains(t, string(testkit.JSONMember(t, message, "error.message")), "process 7")
}

// The relay notifies an editor whose hub does not answer. No request runs twice when the hub
// continues.
func TestSilentHub(t *testing.T) {
	s := start(t, impatient, func(o *relay.Options) { o.Silence = time.Second }) // the test answers only some
	ours, theirs := sockets(t)
	s.hubs <- ours
	hub := newWire(t, theirs)
	s.send(request(1, "event.subscribe", `{}`), request(10, "Subscribe", `{}`))
	hub.next()
	hub.next()
	hub.send(response(1, `{"subscription_id":"s1","seq":4}`), response(10, `{"subscription_id":"framed","seq":4}`))
	s.next()
	s.next()

	long, quick, subscribe := request(2, "long", `{}`), request(3, "quick", `{}`), request(4, "event.subscribe", `{}`)
	s.send(long, quick, subscribe, "["+request(5, "quick", `{}`)+","+request(6, "quick", `{}`)+"]", "["+request(7, "quick", `{}`)+","+request(8, "long", `{}`)+"]")
	assertSilent(t, "3", s.next(), false)
	assertSilent(t, "4", s.next(), false)
	batch := s.next()
	assert.True(t, strings.HasPrefix(batch, "[") && strings.HasSuffix(batch, "]"), batch)
	assert.Equal(t, 2, strings.Count(batch, `"hub_silent"`))
	reported := s.next() + s.next()
	assert.Contains(t, reported, `{"subscription_id":"s1","kind":"daemon.silent","time":"`)
	assert.Contains(t, reported, `{"subscription_id":"framed","event":{"type":"hub_silent","timestamp":"`)
	assert.Equal(t, 2, strings.Count(reported, "process 7"))
	assert.Contains(t, s.log.String(), "process 7")
	s.await("silent")

	// The relay sends no later message to the hub, and its error says so.
	assertSilent(t, "9", s.ask(request(9, "quick", `{"late":1}`)), true)

	// The hub continues.
	for _, want := range []string{long, quick, subscribe} {
		assert.Equal(t, want, hub.nextBut("ping"))
	}
	hub.nextBut("ping")
	hub.nextBut("ping")
	hub.send(
		response(3, `"late"`), response(4, `{"subscription_id":"s2","seq":4}`),
		`{"jsonrpc":"2.0","method":"event","params":{"subscription_id":"s2","seq":5,"kind":"x"}}`,
		"["+response(5, `1`)+","+response(6, `1`)+"]", "["+response(7, `1`)+","+response(8, `1`)+"]",
		`{"jsonrpc":"2.0","method":"event","params":{"subscription_id":"s1","seq":5,"kind":"x"}}`,
		response(2, `"done"`),
	)
	var came []string
	for range 5 {
		came = append(came, s.next())
	}
	all := strings.Join(came, "\n")
	assert.Contains(t, all, `"daemon.answers"`)
	assert.Contains(t, all, `"hub_answers"`)
	assert.Contains(t, all, "["+response(7, `1`)+","+response(8, `1`)+"]")
	assert.Contains(t, all, `{"subscription_id":"s1","seq":5,`)
	assert.Contains(t, all, response(2, `"done"`))
	// The relay ends the subscription that the editor does not know.
	unsubscribe := hub.nextBut("ping")
	assert.Equal(t, `"event.unsubscribe"`, string(testkit.JSONMember(t, unsubscribe, "method")))
	assert.Equal(t, `"s2"`, string(testkit.JSONMember(t, unsubscribe, "params.subscription_id")))
	hub.send(response(string(testkit.JSONMember(t, unsubscribe, "id")), `{"success":true}`))
	// The next request is answered.
	s.send(request(10, "quick", `{}`))
	assert.Equal(t, request(10, "quick", `{}`), hub.nextBut("ping"))
	hub.send(response(10, `"again"`))
	assert.Equal(t, response(10, `"again"`), s.next())
}

// A hub that answers other requests while a long one runs is not silent.
func TestBusyHubIsNotSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, impatient)
		hub := s.hub()
		s.send(request(1, "long", `{}`))
		assert.Equal(t, request(1, "long", `{}`), hub.next())
		for range 3 {
			ping := hub.next()
			require.Contains(t, ping, `"ping"`)
			hub.send(response(string(testkit.JSONMember(t, ping, "id")), `{}`))
		}
		hub.send(response(1, `"done"`))
		assert.Equal(t, response(1, `"done"`), s.nextBut("event"))
		assert.NotContains(t, s.log.String(), "does not answer")
	})
}

// An editor that sends more than a blocked hub accepts does not block.
func TestSilentHubDoesNotBlockEditor(t *testing.T) {
	ours, theirs := sockets(t)
	s := start(t, impatient)
	s.hubs <- ours
	_ = theirs  // does not read
	go func() { // more than the hub accepts
		for range 8 {
			_, _ = s.end.Write(framed(request(`"big"`, "quick", `"`+strings.Repeat("x", 1<<20)+`"`)))
		}
		_, _ = s.end.Write(framed(request(99, "quick", `{}`)))
	}()
	for {
		m := s.next()
		if strings.HasPrefix(m, `{"jsonrpc":"2.0","id":99`) {
			assert.Contains(t, m, `"retry":true`)
			return
		}
	}
}

// The relay notices a silent hub just as fast after a long idle time.
func TestHubFallsSilentAfterIdleTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, impatient)
		hub := s.hub()
		s.send(request(1, "quick", `{}`))
		assert.Equal(t, request(1, "quick", `{}`), hub.next())
		hub.send(response(1, `1`))
		assert.Equal(t, response(1, `1`), s.next())
		time.Sleep(time.Hour)
		began := time.Now()
		s.send(request(2, "quick", `{}`))
		assert.Equal(t, request(2, "quick", `{}`), hub.next(), "the relay sent no ping meanwhile")
		go io.Copy(io.Discard, hub.end) // the new request
		assertSilent(t, "2", s.nextBut("event"), false)
		assert.Less(t, time.Since(began), time.Second)
		s.end.Close()
		<-s.ran
		s.ran <- nil
	})
}

// A line that may break without a word is given up, and its requests say that it broke.
func TestSilentLine(t *testing.T) {
	s := start(t, impatient, func(o *relay.Options) {
		o.Silence, o.GiveUp, o.Lost = 100*time.Millisecond, 300*time.Millisecond, "the line to devbox broke"
	})
	first, dead := sockets(t)
	s.hubs <- first
	line := newWire(t, dead)
	long := request(1, "long", `{}`)
	s.send(long)
	assert.Equal(t, long, line.next())
	lost := s.next() // the long one waits until the line is given up
	assert.Equal(t, "1", string(testkit.JSONMember(t, lost, "id")))
	assert.Equal(t, `"Hub lost: the line to devbox broke"`, string(testkit.JSONMember(t, lost, "error.message")))

	second, theirs := sockets(t)
	s.hubs <- second
	again := newWire(t, theirs)
	s.send(request(2, "quick", `{}`))
	assert.Equal(t, request(2, "quick", `{}`), again.next())
	again.send(response(2, `"answered"`))
	assert.Equal(t, response(2, `"answered"`), s.next())
}

// A host may send frames of any size: the relay reads none beyond its limit, and leaves no request without an answer.
func TestLongFrameOfAHost(t *testing.T) {
	s := start(t, func(o *relay.Options) { o.HubFrame = 1000 })
	ours, theirs := sockets(t)
	s.hubs <- ours
	hub := newWire(t, theirs)
	s.send(request(1, "quick", `{}`))
	hub.next()
	hub.send(response(1, `"`+strings.Repeat("x", 2000)+`"`))
	lost := s.next()
	assert.Equal(t, "1", string(testkit.JSONMember(t, lost, "id")))
	assert.Equal(t, `"hub_lost"`, string(testkit.JSONMember(t, lost, "error.data.kind")))
}

// An editor that follows a session learns that the line broke, why there is none, and that there is
// one again.
func TestBrokenLineIsNoticed(t *testing.T) {
	unreachable := false
	s := start(t, func(o *relay.Options) {
		o.Broken = "the line to devbox broke"
		connect := o.Connect
		o.Connect = func(ctx context.Context) (server.Transport, error) {
			if unreachable { // once
				unreachable = false
				return nil, &relay.UnavailableError{Err: errors.New("no route to devbox")}
			}
			return connect(ctx)
		}
	})
	ours, theirs := sockets(t)
	s.hubs <- ours
	line := newWire(t, theirs)
	s.send(request(1, "event.subscribe", `{}`))
	line.next()
	line.send(response(1, `{"subscription_id":"s1","seq":4}`))
	s.next()

	unreachable = true
	theirs.Close()
	for _, want := range []string{`daemon.silent the line to devbox broke`, `daemon.silent no route to devbox`} {
		assert.Equal(t, want, noticeOf(t, s.next()))
	}
	ours, theirs = sockets(t)
	s.hubs <- ours
	line = newWire(t, theirs)
	s.send(request(2, "quick", `{}`)) // another attempt is for it
	line.nextBut("quick")
	assert.Equal(t, `daemon.answers the daemon answers again`, noticeOf(t, s.next()))
}

// noticeOf returns the kind and the message of an event.
func noticeOf(t *testing.T, message string) string {
	t.Helper()
	member := func(name string) string { return strings.Trim(string(testkit.JSONMember(t, message, name)), `"`) }
	return member("params.kind") + " " + member("params.data.message")
}
