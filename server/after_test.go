package server_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/server"
)

// afterwards returns a registry whose methods send an event, which must follow their reply.
func afterwards() *server.Registry {
	reg := server.NewRegistry()
	follow := func(ctx context.Context, p gateParams) (string, error) {
		conn := server.ConnFrom(ctx)
		server.AfterReply(ctx, func() {
			_ = conn.Send(context.Background(), map[string]any{"event": p.Name})
		})
		return p.Name, nil
	}
	server.Handle(reg, "inline", follow)
	server.Handle(reg, "beside", follow, server.LongRunning())
	server.Handle(reg, "wild", func(ctx context.Context, _ struct{}) (int, error) {
		server.AfterReply(ctx, func() { panic("secret") })
		return 1, nil
	})
	return reg
}

func TestWhatFollowsAReplyComesBehindIt(t *testing.T) {
	for _, f := range []frame.Framing{frame.LSP, frame.NDJSON} {
		for _, method := range []string{"inline", "beside"} {
			t.Run(f.String()+" "+method, func(t *testing.T) {
				c := connect(t, afterwards(), f, server.Options{})
				for range 50 {
					assert.Equal(t, `{"jsonrpc":"2.0","id":1,"result":"a"}`,
						c.ask(`{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{"name":"a"}}`))
					assert.Equal(t, `{"event":"a"}`, c.next())
				}
				assert.Equal(t, `{"event":"b"}`, c.ask(`{"jsonrpc":"2.0","method":"`+method+`","params":{"name":"b"}}`), "a notification has no reply")
				require.NoError(t, c.close())
			})
		}
	}
}

func TestWhatFollowsABatchComesBehindItsReply(t *testing.T) {
	reg := afterwards()
	g := addGate(reg)
	c := connect(t, reg, frame.LSP, server.Options{})
	c.send(`[{"jsonrpc":"2.0","id":1,"method":"inline","params":{"name":"a"}},
		{"jsonrpc":"2.0","id":2,"method":"gate"},{"jsonrpc":"2.0","id":3,"method":"beside","params":{"name":"b"}}]`)
	<-g.entered
	close(g.open)
	assert.Equal(t, `[{"jsonrpc":"2.0","id":1,"result":"a"},{"jsonrpc":"2.0","id":2,"result":"open"},{"jsonrpc":"2.0","id":3,"result":"b"}]`, c.next())
	assert.ElementsMatch(t, []string{`{"event":"a"}`, `{"event":"b"}`}, []string{c.next(), c.next()})
	require.NoError(t, c.close())
}

func TestAPanicAfterTheReplyIsOnlyLogged(t *testing.T) {
	c := connect(t, afterwards(), frame.LSP, server.Options{})
	assert.Equal(t, `{"jsonrpc":"2.0","id":1,"result":1}`, c.ask(`{"jsonrpc":"2.0","id":1,"method":"wild"}`))
	assert.Equal(t, `{"jsonrpc":"2.0","id":2,"result":1}`, c.ask(`{"jsonrpc":"2.0","id":2,"method":"wild"}`))
	assert.Contains(t, c.log.String(), "a function that follows a reply panicked")
	require.NoError(t, c.close())
}

func TestAfterReplyNeedsAHandler(t *testing.T) {
	assert.Panics(t, func() { server.AfterReply(context.Background(), func() {}) })
}

func TestSendKeepsToTheLengthOfALine(t *testing.T) {
	const most = 128
	fits := strings.Repeat("x", most-2) // and two quotes
	for f, limit := range map[frame.Framing]int{frame.NDJSON: most, frame.LSP: 0} {
		reg := server.NewRegistry()
		sent := make(chan error, 2)
		server.Handle(reg, "send", func(ctx context.Context, _ struct{}) (int, error) {
			conn := server.ConnFrom(ctx)
			sent <- conn.Send(ctx, fits)
			sent <- conn.Send(ctx, fits+"x")
			return conn.MaxMessage(), nil
		})
		c := connect(t, reg, f, server.Options{MaxLine: most})
		assert.Equal(t, `"`+fits+`"`, c.ask(`{"jsonrpc":"2.0","id":1,"method":"send"}`))
		require.NoError(t, <-sent)
		if limit > 0 {
			require.ErrorIs(t, <-sent, server.ErrTooLong)
			assert.Equal(t, `{"jsonrpc":"2.0","id":1,"result":128}`, c.next())
		} else {
			require.NoError(t, <-sent)
			assert.Equal(t, `"`+fits+`x"`, c.next())
			assert.Equal(t, `{"jsonrpc":"2.0","id":1,"result":0}`, c.next())
		}
		require.NoError(t, c.close())
	}
	ours, theirs := server.Pipe()
	conn := server.New(standard(), server.Options{MaxLine: 1}).Connect(t.Context(), ours, frame.NDJSON)
	assert.ErrorIs(t, conn.Send(t.Context(), 10), server.ErrTooLong)
	theirs.Close()
	<-conn.Done()
}

// A result that fits into a line with its id and 64 bytes more is sent; a longer one becomes an
// error.
func TestAResultKeepsToTheLengthOfALine(t *testing.T) {
	const most = 300
	c := connect(t, standard(), frame.NDJSON, server.Options{MaxLine: most})
	for id, fits := range map[string]bool{"1": true, "22": false} {
		result := `["` + strings.Repeat("x", most-64-1-4) + `"]`
		reply := c.ask(`{"jsonrpc":"2.0","id":` + id + `,"method":"echo","params":` + result + `}`)
		assert.Equal(t, fits, strings.Contains(reply, result), reply)
		assert.Equal(t, !fits, strings.Contains(reply, `"error"`), reply)
	}
	require.NoError(t, c.close())
}

// A trace sees each message with its direction.
func TestATraceSeesBothDirections(t *testing.T) {
	seen := make(chan string, 2)
	c := connect(t, standard(), frame.NDJSON, server.Options{Trace: func(_ *server.Conn, out bool, message []byte) {
		seen <- fmt.Sprint(out, " ", string(message))
	}})
	c.ask(`{"jsonrpc":"2.0","id":1,"method":"echo","params":[1]}`)
	assert.Equal(t, `false {"jsonrpc":"2.0","id":1,"method":"echo","params":[1]}`, <-seen)
	assert.Equal(t, `true {"jsonrpc":"2.0","id":1,"result":[1]}`, <-seen)
	require.NoError(t, c.close())
}
