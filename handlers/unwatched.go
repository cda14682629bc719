package handlers

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
)

// Unwatched remembers which sessions were at work when the last subscription ended, so that the
// next client can show that they went on. Each user gets that once. A nil one remembers
// nothing. It may be used by many goroutines at once.
type Unwatched struct {
	once func() bool // reports true once for each user

	mu       sync.Mutex // guards the fields below
	watching int        // how many subscriptions there are
	sessions []string   // the names of their tasks
}

// NewUnwatched remembers nothing yet. once reports true once for each user.
func NewUnwatched(once func() bool) *Unwatched { return &Unwatched{once: once} }

// statusWithin is how long the hub may take to list what runs.
const statusWithin = 200 * time.Millisecond

func (u *Unwatched) begin() {
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.watching++
}

func (u *Unwatched) end(h *hub.Hub) {
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.watching--; u.watching > 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), statusWithin)
	defer cancel()
	status, err := h.Status(ctx)
	if err != nil { // the hub ends, and with it what runs
		return
	}
	u.sessions = nil
	for _, s := range status.Running {
		if s.State != domain.WaitingInput {
			u.sessions = append(u.sessions, domain.TaskName(s.Task))
		}
	}
}

// Notice says that sessions went on while no client followed them; "" if none did, or the user
// was told before. The client that gets it shows it.
func (u *Unwatched) Notice() string {
	if u == nil {
		return ""
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.sessions) == 0 || !u.once() {
		return ""
	}
	which := strings.Join(u.sessions, ", ")
	u.sessions = nil
	return which + " went on while no editor or shell was there; see when_alone in [daemon]"
}
