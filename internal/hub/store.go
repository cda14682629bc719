package hub

import (
	"context"
	"errors"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// stored makes an error of the store one for users.
func stored(err error) error { return store.Explain(err) }

// OrEnding returns the error of a request, or, if the end of the hub cut the request short and
// not its own ctx, why the hub ends.
func (h *Hub) OrEnding(ctx context.Context, err error) error {
	if errors.Is(err, context.Canceled) && ctx.Err() == nil && h.ctx.Err() != nil {
		err = domain.ErrEnding
	}
	if errors.Is(err, domain.ErrEnding) && h.health.Lost() {
		return stored(&store.LostError{Err: err})
	}
	return err
}
