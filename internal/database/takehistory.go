package database

import (
	"context"
	"path/filepath"

	"github.com/duet-rpc/duet-rpc/internal/history"
	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite"
)

// takeHistory takes the history of a database over into another one. was is
// the path that it had in its own project, or "".
func takeHistory(ctx context.Context, p project.Project, database, was string, into *sqlite.Store) (history.Result, error) {
	from, err := sqlite.OpenForeign(ctx, database)
	if err != nil {
		return history.Result{}, err
	}
	defer from.Close()
	return history.TakeOver(ctx, from, into, history.Options{Root: p.Root, Was: rootOf(was, p)})
}

// rootOf is the root of the project whose database had a path, or "" where the
// state was not in the project.
func rootOf(database string, p project.Project) string {
	state := filepath.Dir(database)
	if database == "" || filepath.Dir(p.StateDir) != p.Root || filepath.Base(state) != filepath.Base(p.StateDir) {
		return ""
	}
	return filepath.Dir(state)
}
