package handlers

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/agentstatus"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/server"
)

// A Domain is what the methods that work with agents stand on. All functions
// may be called from any goroutine.
type Domain struct {
	// Hub returns the hub. If there is none, its error, a *domain.Error of
	// KindUnavailable, says why.
	Hub     func(ctx context.Context) (*hub.Hub, error)
	Version string
	Now     func() time.Time
	// Stop begins to end the process and returns at once; the reply that
	// tells of it is queued when it is called. With force, running work is not
	// waited for.
	Stop func(force bool)
	// Configuration is that of the project as it is now; restricted, as it is for
	// who does not trust the workspace.
	Configuration func(restricted bool) (*config.Config, error)
	Clients       func() int      // how many connections there are
	Sockets       func() []string // where it listens; may be nil
	Unserved      func() []string // who cannot reach it who looks for one, and why; may be nil
	Logger        *slog.Logger
	// EditorFiles, if set, are told which files are read by a connection.
	EditorFiles *Readers
	// Workspaces, if set, knows who does not trust the workspace.
	Workspaces *Workspaces
	// Unwatched, if set, remembers what went on without a client.
	Unwatched *Unwatched
	// AgentNotes, if set, are what agents have told of themselves last.
	AgentNotes *agentstatus.Notes
}

// RegisterDomain registers the methods of tasks, sessions and executors. flush waits
// until all subscribers, and those of event.task…, were sent what has happened, or its
// context ends.
func RegisterDomain(reg *server.Registry, d Domain) (flush func(context.Context)) {
	if d.Now == nil {
		d.Now = time.Now
	}
	if d.Logger == nil {
		d.Logger = slog.New(slog.DiscardHandler)
	}
	b := registerTasks(reg, d)
	registerDaemon(reg, d)
	registerAutomation(reg, d)
	registerSessions(reg, d)
	registerQueue(reg, d)
	registerAgents(reg, d)
	registerSignIn(reg, d)
	registerNativeSessions(reg, d)
	registerBuilds(reg, d)
	registerGates(reg, d)
	registerConversation(reg, d)
	registerAttachments(reg, d)
	registerApprovals(reg, d)
	registerRules(reg, d)
	registerBoundary(reg, d)
	registerMCP(reg, d)
	registerPreview(reg, d)
	w := newWatching()
	s := registerSubscribe(reg, d, w)
	registerExecutor(reg, d)
	registerTerminals(reg, d, w)
	return func(ctx context.Context) {
		var both sync.WaitGroup
		both.Go(func() { b.flushed(ctx) })
		both.Go(func() { s.flushed(ctx) })
		both.Wait()
	}
}
