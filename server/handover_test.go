package server_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/server"
)

func framed(messages ...string) (out []byte) {
	for _, m := range messages {
		out = frame.Append(out, frame.LSP, []byte(m))
	}
	return out
}

// A connection is handed over: what came before the message was served and answered, a
// long-running request too, and the message and what was read behind it are the next reader's.
func TestServeUntil(t *testing.T) {
	reg := server.NewRegistry()
	server.HandleRaw(reg, "echo", func(_ context.Context, params json.RawMessage) (json.RawMessage, error) { return params, nil })
	release := make(chan struct{})
	server.Handle(reg, "wait", func(context.Context, struct{}) (bool, error) { <-release; return true, nil }, server.LongRunning())
	srv := server.New(reg, server.Options{Logger: slog.New(slog.DiscardHandler)})
	type handed struct {
		rest []byte
		err  error
	}
	serve := func(ctx context.Context, until string) (server.Transport, server.Transport, chan handed) {
		ours, end := server.Pipe()
		t.Cleanup(func() { end.Close() })
		over := make(chan handed, 1)
		go func() {
			rest, err := srv.ServeUntil(ctx, ours, frame.LSP, func(m *frame.Message) bool { return string(m.Method) == until })
			over <- handed{rest, err}
		}()
		return ours, end, over
	}

	ours, end, over := serve(t.Context(), `"theirs"`)
	behind := framed(`{"jsonrpc":"2.0","id":3,"method":"theirs","params":[1]}`, `{"jsonrpc":"2.0","id":4,"method":"echo"}`)
	behind = append(behind, "Content-Length: 5\r\n\r\n[1"...) // the half of a frame
	_, err := end.Write(append(framed(`{"jsonrpc":"2.0","id":1,"method":"wait"}`, `{"jsonrpc":"2.0","id":2,"method":"echo","params":["a"]}`), behind...))
	require.NoError(t, err)
	reader := frame.NewReader(end, frame.LSP, frame.Limits{})
	var m frame.Message
	require.NoError(t, reader.Next(&m))
	require.Equal(t, `{"jsonrpc":"2.0","id":2,"result":["a"]}`, string(m.Body))
	require.Empty(t, over, "a request is under way")
	close(release)
	require.NoError(t, reader.Next(&m))
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":true}`, string(m.Body))
	h := <-over
	require.NoError(t, h.err)
	require.Equal(t, string(behind), string(h.rest))
	assert.Zero(t, srv.ConnCount())
	for _, way := range [][2]server.Transport{{ours, end}, {end, ours}} { // it is open
		go way[0].Write([]byte("x"))
		var one [1]byte
		_, err = io.ReadFull(way[1], one[:])
		require.NoError(t, err)
	}
	ours.Close()

	// Nothing is handed over: the peer leaves, or the context ends.
	_, end, over = serve(t.Context(), `"theirs"`)
	_, err = end.Write(framed(`{"jsonrpc":"2.0","method":"echo"}`))
	require.NoError(t, err)
	require.NoError(t, end.Close())
	require.Equal(t, handed{}, <-over)
	ctx, cancel := context.WithCancel(t.Context())
	_, _, over = serve(ctx, `"theirs"`)
	cancel()
	require.Equal(t, handed{}, <-over)
}
