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

// NewSession adds a session, with an alias unless that is "".
func NewSession(t *testing.T, s store.Store, alias string) domain.Session {
	t.Helper()
	session := domain.Session{UUID: uuid.NewString(), CWD: "/p", Agent: "a", Created: time.Unix(1, 0), Active: time.Unix(1, 0)}
	Write(t, s, func(tx store.Tx) error {
		if err := tx.InsertSession(&session); err != nil {
			return err
		}
		if alias != "" {
			if err := tx.SetAlias(alias, 0, session.ID); err != nil {
				return err
			}
		}
		return tx.SetAlias(session.UUID, 0, session.ID)
	})
	return session
}

// NewTurn returns a turn of a session, modified by change. It is not stored yet.
func NewTurn(session int64, state domain.State, change ...func(*domain.Turn)) domain.Turn {
	r := domain.Turn{
		UUID: uuid.NewString(), HumanLayerSession: uuid.NewString(), HumanLayerRun: uuid.NewString(), Session: session, Prompt: "p", Agent: "a",
		Source: "task", State: state, Created: time.Unix(1, 0), Active: time.Unix(1, 0),
	}
	for _, f := range change {
		f(&r)
	}
	return r
}

// AddTurn adds a turn made by [NewTurn].
func AddTurn(t *testing.T, s store.Store, session int64, state domain.State, change ...func(*domain.Turn)) domain.Turn {
	t.Helper()
	r := NewTurn(session, state, change...)
	Write(t, s, func(tx store.Tx) error { return tx.InsertTurn(&r) })
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
