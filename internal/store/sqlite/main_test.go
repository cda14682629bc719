package sqlite

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	_ "github.com/duet-rpc/duet-rpc/internal/golden" // for go test ./... -update
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ctx = context.Background()

// openAt opens a store, and closes it when the test ends.
func openAt(t *testing.T, path string, committed ...func([]domain.Event)) *Store {
	t.Helper()
	var opts store.Options
	if len(committed) > 0 {
		opts.Committed = committed[0]
	}
	s, err := Open(ctx, path, opts)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() }) // a second Close is no harm to a test
	return s
}

func openNew(t *testing.T, committed ...func([]domain.Event)) *Store {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "duet.db"), committed...)
}

func write(t *testing.T, s *Store, change func(store.Tx) error) {
	t.Helper()
	require.NoError(t, s.Write(ctx, change))
}

func newThread(t *testing.T, s *Store, alias string) domain.Thread {
	t.Helper()
	th := domain.Thread{UUID: uuid.NewString(), CWD: "/p", Agent: "a", Created: time.Unix(1, 0), Active: time.Unix(1, 0)}
	write(t, s, func(tx store.Tx) error {
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

func addRun(t *testing.T, s *Store, thread int64, state domain.State, change ...func(*domain.Run)) domain.Run {
	t.Helper()
	r := storetest.NewRun(thread, state, change...)
	write(t, s, func(tx store.Tx) error { return tx.InsertRun(&r) })
	return r
}

// allEvents is the whole log.
func allEvents(t *testing.T, s *Store) []domain.Event {
	t.Helper()
	list, err := s.Events(ctx, 0, 1_000_000)
	require.NoError(t, err)
	return list
}

// held is a change that keeps the writer busy until it is let go.
func held(s *Store) (begun <-chan struct{}, release func()) {
	in, out := make(chan struct{}), make(chan struct{})
	s.Enqueue(func(store.Tx) error {
		close(in)
		<-out
		return nil
	}, func(error) {})
	return in, sync.OnceFunc(func() { close(out) })
}

// withTimes is a with the times of b, where they are the same moments.
