package host

import (
	"context"
	"errors"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite"
)

// This file reads a project's database without its hub, for commands. It changes nothing there,
// and a hub may use the database meanwhile.

// CheckDatabase checks whether the project's database can be used. tellsTodo reports whether the
// error names the remedy.
func CheckDatabase(ctx context.Context, p project.Project) (tellsTodo bool, err error) {
	err = sqlite.Check(ctx, p.Database())
	var broken *sqlite.OpenError
	return errors.As(err, &broken) && broken.Reason != "unreadable", err
}

// CannotOpen returns why a hub cannot open the project's database as it is; nil if it can, or if that
// is not known. It reads little of the file: see CheckDatabase.
func CannotOpen(ctx context.Context, p project.Project) error {
	_, err := sqlite.CountSessions(ctx, p.Database())
	var broken *sqlite.OpenError
	if errors.As(err, &broken) && broken.Reason != "unreadable" { // as an empty file is
		return broken
	}
	return nil
}

// CountSessions returns the number of sessions of the project.
func CountSessions(ctx context.Context, p project.Project) (int, error) {
	return sqlite.CountSessions(ctx, p.Database())
}

// KeyAccesses lists the latest requests for API keys by agents of the project, the newest first.
func KeyAccesses(ctx context.Context, p project.Project, limit int) ([]domain.KeyAccess, error) {
	return sqlite.KeyAccesses(ctx, p.Database(), limit)
}
