package sqlite

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/store/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(ctx context.Context, dir string, opts store.Options) (store.Store, error) {
		return Opener(filepath.Join(dir, "duet.db"))(ctx, opts)
	})
}
