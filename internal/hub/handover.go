package hub

import (
	"context"
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// A startQueue has the runs that were started and are to be executed.
type startQueue struct {
	due chan struct{} // has one in it when there are some

	mu   sync.Mutex // guards runs
	runs []*liveRun
}

func newStartQueue() *startQueue { return &startQueue{due: make(chan struct{}, 1)} }

// add never waits: it is called by the store's writer.
func (q *startQueue) add(live *liveRun) {
	q.mu.Lock()
	q.runs = append(q.runs, live)
	q.mu.Unlock()
	select {
	case q.due <- struct{}{}:
	default: // that of another one counts for both
	}
}

// take empties the queue.
func (q *startQueue) take() []*liveRun {
	q.mu.Lock()
	defer q.mu.Unlock()
	runs := q.runs
	q.runs = nil
	return runs
}

// start has a run executed after the commit of its transition to starting.
func (h *Hub) start(t store.Tx, run domain.Run, token string) {
	t.AfterCommit(func() {
		ctx, cancel := context.WithCancel(h.ctx)
		live := &liveRun{
			run: run, ctx: ctx, cancel: cancel, token: token, secrets: h.keys.Hold(run.Thread),
			ended: make(chan struct{}), answered: make(chan struct{}),
		}
		live.reports = h.intake.Begin(run.ID, run.UUID, live.secrets)
		h.mu.Lock()
		h.live[run.ID] = live
		h.mu.Unlock()
		h.toExecute.add(live)
	})
}
