package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
	"github.com/duet-rpc/duet-rpc/server"
)

// A client may send all its requests before it reads the first reply.
func TestPipelinedRequestsAreAnsweredInOrder(t *testing.T) {
	const n = 20_000
	c := connect(t, standard(), frame.LSP, server.Options{})
	var all []byte
	for i := range n {
		all = frame.Append(all, frame.LSP, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"echo","params":["some text to make it longer"]}`, i))
	}
	_, err := c.end.Write(all) // returns when the server has read it all
	require.NoError(t, err)
	for i := range n {
		require.Equal(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":["some text to make it longer"]}`, i), c.next())
	}
	require.NoError(t, c.close())
}

// The output for a peer that does not read is bounded: then the server does not read either.
func TestAPeerThatDoesNotReadStopsBeingServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, standard(), frame.LSP, server.Options{MaxQueued: 1 << 20})
		request := frame.Append(nil, frame.LSP, []byte(`{"jsonrpc":"2.0","id":1,"method":"echo","params":"`+strings.Repeat("x", 10_000)+`"}`))
		sent := 0
		for range 1000 { // 10 MB
			if c.end.SetWriteDeadline(time.Now().Add(time.Minute)) != nil {
				break
			}
			n, err := c.end.Write(request)
			sent += n
			if err != nil {
				break
			}
		}
		assert.Greater(t, sent, 1<<20)
		assert.Less(t, sent, 3<<20)
		// The peer starts to read: no accepted request is lost.
		replies := make(chan int)
		go func() {
			n := 0
			var m frame.Message
			for n < sent/len(request) && c.reader.Next(&m) == nil {
				n++
			}
			replies <- n
		}()
		assert.Equal(t, sent/len(request), <-replies)
		c.end.SetWriteDeadline(time.Time{})
		require.NoError(t, c.close())
	})
}

// A connection whose peer does not read still ends in time.
func TestAPeerThatDoesNotReadCannotKeepTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg, g := gated()
		c := connect(t, reg, frame.LSP, server.Options{MaxQueued: 1 << 16})
		c.send(`{"jsonrpc":"2.0","id":1,"method":"gate"}`)
		<-g.entered
		c.end.SetWriteDeadline(time.Now().Add(time.Minute))
		for {
			if _, err := c.end.Write(frame.Append(nil, frame.LSP, []byte(`{"jsonrpc":"2.0","id":2,"method":"echo","params":"`+strings.Repeat("x", 100_000)+`"}`))); err != nil {
				break
			}
		}
		began := time.Now()
		c.cancel()
		require.NoError(t, <-c.served)
		assert.LessOrEqual(t, time.Since(began), 1600*time.Millisecond)
		assert.Contains(t, c.log.String(), "replies were lost")
	})
}

// Notify waits for a peer that does not read until its context ends.
func TestNotifyWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := server.Pipe()
		srv := server.New(standard(), server.Options{MaxQueued: 1000})
		conn := srv.Connect(context.Background(), ours, frame.LSP)
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		sent := 0
		var err error
		for err == nil {
			if err = conn.Notify(ctx, "note", strings.Repeat("x", 100)); err == nil {
				sent++
			}
		}
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Less(t, sent, 20)
		short, cancelShort := context.WithTimeout(context.Background(), time.Second)
		defer cancelShort()
		began := time.Now()
		assert.ErrorIs(t, conn.Call(short, "question", nil, nil), context.DeadlineExceeded, "a call does not wait for longer either")
		assert.Equal(t, time.Second, time.Since(began))
		assert.Zero(t, must(srv.Broadcast("event", nil))(t), "a broadcast does not wait")
		r := frame.NewReader(theirs, frame.LSP, frame.Limits{})
		var m frame.Message
		for range sent {
			require.NoError(t, r.Next(&m))
		}
		theirs.Close()
		<-conn.Done()
	})
}

// Calls that begin at once, each of which finds room, also end in time.
func TestCallsToAPeerThatDoesNotReadEndInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := server.Pipe()
		conn := server.New(standard(), server.Options{MaxQueued: 1000}).Connect(context.Background(), ours, frame.LSP)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		began := time.Now()
		ended := make(chan error)
		for range 50 {
			go func() { ended <- conn.Call(ctx, "question", strings.Repeat("x", 400), nil) }()
		}
		for range 50 {
			select {
			case err := <-ended:
				assert.ErrorIs(t, err, context.DeadlineExceeded)
			case <-time.After(time.Minute):
				require.FailNow(t, "a call does not end")
			}
		}
		assert.Equal(t, time.Second, time.Since(began))
		theirs.Close()
		<-conn.Done()
	})
}

// A reply does not wait for a later slow handler.
func TestRepliesAreNotHeldBackBySlowHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := standard()
		server.Handle(reg, "slow", func(context.Context, struct{}) (int, error) { time.Sleep(time.Second); return 1, nil })
		c := connect(t, reg, frame.LSP, server.Options{})
		c.ask(`{"jsonrpc":"2.0","id":1,"method":"slow"}`) // now it is known to be slow
		began := time.Now()
		go c.send(`{"jsonrpc":"2.0","id":2,"method":"echo"}`, `{"jsonrpc":"2.0","id":3,"method":"slow"}`)
		assert.Contains(t, c.next(), `"id":2`)
		assert.Less(t, time.Since(began), 100*time.Millisecond)
		assert.Contains(t, c.next(), `"id":3`)
		require.NoError(t, c.close())
	})
}

// Large results are written without a copy; other messages must come before or after them, never
// inside.
func TestLargeResultsAmongNotifications(t *testing.T) {
	reg := standard()
	chatters, stop := make(chan struct{}), make(chan struct{})
	server.Handle(reg, "chatter", func(ctx context.Context, _ struct{}) (int, error) {
		n := 0
		for {
			select {
			case <-stop:
				return n, nil
			default:
				if err := server.ConnFrom(ctx).Notify(ctx, "note", n); err != nil {
					return n, err
				}
				if n++; n == 1 {
					close(chatters)
				}
			}
		}
	}, server.LongRunning())
	c := connect(t, reg, frame.LSP, server.Options{})
	c.send(`{"jsonrpc":"2.0","id":"c","method":"chatter"}`)
	big := strings.Repeat("x", 300_000)
	go func() {
		<-chatters
		var out []byte
		for i := range 50 {
			out = frame.Append(out[:0], frame.LSP, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"echo","params":"%s"}`, i, big))
			if _, err := c.end.Write(out); err != nil {
				return
			}
		}
		close(stop)
	}()
	notes, replies, chattered := 0, 0, false
	for replies < 50 || !chattered {
		var m struct {
			ID     any
			Method string
			Params int
			Result any
		}
		require.NoError(t, json.Unmarshal([]byte(c.next()), &m))
		if m.Method == "note" {
			require.Equal(t, notes, m.Params)
			notes++
			continue
		}
		if m.ID == "c" {
			require.Equal(t, float64(notes), m.Result)
			chattered = true
			continue
		}
		require.Equal(t, float64(replies), m.ID)
		require.Len(t, m.Result, len(big))
		replies++
	}
	assert.Positive(t, notes)
	require.NoError(t, c.close())
}

// While an inline handler runs, no other goroutine flushes earlier output. So a sender that needs
// room, in the handler or beside it, has to flush first. Otherwise the peer, which reads
// continuously, would wait forever.
func TestWhoeverNeedsRoomFlushesFirst(t *testing.T) {
	const maxQueued = 1000 // bytes: less than the length that forces a flush
	note := map[string]string{"jsonrpc": "2.0", "method": "note"}
	beside := func(send func() error) error {
		sent := make(chan error)
		go func() { sent <- send() }()
		return <-sent
	}
	// Each way gets the context of an inline handler. A way may leave a sender behind that outlives
	// the handler.
	ways := map[string]func(ctx context.Context, c *server.Conn, srv *server.Server) error{
		"Send": func(ctx context.Context, c *server.Conn, _ *server.Server) error { return c.Send(ctx, note) },
		"Send of several": func(ctx context.Context, c *server.Conn, _ *server.Server) error {
			return c.Send(ctx, note, note)
		},
		"Send that must not wait": func(ctx context.Context, c *server.Conn, _ *server.Server) error {
			ended, cancel := context.WithCancel(ctx)
			cancel()
			return c.Send(ended, note)
		},
		"Notify": func(ctx context.Context, c *server.Conn, _ *server.Server) error { return c.Notify(ctx, "note", nil) },
		"Notify beside the handler": func(ctx context.Context, c *server.Conn, _ *server.Server) error {
			return beside(func() error { return c.Notify(ctx, "note", nil) })
		},
		"Broadcast": func(_ context.Context, _ *server.Conn, srv *server.Server) error {
			reached, err := srv.Broadcast("note", nil)
			if err == nil && reached != 1 {
				err = fmt.Errorf("%d connections were reached", reached)
			}
			return err
		},
		"Call beside the handler": func(_ context.Context, c *server.Conn, _ *server.Server) error {
			go func() { _ = c.Call(context.Background(), "note", nil, nil) }()
			return nil
		},
		"Send after the reply": func(ctx context.Context, c *server.Conn, _ *server.Server) error {
			server.AfterReply(ctx, func() { _ = c.Send(ctx, note) })
			return nil
		},
	}
	for name, way := range ways {
		for _, f := range []frame.Framing{frame.LSP, frame.NDJSON} {
			t.Run(name+" "+f.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var srv *server.Server
					heard := make(chan struct{}) // closed when the peer has received the note
					reg := standard()
					server.Handle(reg, "way", func(ctx context.Context, _ struct{}) (string, error) {
						if err := way(ctx, server.ConnFrom(ctx), srv); err != nil {
							return "", err
						}
						if !strings.Contains(name, "after") {
							<-heard
						}
						return "done", nil
					})
					c := &client{t: t, framing: f, served: make(chan error, 1), log: &testkit.Text{}}
					srv = server.New(reg, server.Options{MaxQueued: maxQueued})
					c.attach(srv)
					go c.send(`{"jsonrpc":"2.0","id":1,"method":"echo","params":"`+strings.Repeat("x", 2*maxQueued)+`"}`,
						`{"jsonrpc":"2.0","id":2,"method":"way"}`)
					require.NoError(t, c.end.SetReadDeadline(time.Now().Add(time.Minute)))
					assert.Contains(t, c.next(), `"id":1,"result":"xxx`)
					for !strings.Contains(c.next(), `"note"`) { // one way sends it after the reply
					}
					close(heard)
					if name == "Send of several" {
						assert.Contains(t, c.next(), `"note"`)
					}
					if !strings.Contains(name, "after") {
						assert.Contains(t, c.next(), `"id":2,"result":"done"`)
					}
					require.NoError(t, c.close())
				})
			})
		}
	}
}

// A sender that waits for room continues as soon as the peer has taken one of the earlier
// messages, whatever happens to the others.
func TestASenderGetsTheRoomThatIsMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := server.Pipe()
		conn := server.New(standard(), server.Options{MaxQueued: 1000}).Connect(t.Context(), ours, frame.NDJSON)
		note := strings.Repeat("x", 900)
		sent := 0
		go func() {
			for range 3 {
				if conn.Send(t.Context(), note) == nil {
					sent++
				}
			}
		}()
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Equal(t, 2, sent, "the first one is being written, the second one waits in the queue")
		line := make([]byte, len(note)+3)
		must(io.ReadFull(theirs, line))(t)
		synctest.Wait()
		assert.Equal(t, 3, sent)
		theirs.Close()
		<-conn.Done()
	})
}
