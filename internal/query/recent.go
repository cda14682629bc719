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

// recentTurns caches recently used sessions. It may be used by any goroutine.
type recentTurns struct {
	mu     sync.Mutex // guards the fields below
	byTurn map[int64]domain.TurnInSession
	bytes  int
}

func newRecentTurns() *recentTurns {
	return &recentTurns{byTurn: make(map[int64]domain.TurnInSession)}
}

func turnSize(s domain.TurnInSession) int {
	n := len(s.Prompt) + len(s.Result) + len(s.Error) + len(s.Turn.Title) + len(s.Metadata) + len(s.Progress)
	for _, m := range s.Session.Settings.MCPServers {
		n += m.Size()
	}
	return n
}

func (r *recentTurns) of(turn int64) (domain.TurnInSession, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, there := r.byTurn[turn]
	return s, there
}

// keep caches a session, and drops all others if the cache is full.
func (r *recentTurns) keep(s domain.TurnInSession) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dropLocked(s.Turn.ID)
	if len(r.byTurn) >= sessionsKept || r.bytes+turnSize(s) > sessionsKeptBytes {
		clear(r.byTurn)
		r.bytes = 0
	}
	r.byTurn[s.Turn.ID] = s
	r.bytes += turnSize(s)
}

func (r *recentTurns) drop(turn int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dropLocked(turn)
}

func (r *recentTurns) dropLocked(turn int64) {
	if old, there := r.byTurn[turn]; there {
		r.bytes -= turnSize(old)
		delete(r.byTurn, turn)
	}
}
