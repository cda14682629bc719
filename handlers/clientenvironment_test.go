package handlers

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/server"
)

// The requests of a connection have the environment that its client has sent last. Nothing of a
// connection is kept when it has ended.
func TestAClientsEnvironment(t *testing.T) {
	workspaces := NewWorkspaces()
	reg := server.NewRegistry()
	RegisterCore(reg, Core{LogLevel: new(slog.LevelVar), Now: time.Now, Workspaces: workspaces})
	server.Handle(reg, "seen", func(ctx context.Context, _ none) (clientenv.Environment, error) {
		return clientenv.From(workspaces.context(ctx)), nil
	}, server.LongRunning())
	srv := server.New(reg, server.Options{})
	connect := func() (*client.Client, chan error) {
		ours, end := server.Pipe()
		served := make(chan error, 1)
		go func() { served <- srv.Serve(context.Background(), ours, frame.LSP) }()
		c, err := client.Dial(t.Context(), client.Opener(func(context.Context) (server.Transport, error) { return end, nil }), client.WithFraming(frame.LSP), client.WithReconnect(false))
		require.NoError(t, err)
		return c, served
	}
	mine, served := connect()
	other, otherServed := connect()
	seen := func(c *client.Client) (e clientenv.Environment) {
		t.Helper()
		require.NoError(t, c.Call(t.Context(), "seen", nil, &e))
		return e
	}
	send := func(environment any) error {
		return mine.Call(t.Context(), "client.environment", map[string]any{"environment": environment}, nil)
	}
	assert.Nil(t, seen(mine))
	for _, e := range []clientenv.Environment{{"A": "1", "B": "2"}, {"A": "3"}} {
		require.NoError(t, send(e))
		assert.Equal(t, e, seen(mine))
		assert.Nil(t, seen(other))
	}
	for want, refused := range map[string]any{
		"null":               nil,
		"integer":            map[string]any{"A": 1},
		"a NUL in the value": map[string]any{"A": "secret\x00"},
		"more than 65536":    map[string]any{"A": strings.Repeat("secret", 20_000)},
	} {
		err := send(refused)
		require.ErrorContains(t, err, want)
		assert.NotContains(t, err.Error(), "secret")
	}
	assert.Equal(t, clientenv.Environment{"A": "3"}, seen(mine), "what is refused changes nothing")
	require.NoError(t, mine.Close())
	require.NoError(t, <-served)
	assert.Eventually(t, func() bool {
		workspaces.mu.Lock()
		defer workspaces.mu.Unlock()
		return len(workspaces.environments) == 0
	}, time.Minute, time.Millisecond)
	require.NoError(t, other.Close())
	require.NoError(t, <-otherServed)
	var unknown *Workspaces
	unknown.setEnvironment(t.Context(), clientenv.Environment{})
	assert.Equal(t, t.Context(), unknown.context(t.Context()))
}
