package hub

import (
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// runEnvironments has the environments of the clients that launched the runs that have not
// ended. They are in memory alone. Its methods may be called from any goroutine.
type runEnvironments struct {
	mu    sync.Mutex
	byRun map[int64]clientenv.Environment
	ended map[int64]struct{} // these are kept for the run that follows when their gates fail
}

func newRunEnvironments() *runEnvironments {
	return &runEnvironments{byRun: make(map[int64]clientenv.Environment), ended: make(map[int64]struct{})}
}

// keep gives a run the environment of a client, nil for none, when t is committed.
func (r *runEnvironments) keep(t store.Tx, run int64, e clientenv.Environment) {
	if e == nil {
		return
	}
	t.AfterCommit(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.byRun[run] = e
	})
}

// of returns the environment of the client that launched a run, or nil.
func (r *runEnvironments) of(run int64) clientenv.Environment {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byRun[run]
}

// end drops the environment of a run that has ended. If its gates are checked, tidy does so
// later.
func (r *runEnvironments) end(run int64, checked bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, has := r.byRun[run]; has && checked {
		r.ended[run] = struct{}{}
		return
	}
	delete(r.byRun, run)
}

// tidy drops the environments of ended runs whose gates are not checked any more.
func (r *runEnvironments) tidy(checked func(run int64) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for run := range r.ended {
		if !checked(run) {
			delete(r.ended, run)
			delete(r.byRun, run)
		}
	}
}
