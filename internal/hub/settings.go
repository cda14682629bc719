package hub

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/threadsettings"
)

// Settings are those of conversations, and what their agents can be asked for.
func (h *Hub) Settings() *threadsettings.Settings { return h.settings }

// forSettings is the life of runs as the settings of conversations need it.
type forSettings struct{ hub *Hub }

// Write is as of [threadsettings.Runs].
func (f forSettings) Write(ctx context.Context, change func(store.Tx) error) error {
	return f.hub.write(ctx, change)
}

// LeaseOf is as of [threadsettings.Runs]. What is stored counts: a reader may see the
// end of a run before it is gone from memory, and what it then sets is for the next prompt.
func (f forSettings) LeaseOf(ctx context.Context, thread int64) (catalog.Lease, error) {
	lease, run := f.hub.leaseOf(thread)
	if lease == nil {
		return nil, nil
	}
	now, err := f.hub.store.Run(ctx, run)
	if err != nil || now.State.Ended() {
		return nil, err
	}
	return lease, nil
}

// leaseOf is the executor that works for a thread, or nil, and the run that it works on.
func (h *Hub) leaseOf(thread int64) (catalog.Lease, int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, live := range h.live {
		if live.run.Thread == thread && live.lease != nil {
			return live.lease, id
		}
	}
	return nil, 0
}
