package server_test

import (
	"context"
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

// While an inline handler runs, no other goroutine flushes earlier output. So a sender that
// needs room, in the handler or beside it, has to flush first: the peer reads all the time, and
// would wait forever.
func TestWhoeverNeedsRoomFlushesFirst(t *testing.T) {
	const maxQueued = 1000 // bytes: less than the length that forces a flush
	note := map[string]string{"jsonrpc": "2.0", "method": "note"}
	beside := func(send func() error) error {
		sent := make(chan error)
		go func() { sent <- send() }()
		return <-sent
	}
	// Each way gets the context of an inline handler, and may outlive it where
	// it says so by returning nil.
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
					for !strings.Contains(c.next(), `"note"`) { // after its reply, for one of them
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
