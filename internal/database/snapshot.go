package database

import (
	"context"
	"errors"
	"fmt"

	"github.com/duet-rpc/duet-rpc/internal/origin"
	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite"
)

// ErrNone says that a project has no database yet.
var ErrNone = errors.New("nothing is kept of this project yet")

// IsChanging reports whether an error says that a database is in use, so that it could
// not be read beside whoever uses it.
func IsChanging(err error) bool { return errors.Is(err, sqlite.ErrChanging) }

// Refusals are the errors of a database that is only read.
type Refusals = sqlite.Refusals

// Snapshot opens the project's database for reading, without the project's lock. It
// changes nothing of it, and is in nobody's way. The store refuses changes.
func Snapshot(ctx context.Context, p project.Project, opts store.Options, refuse Refusals) (store.Store, error) {
	found, err := Look(ctx, p)
	if err != nil {
		return nil, err
	}
	switch found.Kind {
	case origin.Ours, origin.Moved:
		opts.ID = found.ID
		return sqlite.OpenSnapshot(ctx, p.Database(), opts, refuse)
	case origin.None:
		return nil, ErrNone
	}
	return nil, fmt.Errorf("%s is not in use, so nothing was read; see `duet-rpc doctor`", p.Database())
}
