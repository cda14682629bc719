package acp

import (
	"sync"
	"sync/atomic"

	"github.com/coder/acp-go-sdk"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor/silence"
	"github.com/duet-rpc/duet-rpc/internal/executor/task"
)

// A turn is a task in the hands of an agent: what was asked and answered in it,
// and which tools ran.
type turn struct {
	*task.Task
	prompted chan struct{} // closed when the agent has the prompt
	sent     sync.Once     // closes prompted
	told     chan struct{} // closed when the agent was told that the turn is to end, or the turn is over
	answers  deliveries
	tools    toolCalls
	silence  *silence.Watch
	servers  []acp.McpServer // that the agent is told of; nil: not yet put together

	// An agent tells what its session has cost; the turn's share is what was
	// added to it.
	spent       *atomic.Uint64
	spentBefore float64
}

func newTurn(of *task.Task, o Options) *turn {
	t := &turn{Task: of, prompted: make(chan struct{}), told: make(chan struct{})}
	t.silence = silence.New(o.SilentAfter, o.SilentToolAfter, func(s catalog.Silence) { t.Event(catalog.EventSilence, s) })
	return t
}

// hasPrompt reports whether the agent has the prompt.
func (t *turn) hasPrompt() bool {
	select {
	case <-t.prompted:
		return true
	default:
		return false
	}
}

// delivered reports answers that the agent goes on from, before what shows it.
func (t *turn) delivered(approvals []string) {
	if len(approvals) > 0 {
		t.Event(catalog.EventPermissionTaken, catalog.PermissionTaken{ApprovalIDs: approvals})
	}
}
