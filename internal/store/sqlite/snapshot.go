package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite/dbfile"
)

// ErrChanging says that a database was written while it was opened for reading: somebody
// has it open, who can be asked.
var ErrChanging = errors.New("the database is in use")

// snapshotNames is how the directories of copies are called. Their owner holds the lock of
// the file snapshotOwner. The copy of a process that was killed is removed after
// snapshotRest, or after snapshotLeft if it has no such file.
const (
	snapshotNames = ".snapshot-*"
	snapshotOwner = "owner"
	snapshotRest  = 10 * time.Second
	snapshotLeft  = time.Hour
)

// Refusals are the errors of a database that is only read.
type Refusals struct {
	Change  error // for who wants to change something
	Changed error // for who reads after another process has changed the database
	Old     error // instead of a copy of a database of an earlier format; nil if one may be made
}

// A snapshot is a store over a copy of a database. What it is asked for is read
// there; changes are refused.
type snapshot struct {
	*Store
	remove  func() error // the copy
	refusal error
}

// OpenSnapshot opens the database at path for reading, in place. Neither the database nor
// what lies beside it is changed or locked, so that whoever wants to write to it may begin
// at any moment; if somebody does meanwhile the error is ErrChanging. Reads after that fail
// with refuse.Changed. A database of an earlier format is copied and migrated, unless
// refuse.Old is set; that takes as long as the system needs to copy it.
func OpenSnapshot(ctx context.Context, path string, opts store.Options, refuse Refusals) (store.Store, error) {
	if err := checkHeader(path); err != nil {
		return nil, err
	}
	removeOldSnapshots(filepath.Dir(path))
	s, old, err := openInPlace(ctx, path, opts, refuse)
	switch {
	case err != nil:
		return nil, err
	case !old:
		return s, nil
	case refuse.Old != nil:
		return nil, refuse.Old
	}
	return openCopy(ctx, path, opts, refuse.Change)
}

// openCopy opens a copy of the database at path.
func openCopy(ctx context.Context, path string, opts store.Options, refusal error) (_ store.Store, err error) {
	for _, in := range [][2]string{{filepath.Dir(path), snapshotNames}, {"", "duet-rpc" + snapshotNames}} { // elsewhere where there it cannot be written
		var dir string
		if dir, err = os.MkdirTemp(in[0], in[1]); err != nil {
			continue
		}
		owner := flock.New(filepath.Join(dir, snapshotOwner), flock.SetPermissions(0o600))
		if _, err := owner.TryLock(); err != nil {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
		remove := func() error { return errors.Join(owner.Close(), os.RemoveAll(dir)) }
		copied := filepath.Join(dir, filepath.Base(path))
		if err = copyAtRest(ctx, copied, path); err == nil {
			var s *Store
			if s, err = Open(ctx, copied, opts); err == nil {
				return &snapshot{s, remove, refusal}, nil
			}
		}
		if err = errors.Join(err, remove()); !errors.Is(err, syscall.ENOSPC) && !store.IsFull(err) {
			break
		}
	}
	return nil, err
}

// removeOldSnapshots removes what processes that were killed have left in a directory.
func removeOldSnapshots(dir string) {
	old, _ := filepath.Glob(filepath.Join(dir, snapshotNames)) // the pattern is none that is wrong
	for _, path := range old {
		if info, err := os.Lstat(path); err == nil && info.IsDir() && isLeft(path, time.Since(info.ModTime())) {
			_ = os.RemoveAll(path)
		}
	}
}

// isLeft reports whether a copy of an age has no owner any more.
func isLeft(path string, age time.Duration) bool {
	if age < snapshotRest {
		return false
	}
	path = filepath.Join(path, snapshotOwner)
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		return age > snapshotLeft
	}
	owner := flock.New(path)
	free, err := owner.TryLock()
	_ = owner.Close()
	return err == nil && free
}

// copyAtRest copies a database with its write-ahead log, or gives ErrChanging if
// they were written meanwhile.
func copyAtRest(ctx context.Context, to, from string) error {
	before := dbfile.StampsOf(from)
	for _, suffix := range []string{"", "-wal"} {
		if err := copyFile(ctx, to+suffix, from+suffix); err != nil && (suffix == "" || !errors.Is(err, fs.ErrNotExist)) {
			return fmt.Errorf("copying the database to read it: %w", err)
		}
	}
	if dbfile.StampsOf(from) != before {
		return ErrChanging
	}
	return nil
}

// Close closes the copy and removes it.
func (s *snapshot) Close() error { return errors.Join(s.Store.Close(), s.remove()) }

// Write implements store.Store.
func (s *snapshot) Write(context.Context, func(store.Tx) error) error { return s.refusal }

// Enqueue implements store.Store.
func (s *snapshot) Enqueue(_ func(store.Tx) error, done func(error)) { done(s.refusal) }

func copyFile(ctx context.Context, to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	for err == nil && ctx.Err() == nil {
		_, err = io.CopyN(out, in, 16<<20) // where the file system can share blocks it does
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return errors.Join(err, ctx.Err(), out.Close())
}
