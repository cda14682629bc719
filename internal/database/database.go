// Package database reads the database of a project from outside of its hub. It changes nothing
// there.
package database

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite"
)

// ErrNone reports that a project has no database yet.
var ErrNone = errors.New("nothing is kept of this project yet")

// Exists reports whether the project has a database.
func Exists(p project.Project) bool {
	_, err := os.Lstat(p.Database())
	return !errors.Is(err, fs.ErrNotExist)
}

// Check checks whether the project's database can be used. tellsTodo reports whether the error
// names the remedy.
func Check(ctx context.Context, p project.Project) (tellsTodo bool, err error) {
	err = sqlite.Check(ctx, p.Database())
	var broken *sqlite.OpenError
	return errors.As(err, &broken) && broken.Reason != "unreadable", err
}

// IsUnusable reports whether an error means that the database itself cannot be used, not that
// another step failed.
func IsUnusable(err error) bool { return errors.As(err, new(*sqlite.OpenError)) }

// Conversations returns the number of conversations of the project. A hub may use the database
// meanwhile.
func Conversations(ctx context.Context, p project.Project) (int, error) {
	return sqlite.Conversations(ctx, p.Database())
}

// A KeyAccess records that an agent requested the API key of a service.
type KeyAccess struct {
	At        time.Time `json:"at"`
	SessionID string    `json:"session_id"`
	Service   string    `json:"service"`
	Outcome   string    `json:"outcome"` // the source of the key, or the reason why there was none; in words
}

// KeyAccesses lists the latest requests for API keys by agents of the project, the newest first.
// A hub may use the database meanwhile.
func KeyAccesses(ctx context.Context, p project.Project, limit int) ([]KeyAccess, error) {
	accesses, err := sqlite.KeyAccesses(ctx, p.Database(), limit)
	if err != nil {
		return nil, err
	}
	list := []KeyAccess{}
	for _, a := range accesses {
		list = append(list, KeyAccess{At: a.At, SessionID: a.SessionID, Service: a.Service, Outcome: a.Outcome})
	}
	return list, nil
}
