package database

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"

	"github.com/duet-rpc/duet-rpc/internal/history"
	"github.com/duet-rpc/duet-rpc/internal/origin"
	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite"
)

// A Takeover is a history that was taken over.
type Takeover struct {
	history.Result
	From string // the database that it was taken from, where it was
	Now  string // where that is now
}

// An UnavailableError says that the project's own database could not be used.
type UnavailableError struct{ Err error }

func (e *UnavailableError) Error() string { return e.Err.Error() }
func (e *UnavailableError) Unwrap() error { return e.Err }

// TakeOver takes the history of a database over into the project's, as whoever has
// the lock where no hub runs. The database is renamed, so that it is not taken
// for one that waits. One in the place of the project's is set aside before. An
// error may be an *UnavailableError.
func TakeOver(ctx context.Context, p project.Project, path string, log *slog.Logger) (taken Takeover, err error) {
	taken.From = path
	if _, err := Prepare(ctx, p, log); err != nil {
		return taken, &UnavailableError{err}
	}
	key, err := origin.LoadKey(os.Getenv)
	if err != nil {
		return taken, err
	}
	at := origin.At(p.Database(), key)
	if path == p.Database() { // it was somebody else's, and has just been set aside
		if list := at.Aside(); len(list) > 0 {
			taken.From = list[0]
		}
	}
	into, err := sqlite.Open(ctx, p.Database(), store.Options{})
	if err != nil {
		return taken, &UnavailableError{err}
	}
	taken.Result, err = takeHistory(ctx, p, taken.From, "", into)
	if err := errors.Join(err, into.Close()); err != nil {
		return taken, err
	}
	if taken.Now, err = at.Taken(taken.From); err != nil {
		taken.Now = taken.From
	}
	return taken, nil
}

// How large a database may be, with its log, in bytes, and a conversation in it,
// in entries, that a hub takes over while others use it: they wait for as long
// as a conversation takes.
const (
	mostBesideHub    = 64 << 20
	longestBesideHub = 10_000
)

// A RefusedError says in words for clients why a history is not taken over.
type RefusedError struct {
	Text string
	Err  error // what it comes from, or nil
}

func (e *RefusedError) Error() string { return e.Text }
func (e *RefusedError) Unwrap() error { return e.Err }

// OpenAside opens a database that was set aside, whose history a hub that runs
// is to take over. An error may be a *RefusedError.
func OpenAside(ctx context.Context, path string) (*sqlite.Foreign, error) {
	size := int64(0)
	for _, suffix := range []string{"", "-wal"} {
		info, err := os.Lstat(path + suffix)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if err == nil {
			size += info.Size()
		}
	}
	if size > mostBesideHub {
		return nil, &RefusedError{Text: fmt.Sprintf("the database has %d MB: over %d MB are not taken over while the hub runs", size>>20, mostBesideHub>>20)}
	}
	from, err := sqlite.OpenForeign(ctx, path)
	if err != nil {
		return nil, &RefusedError{"nothing of this database can be taken over; `duet-rpc trust --database --show` says why", err}
	}
	longest, err := from.LongestThread(ctx)
	if err == nil && longest > longestBesideHub {
		err = &RefusedError{Text: fmt.Sprintf("a conversation in the database has %d entries: over %d are not taken over while the hub runs", longest, longestBesideHub)}
	}
	if err != nil {
		from.Close()
		return nil, err
	}
	return from, nil
}
