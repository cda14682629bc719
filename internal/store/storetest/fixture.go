package storetest

import (
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// Write makes a change that must succeed.
func Write(t *testing.T, s store.Store, change func(store.Tx) error) {
	t.Helper()
	require.NoError(t, s.Write(ctx, change))
}

// NewThread adds a thread, with an alias unless that is "".
func NewThread(t *testing.T, s store.Store, alias string) domain.Thread {
	t.Helper()
	th := domain.Thread{UUID: uuid.NewString(), CWD: "/p", Agent: "a", Created: time.Unix(1, 0), Active: time.Unix(1, 0)}
	Write(t, s, func(tx store.Tx) error {
		if err := tx.InsertThread(&th); err != nil {
			return err
		}
		if alias != "" {
			if err := tx.SetAlias(alias, 0, th.ID); err != nil {
				return err
			}
		}
		return tx.SetAlias(th.UUID, 0, th.ID)
	})
	return th
}

// NewRun returns a run of a thread, modified by change. It is not stored yet.
func NewRun(thread int64, state domain.State, change ...func(*domain.Run)) domain.Run {
	r := domain.Run{
		UUID: uuid.NewString(), SessionID: uuid.NewString(), RunID: uuid.NewString(), Thread: thread, Prompt: "p", Agent: "a",
		Source: "task", State: state, Created: time.Unix(1, 0), Active: time.Unix(1, 0),
	}
	for _, f := range change {
		f(&r)
	}
	return r
}

// AddRun adds a run made by [NewRun].
func AddRun(t *testing.T, s store.Store, thread int64, state domain.State, change ...func(*domain.Run)) domain.Run {
	t.Helper()
	r := NewRun(thread, state, change...)
	Write(t, s, func(tx store.Tx) error { return tx.InsertRun(&r) })
	return r
}

// AllEvents returns the whole log.
func AllEvents(t *testing.T, s store.Store) []domain.Event {
	t.Helper()
	list, err := s.Events(ctx, 0, 1_000_000)
	require.NoError(t, err)
	return list
}

// Held queues a change that blocks the writer until release is called. begun is closed when the
// change has started.
func Held(s store.Store) (begun <-chan struct{}, release func()) {
	in, out := make(chan struct{}), make(chan struct{})
	s.Enqueue(func(store.Tx) error {
		close(in)
		<-out
		return nil
	}, func(error) {})
	return in, sync.OnceFunc(func() { close(out) })
}
