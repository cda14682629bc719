package adoption

import (
	"context"
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/history"
)

// A historyIntake sees to it that one history is taken over at a time, and that
// none is when the hub ends. The zero value is ready.
type historyIntake struct {
	mu     sync.Mutex // guards the fields below
	cancel context.CancelFunc
	closed bool
}

// begin reports whether a history may be taken over now. The context ends with
// ctx and with close; release is to be called in the end.
func (i *historyIntake) begin(ctx context.Context) (taking context.Context, release func(), err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case i.closed:
		return nil, nil, domain.ErrEnding
	case i.cancel != nil:
		return nil, nil, domain.Errorf(domain.KindBadState, "a history is being taken over already; try again when that is done")
	}
	taking, cancel := context.WithCancel(ctx)
	i.cancel = cancel
	return taking, func() {
		cancel()
		i.mu.Lock()
		defer i.mu.Unlock()
		i.cancel = nil
	}, nil
}

func (i *historyIntake) close() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.closed = true
	if i.cancel != nil {
		i.cancel()
	}
}

// TakeHistory takes the history of another database into the store, beside
// all that goes on: a conversation at a time, and no events tell of it. What was
// taken when it fails, or ctx ends, stays, and is passed over by the next try.
func (a *Adoption) TakeHistory(ctx context.Context, from history.Source, was string) (history.Result, error) {
	ctx, release, err := a.histories.begin(ctx)
	if err != nil {
		return history.Result{}, err
	}
	defer release()
	result, err := history.TakeOver(ctx, from, a.opts.Store, history.Options{Root: a.opts.Root, Was: was})
	return result, a.opts.Note(err)
}
