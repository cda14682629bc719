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

// A program that is mainly a client receives everything that is not a request, in order, and
// still serves requests.
func TestClientSide(t *testing.T) {
	for _, f := range []frame.Framing{frame.LSP, frame.NDJSON} {
		var seen []string
		c := connect(t, standard(), f, server.Options{
			OnResponse: func(_ *server.Conn, m *frame.Message) { seen = append(seen, string(m.Body)) },
			OnNotification: func(_ *server.Conn, method string, params json.RawMessage) {
				seen = append(seen, method+" "+string(params))
			},
		})
		event, late, bare := `{"jsonrpc":"2.0","result":{"event":1}}`, `{"jsonrpc":"2.0","id":7,"error":{}}`, `{"jsonrpc":"2.0","id":8}`
		note, registered := `{"jsonrpc":"2.0","method":"note","params":[1]}`, `{"jsonrpc":"2.0","method":"echo"}`
		echo, reply := `{"jsonrpc":"2.0","id":1,"method":"echo","params":5}`, `{"jsonrpc":"2.0","id":1,"result":5}`
		c.send(event, note, late, bare, registered, `{"method":"note"}`, `{"jsonrpc":"2.0","method":5}`, `{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":9}}`)
		assert.Equal(t, reply, c.ask(echo), "nothing else is answered")
		assert.Equal(t, "["+reply+"]", c.ask("["+event+","+echo+","+note+"]"), "also in a batch")
		assert.Contains(t, c.ask(`{"id":2,"method":"echo"}`), `"id":2,"error":{"code":-32600`)
		require.NoError(t, c.close())
		assert.Equal(t, []string{event, "note [1]", late, bare, "echo ", event, "note [1]"}, seen)
		assert.NotContains(t, c.log.String(), "no request of ours")
	}
}

// OnResponse does not receive answers to a Call; it receives the rest.
func TestClientSideCalls(t *testing.T) {
	near, far := server.Pipe()
	seen := make(chan string, 10)
	serving := server.New(standard(), server.Options{}).Connect(context.Background(), far, frame.NDJSON)
	calling := server.New(server.NewRegistry(), server.Options{
		OnResponse: func(_ *server.Conn, m *frame.Message) { seen <- string(m.Body) },
	}).Connect(context.Background(), near, frame.NDJSON)
	require.NoError(t, serving.Send(context.Background(), map[string]any{"jsonrpc": "2.0", "id": 1, "result": "stray"}))
	assert.Equal(t, `{"id":1,"jsonrpc":"2.0","result":"stray"}`, <-seen)
	var result int
	require.NoError(t, calling.Call(context.Background(), "echo", []int{5}, &[]int{}))
	require.Error(t, calling.Call(context.Background(), "echo", []int{5}, &result), "it does not fit")
	assert.Empty(t, seen)
	calling.End()
	<-calling.Done()
	<-serving.Done()
}
