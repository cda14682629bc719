package sqlite

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/store/storetest"
)

func TestMain(m *testing.M) {
	storetest.InMemory()
	goleak.VerifyTestMain(m)
}

var ctx = context.Background()

// openAt opens a store, and closes it when the test ends.
func openAt(t *testing.T, path string, committed ...func([]domain.Event, store.Reader)) *Store {
	t.Helper()
	var opts store.Options
	if len(committed) > 0 {
		opts.Committed = committed[0]
	}
	s, err := Open(ctx, path, opts)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() }) // a second Close is harmless in a test
	return s
}

func openNew(t *testing.T, committed ...func([]domain.Event, store.Reader)) *Store {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "duet.db"), committed...)
}

// withTimes returns a with the times of b that are the same moments.
