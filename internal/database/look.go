package database

import (
	"context"
	"errors"
	"os"

	"github.com/duet-rpc/duet-rpc/internal/history"
	"github.com/duet-rpc/duet-rpc/internal/origin"
	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite/schema"
)

// A KeyError says that the key by which the user's databases are known cannot
// be read.
type KeyError struct{ Err error }

func (e *KeyError) Error() string { return e.Err.Error() }
func (e *KeyError) Unwrap() error { return e.Err }

// Look tells whose the project's database is. Nothing is read of one that is
// not the user's own. An error may be a *KeyError.
func Look(ctx context.Context, p project.Project) (origin.Finding, error) {
	key, err := origin.FindKey(os.Getenv)
	if err != nil && !errors.Is(err, origin.ErrNoKey) {
		return origin.Finding{}, &KeyError{err}
	}
	return lookAt(ctx, origin.At(p.Database(), key), p)
}

// lookAt tells whose the database is, and changes nothing.
func lookAt(ctx context.Context, at origin.Place, p project.Project) (origin.Finding, error) {
	found, err := at.Look(func() (string, error) {
		from, err := sqlite.OpenForeign(ctx, p.Database())
		if err != nil {
			return "", err
		}
		defer from.Close()
		return from.ID(ctx)
	})
	var unusable *origin.UnusableError
	if errors.As(err, &unusable) {
		err = &sqlite.OpenError{Path: p.Database(), Reason: "unreadable", Err: err}
	}
	return found, err
}

// Aside lists the databases of the project that were set aside, the newest
// first.
func Aside(p project.Project) []string { return origin.At(p.Database(), origin.Key{}).Aside() }

// Check looks whether a database of the user's can be used. tellsTodo reports
// whether the error says what to do about it.
func Check(ctx context.Context, p project.Project) (tellsTodo bool, err error) {
	err = sqlite.Check(ctx, p.Database())
	var broken *sqlite.OpenError
	return errors.As(err, &broken) && broken.Reason != "unreadable", err
}

// IsUnusable reports whether an error says that a database cannot be used, and
// not that something around it went wrong.
func IsUnusable(err error) bool {
	var broken *sqlite.OpenError
	return errors.As(err, &broken)
}

// Contents are what a database holds that may be anybody's.
type Contents struct {
	history.Survey
	Problem string   // why nothing of it can be taken over, or ""
	Unknown []string // what it holds that duet-rpc did not make
}

// Read surveys the database at a path, which may be anybody's. It is an
// os.ErrNotExist if there is none.
func Read(ctx context.Context, path string) (c Contents, err error) {
	from, err := sqlite.OpenForeign(ctx, path)
	var broken *sqlite.OpenError
	var altered *schema.AlteredError
	switch {
	case errors.Is(err, os.ErrNotExist):
		return c, err
	case errors.As(err, &altered):
		c.Problem = "it holds what duet-rpc did not make, so nothing in it was read"
		for _, o := range altered.Strange {
			c.Unknown = append(c.Unknown, o.String())
		}
		for _, o := range altered.Missing {
			c.Unknown = append(c.Unknown, o.String()+" (missing)")
		}
		return c, nil
	case errors.As(err, &broken):
		c.Problem = "it cannot be read: " + broken.Err.Error()
		return c, nil
	case err != nil:
		return c, err
	}
	defer from.Close()
	if c.Survey, err = history.Look(ctx, from); err != nil {
		c.Problem = "it cannot be read: " + err.Error()
		return c, ctx.Err()
	}
	return c, nil
}
