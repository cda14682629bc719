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

// LeaseOf is as of [threadsettings.Runs].
func (f forSettings) LeaseOf(thread int64) catalog.Lease {
	f.hub.mu.Lock()
	defer f.hub.mu.Unlock()
	for _, live := range f.hub.live {
		if live.run.Thread == thread && live.lease != nil {
			return live.lease
		}
	}
	return nil
}
