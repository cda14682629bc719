package handlers_test

import (
	"context"
	"log/slog"
	"regexp"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/handlers"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/server"
)

// Waiting for a connection waits for all that was started for it.
func TestAConnectionLeavesNothingBehind(t *testing.T) {
	w := newWorld(t, quick)
	reg, workspaces := server.NewRegistry(), handlers.NewWorkspaces()
	handlers.RegisterCore(reg, handlers.Core{LogLevel: new(slog.LevelVar), Workspaces: workspaces})
	handlers.RegisterDomain(reg, handlers.Domain{
		Hub: func(context.Context) (*hub.Hub, error) { return w.hub, nil }, Clients: func() int { return 0 }, Workspaces: workspaces,
	})
	srv := server.New(reg, server.Options{})
	for range 20 {
		c := connectTo(t, srv, frame.LSP)
		c.ask("spawn_terminal", "")
		c.ask("Subscribe", `{"since":0}`)
		c.ask("task.list", "") // it receives task notifications from now on
		c.ask("initialize", `{"workspaceTrusted":false}`)
		assert.NotEmpty(t, goroutinesOfHandlers(), "or this test would see none")
		c.close()
		assert.Empty(t, goroutinesOfHandlers())
	}
}

// goroutinesOfHandlers are what started the goroutines that run functions of the
// package.
func goroutinesOfHandlers() []string {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	var list []string
	for _, g := range regexp.MustCompile(`\n\n`).Split(string(stacks), -1) {
		if regexp.MustCompile(`\n.*/handlers\.[^\n]*\n`).MatchString(g) {
			list = append(list, g)
		}
	}
	return list
}
