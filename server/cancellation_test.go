package server_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/server"
)

// A protocol may have its own cancellation, in both directions.
func TestAnotherCancellation(t *testing.T) {
	reg := server.NewRegistry()
	server.Handle(reg, "wait", func(ctx context.Context, _ struct{}) (int, error) { <-ctx.Done(); return 0, ctx.Err() }, server.LongRunning())
	server.Handle(reg, "ask", func(ctx context.Context, _ struct{}) (string, error) {
		asking, cancel := context.WithCancel(ctx)
		cancel()
		return "asked", errorAsData(server.ConnFrom(ctx).Call(asking, "question", nil, nil))
	}, server.LongRunning())
	c := connect(t, reg, frame.NDJSON, server.Options{
		Cancellation:   server.Cancellation{Method: "$/cancel_request", Member: "requestId", Tell: true},
		OnNotification: func(*server.Conn, string, json.RawMessage) {},
	})
	c.silent(`{"jsonrpc":"2.0","id":"w","method":"wait"}`)
	c.silent(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":"w"}}`)
	c.silent(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"id":"w"}}`)
	assert.Contains(t, c.ask(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"w"}}`), `"code":-32800`)

	var question, back struct {
		ID     json.RawMessage
		Method string
		Params struct{ RequestID json.RawMessage }
	}
	require.NoError(t, json.Unmarshal([]byte(c.ask(`{"jsonrpc":"2.0","id":1,"method":"ask"}`)), &question))
	assert.Equal(t, "question", question.Method)
	require.NoError(t, json.Unmarshal([]byte(c.next()), &back))
	assert.Equal(t, "$/cancel_request", back.Method)
	assert.Equal(t, question.ID, back.Params.RequestID)
	assert.Contains(t, c.next(), "context canceled")
	require.NoError(t, c.close())
}

// Arriving runs before the connection looks at the next message.
func TestArriving(t *testing.T) {
	type key struct{}
	arrived := 0
	reg := server.NewRegistry()
	server.Handle(reg, "long", func(ctx context.Context, _ struct{}) (any, error) { return ctx.Value(key{}), nil }, server.LongRunning(),
		server.Arriving(func(ctx context.Context, params json.RawMessage) context.Context {
			arrived++
			return context.WithValue(ctx, key{}, string(params))
		}))
	server.Handle(reg, "arrived", func(context.Context, struct{}) (int, error) { return arrived, nil })
	c := connect(t, reg, frame.LSP, server.Options{})
	c.send(`{"jsonrpc":"2.0","id":1,"method":"long","params":{"a":1}}`, `{"jsonrpc":"2.0","id":2,"method":"arrived"}`)
	both := c.next() + c.next()
	assert.Contains(t, both, `{"jsonrpc":"2.0","id":1,"result":"{\"a\":1}"}`)
	assert.Contains(t, both, `{"jsonrpc":"2.0","id":2,"result":1}`)
	require.NoError(t, c.close())
}
