package client_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/client/eventstream"
	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
	"github.com/duet-rpc/duet-rpc/server"
)

// states collects the states that a Client reports.
type states struct {
	mu   sync.Mutex
	seen []client.State
}

func (s *states) option() client.Option {
	return client.WithSetup(func(c *client.Client) {
		c.OnState(func(state client.State) {
			s.mu.Lock()
			s.seen = append(s.seen, state)
			s.mu.Unlock()
		})
	})
}

func (s *states) all() []client.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]client.State(nil), s.seen...)
}

func TestPendingCallsFailWithTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c, e := dialFake(t, client.WithReconnect(false))
		began := time.Now()
		one := async(c, "one")
		e.next()
		other := async(c, "other")
		e.next()
		e.Close()
		for _, result := range []<-chan error{one, other} {
			err := <-result
			assert.ErrorIs(t, err, client.ErrDisconnected)
			var d *client.DisconnectedError
			require.ErrorAs(t, err, &d)
			assert.True(t, d.Sent)
			assert.Regexp(t, `^client: (one|other): disconnected, the request may have been served: the server closed the connection$`, err.Error())
		}
		assert.Zero(t, time.Since(began), "at once")
		err := c.Call(context.Background(), "m", nil, nil)
		assert.EqualError(t, err, "client: m: disconnected, the request was not sent: the server closed the connection")
		assert.ErrorIs(t, c.Notify(context.Background(), "m", nil), client.ErrDisconnected)
		assert.Equal(t, client.Disconnected, c.State())
		require.NoError(t, c.Close())
		assert.ErrorIs(t, c.Call(context.Background(), "m", nil, nil), client.ErrClosed)
	})
}

// A handler of the client that is still running does not delay others.
func TestPendingCallsFailAtOnceWhileAHandlerRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		entered := make(chan struct{})
		c := dial(t, client.Opener(f.open), client.WithSetup(func(c *client.Client) {
			c.Handle("human", func(ctx context.Context, _ params) (any, error) {
				close(entered)
				<-ctx.Done()
				return nil, ctx.Err()
			})
		}))
		e := f.accept()
		e.say(`{"jsonrpc":"2.0","id":1,"method":"human"}`)
		<-entered
		result := async(c, "m")
		e.next()
		began := time.Now()
		e.Close()
		assert.ErrorIs(t, <-result, client.ErrDisconnected)
		assert.Zero(t, time.Since(began))
		f.accept()
		assert.LessOrEqual(t, time.Since(began), 100*time.Millisecond)
		c.Close()
	})
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen states
		_, c, e := dialFake(t, seen.option())
		result := async(c, "m")
		e.next()
		require.NoError(t, c.Close())
		require.NoError(t, c.Close(), "again")
		err := <-result
		assert.ErrorIs(t, err, client.ErrClosed)
		assert.NotErrorIs(t, err, client.ErrDisconnected)
		assert.Equal(t, client.Closed, c.State())
		_, err = e.lines.ReadByte()
		assert.Error(t, err, "the transport is closed")
		assert.ErrorIs(t, c.Notify(context.Background(), "m", nil), client.ErrClosed)
		_, err = eventstream.Subscribe(context.Background(), c, eventstream.Options{}, func(eventstream.Event) {})
		assert.ErrorIs(t, err, client.ErrClosed)
		synctest.Wait()
		assert.Equal(t, []client.State{client.Connected, client.Closed}, seen.all())
	})
}

func TestCloseWhileReconnecting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		c := dial(t, client.Opener(f.open))
		f.set(true)
		f.accept().Close()
		synctest.Wait()
		waiting := async(c, "m", client.WithTimeout(0))
		time.Sleep(time.Minute)
		require.NoError(t, c.Close())
		assert.ErrorIs(t, <-waiting, client.ErrClosed)
	})
}

func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen states
		f, c, e := dialFake(t, seen.option())
		for range 2 { // the second time the delays start anew
			e.say(`{"jsonrpc":"2.0","method":"hello"}`)
			synctest.Wait()
			f.set(true)
			f.attempts()
			last := time.Now()
			e.Close()
			time.Sleep(5 * time.Minute)
			synctest.Wait()
			opened := f.attempts()
			require.Greater(t, len(opened), 12)
			for n, want := range []float64{.1, .2, .4, .8, 1.6, 3.2, 6.4, 12.8, 25.6, 30, 30, 30} {
				waited := opened[n].Sub(last).Seconds()
				last = opened[n]
				assert.LessOrEqual(t, waited, want, "attempt %d", n)
				assert.GreaterOrEqual(t, waited, want*3/4, "attempt %d", n)
			}
			f.set(false)
			e = f.accept()
		}
		synctest.Wait() // until the Client has noticed the connection
		c.Close()
		synctest.Wait()
		assert.Equal(t, []client.State{
			client.Connected, client.Disconnected, client.Reconnecting,
			client.Connected, client.Disconnected, client.Reconnecting, client.Connected, client.Closed,
		}, seen.all())
	})
}

// The delay before reconnecting grows for a server that accepts and hangs up.
func TestConnectionsThatBringNothingAreNoSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		c := dial(t, client.Opener(f.open))
		go func() {
			for conn := range f.ends {
				conn.Close()
			}
		}()
		time.Sleep(10 * time.Minute)
		assert.Less(t, len(f.attempts()), 40)
		c.Close()
		close(f.ends)
	})
}

func TestCallsWaitForTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		c := dial(t, client.Opener(f.open))
		f.set(true)
		f.accept().Close()
		time.Sleep(time.Second)
		assert.Equal(t, client.Reconnecting, c.State())

		began := time.Now()
		err := c.Call(context.Background(), "m", nil, nil, client.WithoutWaiting())
		assert.ErrorIs(t, err, client.ErrDisconnected)
		assert.ErrorIs(t, c.Notify(context.Background(), "m", nil, client.WithoutWaiting()), client.ErrDisconnected)
		assert.Zero(t, time.Since(began))

		err = c.Call(context.Background(), "m", nil, nil, client.WithTimeout(5*time.Second))
		assert.Equal(t, 5*time.Second, time.Since(began))
		assert.ErrorIs(t, err, client.ErrTimeout)
		assert.EqualError(t, err, "client: m: timeout after 5s: disconnected, the request was not sent: nobody there")

		result := async(c, "m", client.WithTimeout(time.Minute))
		note := make(chan error, 1)
		go func() { note <- c.Notify(context.Background(), "n", 1, client.WithTimeout(time.Minute)) }()
		time.Sleep(time.Second)
		f.set(false)
		e := f.accept()
		for range 2 {
			if r := e.next(); r.ID != nil {
				e.result(r, "true")
			}
		}
		assert.NoError(t, <-result)
		assert.NoError(t, <-note)
		c.Close()
	})
}

// A call that waits for a server that does not read was not sent: it goes out on the next
// connection.
func TestCallsThatWereNotSentAreSentLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c, e := dialFake(t)
		big := strings.Repeat("x", 5<<20)
		results := make(chan error, 8)
		for range cap(results) { // 16 MiB may wait
			go func() { results <- c.Call(context.Background(), "m", big, nil) }()
		}
		time.Sleep(time.Second)
		e.Close()
		for range 4 {
			err := <-results
			var d *client.DisconnectedError
			require.ErrorAs(t, err, &d)
			assert.True(t, d.Sent)
		}
		e = f.accept()
		for range 4 {
			e.result(e.next(), "true")
			assert.NoError(t, <-results)
		}
		c.Close()
	})
}

func TestFailFast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		c := dial(t, client.Opener(f.open), client.WithFailFast())
		f.set(true)
		f.accept().Close()
		synctest.Wait()
		began := time.Now()
		var d *client.DisconnectedError
		require.ErrorAs(t, c.Call(context.Background(), "m", nil, nil), &d)
		assert.False(t, d.Sent)
		_, err := eventstream.Subscribe(context.Background(), c, eventstream.Options{}, func(eventstream.Event) {})
		assert.ErrorIs(t, err, client.ErrDisconnected)
		assert.Zero(t, time.Since(began))
		c.Close()
	})
}

// A real server stops and starts again, while many calls run.
func TestServerThatIsRestarted(t *testing.T) {
	for _, f := range []frame.Framing{frame.NDJSON, frame.LSP} {
		s := serve(t, standard())
		c := dial(t, client.Socket(s.path), client.WithFraming(f))
		stop := make(chan struct{})
		var callers sync.WaitGroup
		var answered, lost atomic.Int64
		var answers testkit.Witness
		for range 20 {
			callers.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					var got int
					switch err := c.Call(context.Background(), "echo", 7, &got); {
					case err == nil:
						answers.Note(func() { answered.Add(1) })
						assert.Equal(t, 7, got)
					default:
						lost.Add(1)
						var d *client.DisconnectedError
						if assert.ErrorAs(t, err, &d) {
							assert.True(t, d.Sent, "what was not sent is sent on the next connection")
						}
					}
				}
			})
		}
		for range 3 {
			before := answered.Load()
			answers.Await(t, func() bool { return answered.Load() > before+100 }, "calls are answered again")
			s.stop()
			s.start()
		}
		before := answered.Load()
		answers.Await(t, func() bool { return answered.Load() > before+100 }, "calls are answered again")
		close(stop)
		callers.Wait()
		require.NoError(t, c.Close())
	}
}

func TestTransportThatIsThere(t *testing.T) {
	one, other := server.Pipe()
	conn := server.New(standard(), server.Options{}).Connect(context.Background(), other, frame.LSP)
	c := dial(t, client.OverTransport(one, frame.LSP))
	require.NoError(t, c.Call(context.Background(), "echo", 1, nil))
	require.NoError(t, c.Close())
	<-conn.Done()
}
