package relay_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/relay"
	"github.com/duet-rpc/duet-rpc/server"
)

// answerPing answers ping, and shutdown and exit without params.
func answerPing(o *relay.Options) {
	o.Early = func(m *frame.Message) ([]byte, bool) {
		switch method := string(m.Method); {
		case m.Kind != frame.Object, method == `"x"`:
			return nil, false
		case m.ID == nil:
			return nil, true
		case method == `"ping"`, m.Params == nil:
			return []byte(response(string(m.ID), `"early"`)), true
		}
		return []byte(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"error":{"code":-32602,"message":"no"}}`), true
	}
}

// A message that needs no hub does not wait for one, and does not overtake one that needs it.
func TestEarly(t *testing.T) {
	s := start(t, answerPing)
	assert.Equal(t, response(1, `"early"`), s.ask(request(1, "ping", `{}`)))
	s.send(request(2, "x", `[]`), request(3, "ping", `{}`))
	hub := s.hub()
	assert.Equal(t, request(2, "x", `[]`), hub.next())
	assert.Equal(t, request(3, "ping", `{}`), hub.next(), "what waits keeps its order")
	hub.send(response(2, `2`), response(3, `3`))
	assert.Equal(t, response(2, `2`), s.next())
	assert.Equal(t, response(3, `3`), s.next())
	s.send(request(4, "ping", `{}`))
	assert.Equal(t, request(4, "ping", `{}`), hub.next(), "a hub that is there is asked")

	// A notification has no answer; a message that Early does not answer goes to the hub.
	batch := `[` + request(2, "ping", `{}`) + `]`
	s = start(t, answerPing)
	s.send(`{"jsonrpc":"2.0","method":"ping"}`)
	assert.Equal(t, response(1, `"early"`), s.ask(request(1, "ping", `{}`)))
	s.send(batch)
	assert.Equal(t, batch, s.hub().next())
}

// A connection that ends before there is a hub needs none.
func TestEarlyFarewell(t *testing.T) {
	for _, m := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"shutdown"}`, `{"jsonrpc":"2.0","id":1,"method":"exit"}`,
		`{"jsonrpc":"2.0","method":"shutdown"}`, `{"jsonrpc":"2.0","method":"exit"}`,
	} {
		t.Run(m, func(t *testing.T) {
			s := start(t, answerPing)
			s.send(m)
			if strings.Contains(m, `"id"`) {
				assert.Equal(t, response(1, `"early"`), s.next())
			}
			s.ended()
			require.NoError(t, s.returned())
		})
	}
	t.Run("refused", func(t *testing.T) {
		s := start(t, answerPing)
		assert.Contains(t, s.ask(request(1, "shutdown", `{"reason":5}`)), "-32602")
		assert.Equal(t, response(2, `"early"`), s.ask(request(2, "ping", `{}`)), "then the connection goes on")
	})
}

// A message that needs no hub does not restart a hub that was stopped.
func TestEarlyWhileDormant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, answerPing, func(o *relay.Options) {
			connect := o.Connect
			o.Connect = func(ctx context.Context) (server.Transport, error) {
				if !relay.Wanted(ctx) {
					return nil, relay.ErrDormant
				}
				return connect(ctx)
			}
		})
		s.await("dormant")
		assert.Equal(t, response(1, `"early"`), s.ask(request(1, "ping", `{}`)))
		time.Sleep(time.Hour)
		assert.Empty(t, s.connected)
		s.send(request(2, "x", `[]`))
		assert.Equal(t, request(2, "x", `[]`), s.hub().next())
		s.cancel()
		require.NoError(t, s.returned())
	})
}

// Messages that wait for an unavailable hub are refused at once. The relay tries again when the
// editor next needs a hub.
func TestUnavailable(t *testing.T) {
	tries := 0
	s := start(t, answerPing, func(o *relay.Options) {
		connect := o.Connect
		o.Connect = func(ctx context.Context) (server.Transport, error) {
			if !relay.Wanted(ctx) {
				return nil, relay.ErrDormant
			}
			if tries++; tries == 1 {
				return nil, &relay.UnavailableError{Err: errors.New("no room")}
			}
			return connect(ctx)
		}
		o.Unavailable = func(body []byte) []byte {
			var m frame.Message
			if frame.Parse(body, &m); m.ID == nil {
				return nil
			}
			return []byte(response(string(m.ID), `"refused"`))
		}
	})
	assert.Equal(t, response(1, `"refused"`), s.ask(request(1, "x", `[]`)))
	s.send(request(2, "x", `[]`))
	assert.Equal(t, request(2, "x", `[]`), s.hub().next())
}
