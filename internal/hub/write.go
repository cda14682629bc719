package hub

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/removal"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// write is change with errors for users.
func (h *Hub) write(ctx context.Context, change func(store.Tx) error) error {
	return h.noteWrite(h.change(ctx, change))
}

// change is the store's Write for changes in which runs may change their state.
// Where that lets queued runs start, they start in the same transaction: should
// the process die between two, nobody would start them.
func (h *Hub) change(ctx context.Context, change func(store.Tx) error) error {
	return h.store.Write(ctx, func(t store.Tx) error {
		h.mayStart = false // as a change may have left it that was undone
		h.client = clientenv.From(ctx)
		if err := change(t); err != nil || !h.mayStart {
			return err
		}
		return h.schedule(t)
	})
}

// Delete deletes the conversation that an id names; see package removal.
func (h *Hub) Delete(ctx context.Context, id string) (r removal.Removed, err error) {
	err = h.write(ctx, removal.Change(h.ctx, id, removal.Memory{Runs: h.query, Log: h.events}, &r))
	return r, err
}

// noteWrite notes what the outcome of a write says of the store, and makes an
// error one for users.
func (h *Hub) noteWrite(err error) error {
	h.health.Note(err)
	return stored(err)
}
