package hub

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// pausing counts the pause and continue calls of executors.
type pausing struct {
	Executors
	paused, resumed chan struct{}
}

type pausingLease struct {
	catalog.Lease
	owner *pausing
}

func (p *pausing) Acquire(ctx context.Context, w catalog.LeaseRequest) (catalog.Lease, error) {
	l, err := p.Executors.Acquire(ctx, w)
	return pausingLease{l, p}, err
}

func (l pausingLease) PauseNotifications(context.Context) error {
	l.owner.paused <- struct{}{}
	return nil
}

func (l pausingLease) ResumeNotifications(context.Context) error {
	l.owner.resumed <- struct{}{}
	return nil
}

// logOf returns the log from its beginning.
func logOf(t *testing.T, h *Hub) (list []domain.Event) {
	t.Helper()
	for after := int64(0); ; after = list[len(list)-1].Seq {
		page, err := h.store.Events(t.Context(), after, 4096)
		require.NoError(t, err)
		list = append(list, page...)
		if len(page) < 4096 {
			return list
		}
	}
}

func TestAnExecutorThatIsFasterThanTheDiskPausesAndNothingIsLost(t *testing.T) {
	const all = 10_000
	p := &pausing{paused: make(chan struct{}, all), resumed: make(chan struct{}, all)}
	written, proceed := make(chan struct{}), make(chan struct{})
	h := openHub(t, database(t), func(_ context.Context, x *turn) catalog.ExecutePromptResult {
		<-written // the disk is blocked
		for x.n < all/2 {
			x.say(fmt.Sprintf("%d ", x.n))
		}
		<-p.paused
		x.say(fmt.Sprintf("%d ", x.n)) // already on its way
		close(proceed)
		<-p.resumed
		for x.n < all {
			x.say(fmt.Sprintf("%d ", x.n))
		}
		return completed
	}, func(o *Options) {
		others := o.Executors
		o.Executors = func(d catalog.Daemon) Executors { p.Executors = others(d); return p }
	})
	s := launch(t, h, "p")
	inState(t, h, s, domain.Running)
	h.store.Enqueue(func(store.Tx) error {
		close(written)
		<-proceed
		return nil
	}, func(error) {})
	s = await(t, h, s)

	var want strings.Builder
	for i := range all {
		fmt.Fprintf(&want, "%d ", i)
	}
	assert.Equal(t, want.String(), s.Result)
	var text strings.Builder
	for i, e := range logOf(t, h) {
		require.Equal(t, int64(i+1), e.Seq, "no gap")
		if d, ok := e.Payload.(domain.MessageDelta); ok {
			text.WriteString(d.Text)
		}
	}
	assert.Equal(t, want.String(), text.String())
}
