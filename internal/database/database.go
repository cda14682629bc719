// Package database looks into the database of a project from outside of its hub, and changes
// nothing there.
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

// ErrNone says that a project has no database yet.
var ErrNone = errors.New("nothing is kept of this project yet")

// Exists reports whether the project has a database.
func Exists(p project.Project) bool {
	_, err := os.Lstat(p.Database())
	return !errors.Is(err, fs.ErrNotExist)
}

// Check looks whether the project's database can be used. tellsTodo reports whether the error
// says what to do about it.
func Check(ctx context.Context, p project.Project) (tellsTodo bool, err error) {
	err = sqlite.Check(ctx, p.Database())
	var broken *sqlite.OpenError
	return errors.As(err, &broken) && broken.Reason != "unreadable", err
}

// IsUnusable reports whether an error says that a database cannot be used, and not that
// something around it went wrong.
func IsUnusable(err error) bool { return errors.As(err, new(*sqlite.OpenError)) }

// Conversations returns how many conversations the project has. A hub may use the database
// meanwhile.
func Conversations(ctx context.Context, p project.Project) (int, error) {
	return sqlite.Conversations(ctx, p.Database())
}

// A KeyAccess is that an agent asked for the API key of a service.
type KeyAccess struct {
	At        time.Time `json:"at"`
	SessionID string    `json:"session_id"`
	Service   string    `json:"service"`
	Outcome   string    `json:"outcome"` // where the key came from, or why there was none; in words
}

// KeyAccesses lists the last times that agents of the project asked for API keys, the newest
// first. A hub may use the database meanwhile.
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
