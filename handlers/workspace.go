package handlers

import (
	"context"
	"sync"

	"github.com/duet-rpc/duet-rpc/server"
)

// Workspaces knows the connections of editors whose user does not trust the
// workspace (initialize). A nil one knows none. It may be used by many
// goroutines at once.
type Workspaces struct {
	mu         sync.Mutex
	restricted map[*server.Conn]struct{}
}

// NewWorkspaces knows none yet.
func NewWorkspaces() *Workspaces {
	return &Workspaces{restricted: make(map[*server.Conn]struct{})}
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
