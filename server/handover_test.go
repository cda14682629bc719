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

// ServeUntil hands a connection over: the next reader gets the message and the bytes read after
// it. Its writes follow the answers to all earlier messages, also to a long-running request.
func TestServeUntil(t *testing.T) {
	reg := server.NewRegistry()
	server.HandleRaw(reg, "echo", func(_ context.Context, params json.RawMessage) (json.RawMessage, error) { return params, nil })
	release := make(chan struct{})
	server.Handle(reg, "wait", func(context.Context, struct{}) (bool, error) { <-release; return true, nil }, server.LongRunning())
	srv := server.New(reg, server.Options{Logger: slog.New(slog.DiscardHandler)})
	type handed struct {
		next server.Transport
		err  error
	}
	serve := func(ctx context.Context) (server.Transport, chan handed) {
		ours, end := server.Pipe()
		t.Cleanup(func() { end.Close() })
		over := make(chan handed, 1)
		go func() {
			next, err := srv.ServeUntil(ctx, ours, frame.LSP, func(m *frame.Message) bool { return string(m.Method) == `"theirs"` })
			over <- handed{next, err}
		}()
		return end, over
	}

	end, over := serve(t.Context())
	behind := framed(`{"jsonrpc":"2.0","id":3,"method":"theirs","params":[1]}`, `{"jsonrpc":"2.0","id":4,"method":"echo"}`)
	behind = append(behind, "Content-Length: 5\r\n\r\n[1"...) // the half of a frame
	go end.Write(append(framed(`{"jsonrpc":"2.0","id":1,"method":"wait"}`, `{"jsonrpc":"2.0","id":2,"method":"echo","params":["a"]}`), behind...))
	reader := frame.NewReader(end, frame.LSP, frame.Limits{})
	var m frame.Message
	require.NoError(t, reader.Next(&m))
	require.Equal(t, `{"jsonrpc":"2.0","id":2,"result":["a"]}`, string(m.Body))
	h := <-over
	require.NoError(t, h.err)
	rest := make([]byte, len(behind))
	must(io.ReadFull(h.next, rest))(t)
	require.Equal(t, string(behind), string(rest))
	go h.next.Write(framed(`{"jsonrpc":"2.0","id":3,"result":"theirs"}`))
	close(release)
	for _, want := range []string{`{"jsonrpc":"2.0","id":1,"result":true}`, `{"jsonrpc":"2.0","id":3,"result":"theirs"}`} {
		require.NoError(t, reader.Next(&m))
		require.Equal(t, want, string(m.Body))
	}
	go end.Write([]byte("more"))
	must(io.ReadFull(h.next, rest[:4]))(t)
	require.Equal(t, "more", string(rest[:4]))
	assert.Zero(t, srv.ConnCount())
	require.NoError(t, h.next.Close())

	// No handover: the peer leaves, or the context ends.
	end, over = serve(t.Context())
	must(end.Write(framed(`{"jsonrpc":"2.0","method":"echo"}`)))(t)
	require.NoError(t, end.Close())
	require.Equal(t, handed{}, <-over)
	ctx, cancel := context.WithCancel(t.Context())
	_, over = serve(ctx)
	cancel()
	require.Equal(t, handed{}, <-over)

	// The next reader leaves before the earlier messages are answered.
	release = make(chan struct{})
	defer close(release)
	end, over = serve(t.Context())
	go end.Write(framed(`{"jsonrpc":"2.0","id":1,"method":"wait"}`, `{"jsonrpc":"2.0","method":"theirs"}`))
	h = <-over
	require.NoError(t, h.next.Close())
	require.Error(t, failureOf(h.next.Write([]byte("x"))))
}
