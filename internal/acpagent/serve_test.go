package acpagent

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hubOf returns a hub with an agent that has an open question and never ends.
func hubOf(t *testing.T) *client.Client {
	reg := server.NewRegistry()
	answer := func(method, result string) {
		server.HandleRaw(reg, method, func(context.Context, json.RawMessage) (json.RawMessage, error) { return json.RawMessage(result), nil })
	}
	answer("agent.list", `{"agents":[{"name":"a","available":true}]}`)
	answer("agent.describe", `{"agent":"a","modes":[{"id":"default"}]}`)
	answer("daemon.status", `{"subsystems":{"store":{"last_seq":7}}}`)
	answer("session.start", `{"turn_uuid":"turn","session_uuid":"session","agent":"a"}`)
	answer("event.unsubscribe", `{"success":true}`)
	answer("turn.interrupt", `{"success":true}`)
	server.HandleRaw(reg, "event.subscribe", func(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
		assert.Contains(t, string(params), `"since":7`)
		conn := server.ConnFrom(ctx)
		server.AfterReply(ctx, func() {
			conn.Go(func(ctx context.Context) {
				for _, event := range []string{
					`{"subscription_id":"s","seq":8,"kind":"turn.state","turn_uuid":"turn","data":{"state":"running"}}`,
					`{"subscription_id":"s","seq":9,"kind":"approval.opened","turn_uuid":"turn","data":{"approval":"q","type":"function_call","tool_name":"Bash"}}`,
				} {
					_ = conn.Notify(ctx, "event", json.RawMessage(event))
				}
			})
		})
		return json.RawMessage(`{"subscription_id":"s","seq":7}`), nil
	})
	near, far := server.Pipe()
	served := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		served <- server.New(reg, server.Options{Logger: slog.New(slog.DiscardHandler)}).Serve(ctx, far, frame.LSP)
	}()
	hub, err := client.Dial(t.Context(), client.OverTransport(near, frame.LSP))
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, hub.Close())
		require.NoError(t, <-served)
		cancel()
	})
	return hub
}

// A client that disconnects in the middle of a turn leaves no goroutine and no request.
func TestDisconnectLeavesNothingBehind(t *testing.T) {
	hub := hubOf(t)
	near, far := server.Pipe()
	served := make(chan error, 1)
	go func() { served <- Serve(t.Context(), far, hub, Options{Logger: slog.New(slog.DiscardHandler)}) }()
	in := bufio.NewReader(near)
	say := func(message string) {
		_, err := io.WriteString(near, message+"\n")
		require.NoError(t, err)
	}
	var session string
	// heard returns the next message with the member.
	heard := func(member string) (m map[string]json.RawMessage) {
		for m[member] == nil {
			m = nil
			line, err := in.ReadBytes('\n')
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(line, &m))
		}
		return m
	}
	say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`)
	heard("result")
	say(`{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}`)
	require.NoError(t, json.Unmarshal(heard("result")["result"], &struct {
		SessionID *string `json:"sessionId"`
	}{&session}))
	say(`{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"` + session + `","prompt":[{"type":"text","text":"x"}]}}`)
	for {
		if m := heard("method"); string(m["method"]) == `"session/request_permission"` {
			break
		}
	}
	require.NoError(t, near.Close())
	require.NoError(t, <-served)
}
