package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/store"
)

// ErrChanging says that a database was written while it was copied: somebody has
// it open, who can be asked.
var ErrChanging = errors.New("the database is in use")

// snapshotNames is how the directories of copies are called; what a process that
// was killed has left of them is removed after snapshotLeft.
const (
	snapshotNames = ".snapshot-*"
	snapshotLeft  = time.Hour
)

// A snapshot is a store over a copy of a database. What it is asked for is read
// there; changes are refused.
type snapshot struct {
	*Store
	dir     string // of the copy
	refusal error
}

// OpenSnapshot opens a copy of the database at path for reading. Neither the
// database nor what lies beside it is changed or locked, so that whoever wants to
// write to it may begin at any moment; if somebody does while it is copied the
// error is ErrChanging. Changes are refused with the error refusal. A large database
// takes as long as the system needs to copy it, which is a moment where the file
// system can share blocks.
func OpenSnapshot(ctx context.Context, path string, opts store.Options, refusal error) (store.Store, error) {
	if err := checkHeader(path); err != nil {
		return nil, err
	}
	removeOldSnapshots(filepath.Dir(path))
	dir, err := os.MkdirTemp(filepath.Dir(path), snapshotNames)
	if err == nil {
		var s store.Store
		s, err = openCopy(ctx, dir, path, opts, refusal)
		if err == nil || !isFull(err) {
			return s, err
		}
	}
	// There it cannot be written, or is no room: what was kept is to be read all the same.
	elsewhere, elsewhereErr := os.MkdirTemp("", "duet-rpc"+snapshotNames)
	if elsewhereErr != nil {
		return nil, fmt.Errorf("copying the database to read it: %w", errors.Join(err, elsewhereErr))
	}
	return openCopy(ctx, elsewhere, path, opts, refusal)
}

// openCopy opens a copy of a database in a directory, which goes with it.
func openCopy(ctx context.Context, dir, path string, opts store.Options, refusal error) (store.Store, error) {
	copied := filepath.Join(dir, filepath.Base(path))
	err := copyAtRest(copied, path)
	if err == nil {
		var s *Store
		if s, err = Open(ctx, copied, opts); err == nil {
			return &snapshot{s, dir, refusal}, nil
		}
	}
	return nil, errors.Join(err, os.RemoveAll(dir))
}

// isFull reports whether an error says that a disk has no more room.
func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || store.IsFull(err) }

func removeOldSnapshots(dir string) {
	old, _ := filepath.Glob(filepath.Join(dir, snapshotNames)) // the pattern is none that is wrong
	for _, path := range old {
		if info, err := os.Lstat(path); err == nil && info.IsDir() && time.Since(info.ModTime()) > snapshotLeft {
			_ = os.RemoveAll(path)
		}
	}
}

// copyAtRest copies a database with its write-ahead log, or gives ErrChanging if
// they were written meanwhile.
func copyAtRest(to, from string) error {
	before := stampsOf(from)
	for _, suffix := range []string{"", "-wal"} {
		if err := copyFile(to+suffix, from+suffix); err != nil && (suffix == "" || !errors.Is(err, fs.ErrNotExist)) {
			return fmt.Errorf("copying the database to read it: %w", err)
		}
	}
	if stampsOf(from) != before {
		return ErrChanging
	}
	return nil
}

// A stamp changes whenever a file is written, for whoever looks a moment later.
type stamp struct {
	size int64
	at   time.Time
}

func stampsOf(path string) (stamps [2]stamp) {
	for i, suffix := range []string{"", "-wal"} {
		if info, err := os.Lstat(path + suffix); err == nil {
			stamps[i] = stamp{info.Size(), info.ModTime()}
		}
	}
	return stamps
}

// Close closes the copy and removes it.
func (s *snapshot) Close() error { return errors.Join(s.Store.Close(), os.RemoveAll(s.dir)) }

// Write implements store.Store.
func (s *snapshot) Write(context.Context, func(store.Tx) error) error { return s.refusal }

// Enqueue implements store.Store.
func (s *snapshot) Enqueue(_ func(store.Tx) error, done func(error)) { done(s.refusal) }
