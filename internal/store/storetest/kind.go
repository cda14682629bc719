package storetest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// A kind is the kind of the stores under test.
type kind struct{ open Opener }

var ctx = context.Background()

// openAt opens the store of a directory, and closes it when the test ends.
func (k kind) openAt(t *testing.T, dir string, committed ...func([]domain.Event, store.Reader)) store.Store {
	t.Helper()
	var opts store.Options
	if len(committed) > 0 {
		opts.Committed = committed[0]
	}
	s, err := k.open(ctx, dir, opts)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() }) // a second Close is harmless in a test
	return s
}

func (k kind) openNew(t *testing.T, committed ...func([]domain.Event, store.Reader)) store.Store {
	t.Helper()
	return k.openAt(t, t.TempDir(), committed...)
}
