package handlers

import (
	"context"
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/server"
)

// Workspaces knows the connections of editors whose user does not trust the
// workspace (initialize), and the environments that clients have sent
// (client.environment). It forgets a connection when that ends. A nil one knows
// none. It may be used by many goroutines at once.
type Workspaces struct {
	mu           sync.Mutex
	restricted   map[*server.Conn]struct{}
	environments map[*server.Conn]clientenv.Environment
}

// NewWorkspaces knows none yet.
func NewWorkspaces() *Workspaces {
	return &Workspaces{restricted: make(map[*server.Conn]struct{}), environments: make(map[*server.Conn]clientenv.Environment)}
}

// context returns the context of a request with what is known of its connection.
func (w *Workspaces) context(ctx context.Context) context.Context {
	if w == nil {
		return ctx
	}
	conn := server.ConnFrom(ctx)
	w.mu.Lock()
	_, restrict := w.restricted[conn]
	e := w.environments[conn]
	w.mu.Unlock()
	if restrict {
		ctx = clientenv.Restrict(ctx)
	}
	if e != nil {
		ctx = clientenv.Context(ctx, e)
	}
	return ctx
}

// setEnvironment keeps the environment that a client has sent, until its connection ends. ctx
// is that of an inline handler.
func (w *Workspaces) setEnvironment(ctx context.Context, e clientenv.Environment) {
	conn := server.ConnFrom(ctx)
	if w == nil || conn == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, known := w.environments[conn]; !known {
		context.AfterFunc(ctx, func() { // the context of inline handlers ends with the connection
			w.mu.Lock()
			defer w.mu.Unlock()
			delete(w.environments, conn)
		})
	}
	w.environments[conn] = e
}

// trust notes what an editor says of the workspace, until its connection ends.
func (w *Workspaces) trust(conn *server.Conn, trusted bool) {
	if w == nil || conn == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if trusted {
		delete(w.restricted, conn)
		return
	}
	if _, known := w.restricted[conn]; known {
		return
	}
	started := conn.Go(func(ctx context.Context) {
		<-ctx.Done()
		w.trust(conn, true)
	})
	if started {
		w.restricted[conn] = struct{}{}
	}
}

func (w *Workspaces) isRestricted(conn *server.Conn) bool {
	if w == nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, restricted := w.restricted[conn]
	return restricted
}
