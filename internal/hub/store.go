package hub

import (
	"context"
	"errors"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store/health"
)

// stored makes an error of the store one for users.
func stored(err error) error { return health.Explain(err) }

// OrEnding is the error of a request, or that the hub is ending where that is what
// cut the request short, which ctx, its own, did not.
func (h *Hub) OrEnding(ctx context.Context, err error) error {
	if errors.Is(err, context.Canceled) && ctx.Err() == nil && h.ctx.Err() != nil {
		return domain.ErrEnding
	}
	return err
}
