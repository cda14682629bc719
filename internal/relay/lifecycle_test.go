package relay_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
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

// `printf … | duet-rpc` gets all its answers, also to requests before the first hub.
func TestEndOfInput(t *testing.T) {
	for _, early := range []bool{false, true} {
		t.Run(fmt.Sprint("early ", early), func(t *testing.T) {
			s := &setting{wire: &wire{t: t}, hubs: make(chan server.Transport, 1), states: make(chan string, 100), ran: make(chan error, 1)}
			editor, end := sockets(t)
			s.wire = newWire(t, end)
			connect := make(chan server.Transport, 1)
			s.run(editor, relay.Options{Connect: func(ctx context.Context) (server.Transport, error) {
				select {
				case hub := <-connect:
					return hub, nil
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}})
			ours, theirs := sockets(t)
			if early {
				connect <- ours
			}
			open := make(chan struct{})
			s.send(request(1, "gate", `1`), request(2, "echo", `2`), `{}`)
			require.NoError(t, end.CloseWrite())
			if !early {
				connect <- ours
			}
			serveOn(t, standard(open), theirs)
			assert.Equal(t, response(2, `2`), s.next())
			assert.Contains(t, s.next(), `"id":null,"error":{"code":-32600`)
			close(open)
			assert.Equal(t, response(1, `1`), s.next())
			s.ended()
			require.NoError(t, s.returned())
		})
	}
}

func TestEndOfInputWithAPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		s := start(t)
		s.serve(standard(nil))
		s.await("connected")
		s.send(request(1, "gate", `1`))
		synctest.Wait()
		s.cancel() // like a signal: the request has the grace period
		require.NoError(t, s.returned())
		assert.Equal(t, 1800*time.Millisecond, time.Since(began))
	})
}

func TestEndOfContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		hub := s.hub()
		s.await("connected")
		began := time.Now()
		s.cancel()
		hub.ended()
		require.NoError(t, s.returned())
		assert.Zero(t, time.Since(began), "no request was pending")
		s.await("ended")
	})
}

func TestFarewell(t *testing.T) {
	for _, m := range []string{
		`{"jsonrpc":"2.0","method":"exit"}`, request(1, "exit", `null`), request(1, "shutdown", `{}`), `[` + request(1, "shutdown", `{}`) + `]`,
		`{"jsonrpc":"2.0","method":"shutdown"}`,
	} {
		t.Run(m, func(t *testing.T) {
			s := start(t)
			s.serve(standard(nil))
			s.send(m)
			if strings.Contains(m, `"id"`) {
				assert.Contains(t, s.next(), `"id":1,"result":`)
			}
			s.ended()
			require.NoError(t, s.returned())
			assert.Len(t, s.connected, 1, "the relay does not connect again")
		})
	}
	t.Run("refused", func(t *testing.T) {
		s := start(t)
		kill := s.serve(standard(nil))
		assert.Contains(t, s.ask(request(1, "shutdown", `{"reason":5}`)), "-32602")
		kill()
		s.serve(standard(nil))
		assert.Equal(t, response(2, `2`), s.askUntilServed(request(2, "echo", `2`)), "the connection continues")
	})
	t.Run("lost", func(t *testing.T) {
		s := start(t)
		hub := s.hub()
		s.send(request(1, "shutdown", `{}`))
		hub.next()
		hub.end.Close()
		assertLost(t, "1", s.next())
		s.ended()
		require.NoError(t, s.returned())
	})
	t.Run("without a hub", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := start(t)
			s.send(`{"jsonrpc":"2.0","method":"exit"}`)
			s.ended()
			require.NoError(t, s.returned())
		})
	})
}

// The relay replaces a stopped hub only when the editor needs one.
func TestDormant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		ours, theirs := server.Pipe()
		defer theirs.Close()
		s := start(t, func(o *relay.Options) {
			o.Connect = func(ctx context.Context) (server.Transport, error) {
				calls++
				if !relay.Wanted(ctx) {
					return nil, fmt.Errorf("stopped: %w", relay.ErrDormant)
				}
				return ours, nil
			}
		})
		s.await("dormant")
		time.Sleep(time.Hour)
		assert.Equal(t, 1, calls)
		s.send(request(1, "x", `[]`))
		assert.Equal(t, request(1, "x", `[]`), newWire(t, theirs).next())
		assert.Equal(t, 2, calls)
	})
}

func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		began := time.Now()
		s := start(t, func(o *relay.Options) {
			o.Connect = func(context.Context) (server.Transport, error) {
				at = append(at, time.Since(began).Round(time.Millisecond))
				return nil, errors.New("no")
			}
		})
		time.Sleep(3500 * time.Millisecond)
		s.cancel()
		require.NoError(t, s.returned())
		ms := time.Millisecond
		assert.Equal(t, []time.Duration{0, 10 * ms, 30 * ms, 70 * ms, 150 * ms, 310 * ms, 630 * ms, 1270 * ms, 2270 * ms, 3270 * ms}, at)
	})
}

// A failed write to the editor ends the relay, even if no read fails.
func TestEditorDisconnects(t *testing.T) {
	s := &setting{wire: &wire{t: t}, ran: make(chan error, 1)}
	hubOurs, hubTheirs := server.Pipe()
	s.wire.end = nopEnd{}
	s.run(deaf{make(chan struct{})}, relay.Options{Connect: func(context.Context) (server.Transport, error) { return hubOurs, nil }})
	hub := newWire(t, hubTheirs)
	hub.send(`{"jsonrpc":"2.0","method":"event"}`)
	require.NoError(t, s.returned())
	hub.ended()
}

// deaf is an editor whose input never ends and whose output is closed.
type deaf struct{ closed chan struct{} }

func (d deaf) Read([]byte) (int, error)         { <-d.closed; return 0, io.EOF }
func (deaf) Write([]byte) (int, error)          { return 0, io.ErrClosedPipe }
func (d deaf) Close() error                     { close(d.closed); return nil }
func (deaf) SetReadDeadline(time.Time) error    { return nil }
func (deaf) SetWriteDeadline(t time.Time) error { return nil }

type nopEnd struct{ server.Transport }

func (nopEnd) Close() error { return nil }

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
	assert.Equal(t, request(3, "ping", `{}`), hub.next(), "waiting messages keep their order")
	hub.send(response(2, `2`), response(3, `3`))
	assert.Equal(t, response(2, `2`), s.next())
	assert.Equal(t, response(3, `3`), s.next())
	s.send(request(4, "ping", `{}`))
	assert.Equal(t, request(4, "ping", `{}`), hub.next(), "the relay asks a connected hub")

	// A notification has no answer; a message that Early does not answer goes to the hub.
	batch := `[` + request(2, "ping", `{}`) + `]`
	s = start(t, answerPing)
	s.send(`{"jsonrpc":"2.0","method":"ping"}`)
	assert.Equal(t, response(1, `"early"`), s.ask(request(1, "ping", `{}`)))
	s.send(batch)
	assert.Equal(t, batch, s.hub().next())
}

// The next hub learns that the editor does not trust the workspace, also if a batch said so before
// there was a hub.
func TestEarlyTrustInABatch(t *testing.T) {
	s := start(t, func(o *relay.Options) {
		o.Early = func(m *frame.Message) ([]byte, bool) { return []byte(`[]`), m.Kind == frame.Array }
	})
	assert.Equal(t, `[]`, s.ask(`[`+request(1, "initialize", `{"workspaceTrusted":false}`)+`]`))
	s.send(request(2, "x", `[]`))
	hub := s.hub()
	assert.Contains(t, hub.next(), `"workspaceTrusted":false`)
	assert.Equal(t, request(2, "x", `[]`), hub.next())
	hub.send(response(2, `2`))
	assert.Equal(t, response(2, `2`), s.next())
}

// A connection that ends before the first hub needs no hub.
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
		assert.Equal(t, response(2, `"early"`), s.ask(request(2, "ping", `{}`)), "the connection continues")
	})
}

// A message that needs no hub does not restart a stopped hub.
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

// The relay refuses waiting messages at once if no hub is available. It tries again when the editor
// next needs a hub.
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

// A request that the relay's process carries out itself does not reach the hub, with and without one. It outlives
// the editor's end of input, and ends with the relay.
func TestTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s := start(t, func(o *relay.Options) {
			o.Take = func(m *frame.Message) func(context.Context) []byte {
				id := bytes.Clone(m.ID)
				if string(m.Method) != `"own"` {
					return nil
				}
				return func(ctx context.Context) []byte {
					select {
					case <-release:
						return []byte(response(string(id), `"mine"`))
					case <-ctx.Done():
						return []byte(response(string(id), `"ended"`))
					}
				}
			}
		})
		s.send(request(1, "own", `{}`)) // without a hub
		hub := s.hub()
		s.send(request(2, "own", `{}`), request(3, "theirs", `{}`), `{"jsonrpc":"2.0","method":"own"}`)
		assert.Equal(t, request(3, "theirs", `{}`), hub.next(), "others pass")
		assert.Equal(t, `{"jsonrpc":"2.0","method":"own"}`, hub.next(), "a notification has no answer")
		release <- struct{}{}
		assert.Contains(t, s.next(), `"mine"`)
		release <- struct{}{}
		assert.Contains(t, s.next(), `"mine"`)
		s.send(request(4, "own", `{}`))
		synctest.Wait()
		s.cancel()
		require.NoError(t, s.returned(), "after Options.Grace")
	})
}
