//go:build !unix

package worktree

import (
	"context"
	"io"
	"os"
	"time"

	"github.com/gofrs/flock"
)

// lockFileOf locks a file until it is closed.
func lockFileOf(ctx context.Context, path string) (io.Closer, error) {
	lock := flock.New(path, flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, 10*time.Millisecond); err != nil {
		return nil, err
	}
	return lock, nil
}

func keepable(io.Closer) *os.File { return nil }
