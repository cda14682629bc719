package query

import (
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// Limits of the session cache: number, and bytes of text, because prompts and results may have
// megabytes.
const (
	sessionsKept      = 4096
	sessionsKeptBytes = 16 << 20
)

// recentSessions caches recently used sessions. It may be used by any goroutine.
type recentSessions struct {
	mu    sync.Mutex // guards the fields below
	byRun map[int64]domain.Session
	bytes int
}

func newRecentSessions() *recentSessions {
	return &recentSessions{byRun: make(map[int64]domain.Session)}
}

func sessionSize(s domain.Session) int {
	n := len(s.Prompt) + len(s.Result) + len(s.Error) + len(s.Run.Title) + len(s.Metadata) + len(s.Progress)
	for _, m := range s.Thread.Settings.MCPServers {
		n += m.Size()
	}
	return n
}

func (r *recentSessions) of(run int64) (domain.Session, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, there := r.byRun[run]
	return s, there
}

// keep caches a session, and drops all others if the cache is full.
func (r *recentSessions) keep(s domain.Session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dropLocked(s.Run.ID)
	if len(r.byRun) >= sessionsKept || r.bytes+sessionSize(s) > sessionsKeptBytes {
		clear(r.byRun)
		r.bytes = 0
	}
	r.byRun[s.Run.ID] = s
	r.bytes += sessionSize(s)
}

func (r *recentSessions) drop(run int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dropLocked(run)
}

func (r *recentSessions) dropLocked(run int64) {
	if old, there := r.byRun[run]; there {
		r.bytes -= sessionSize(old)
		delete(r.byRun, run)
	}
}
