package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/duet-rpc/duet-rpc/internal/store"
)

// besides are the files beside a database that SQLite keeps open as long as it:
// the write-ahead log, which alone has what was committed lately, and its index,
// which is also where processes see each other's locks
// (https://sqlite.org/walformat.html#files_on_disk). SQLite removes them when
// the last one closes the database, and truncates them meanwhile at most.
var besides = []string{"-wal", "-shm"}

// An openedFile is a file that is known again.
type openedFile struct {
	path string
	info fs.FileInfo
}

func lookAt(path string) (openedFile, error) {
	info, err := os.Stat(path)
	return openedFile{path, info}, err
}

// gone is an error if there is no such file any more, or another one.
func (f openedFile) gone() error {
	now, err := os.Stat(f.path)
	switch {
	case err != nil && !errors.Is(err, os.ErrNotExist): // nobody knows
	case err != nil, !os.SameFile(f.info, now):
		return &store.LostError{Err: fmt.Errorf("%s is not the file that was opened", f.path)}
	}
	return nil
}

// identity notes which files the database is. A connection has to be open.
func (w *writer) identity(path string, valid func() error) error {
	database, err := lookAt(path)
	if err != nil {
		return err
	}
	var beside []openedFile
	for _, end := range besides {
		f, err := lookAt(path + end)
		if err != nil {
			return err
		}
		beside = append(beside, f)
	}
	w.ours = func() error {
		if err := database.gone(); err != nil {
			return err
		}
		if valid != nil {
			if err := valid(); err != nil {
				return &store.LostError{Err: err}
			}
		}
		return nil
	}
	w.log = path + "-wal"
	w.valid = func() error {
		if err := w.ours(); err != nil {
			return err
		}
		for _, f := range beside {
			if err := f.gone(); err != nil {
				return err
			}
		}
		return nil
	}
	return nil
}

// rescue brings what was committed into the database where only what is beside
// it was removed, and reports whether nothing of it is missing there. The
// writer's connection still has the log open.
func (w *writer) rescue() bool {
	if w.ours() != nil {
		return false
	}
	var busy, frames, done int
	err := w.conn.QueryRowContext(background, "PRAGMA wal_checkpoint(FULL)").Scan(&busy, &frames, &done)
	return err == nil && busy == 0 && frames == done
}

// Valid gives a [*store.LostError] if what is written is lost. It is cheap.
func (s *Store) Valid() error { return s.writer.valid() }
