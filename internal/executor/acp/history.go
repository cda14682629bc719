package acp

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/acp"
)

// A history notes that an agent replays the history of its session, which the hub has.
type history struct {
	mu      sync.Mutex // guards the fields below
	loading bool
	updates int // received since the agent was started
}

// received notes an update of the agent.
func (h *history) received() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.updates++
}

// load notes that updates are a replay until done is called.
func (h *history) load() (done func()) {
	h.set(true)
	return func() { h.set(false) }
}

func (h *history) set(loading bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.loading = loading
}

func (h *history) isLoading() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.loading
}

func (h *history) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.updates
}

// methodReplayed is a method that no agent has. Its refusal shows that everything sent before has
// arrived.
const methodReplayed = "_duet/replayed"

// replayTime limits the wait for an agent that does not refuse.
const replayTime = 2 * time.Second

// replayed waits until the agent has sent the whole history. Some agents answer before that.
func (a *agent) replayed() {
	for before := -1; before != a.history.count(); {
		before = a.history.count()
		ctx, cancel := context.WithTimeout(a.life, replayTime)
		_, err := acp.Call[json.RawMessage](ctx, a.conn, methodReplayed, struct{}{})
		late := ctx.Err() != nil
		cancel()
		if late && err != nil {
			return
		}
	}
}
