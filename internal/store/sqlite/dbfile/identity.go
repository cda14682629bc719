package dbfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// walFiles are what SQLite keeps open beside a database, as long as it: the
// write-ahead log, which alone has what was committed lately, and its index, which
// is also where processes see each other's locks
// (https://sqlite.org/walformat.html#files_on_disk). SQLite removes them when
// the last one closes the database, and truncates them meanwhile at most.
var walFiles = []string{"-wal", "-shm"}

// An Identity is which files a database was when it was opened. It may be asked by
// any goroutine.
type Identity struct {
	database file
	wal      []file
}

type file struct {
	path string
	info fs.FileInfo
}

// Identify notes which files the database at path is. A connection in WAL mode has
// to be open.
func Identify(path string) (*Identity, error) {
	var i Identity
	var err error
	if i.database, err = lookAt(path); err != nil {
		return nil, err
	}
	for _, suffix := range walFiles {
		f, err := lookAt(path + suffix)
		if err != nil {
			return nil, err
		}
		i.wal = append(i.wal, f)
	}
	return &i, nil
}

func lookAt(path string) (file, error) {
	info, err := os.Stat(path)
	return file{path, info}, err
}

// CheckDatabase gives an error if there is no database any more where it was, or
// another one. It is cheap, and where nobody knows it gives none.
func (i *Identity) CheckDatabase() error { return i.database.check() }

// CheckLog is CheckDatabase for the write-ahead log and its index.
func (i *Identity) CheckLog() error {
	for _, f := range i.wal {
		if err := f.check(); err != nil {
			return err
		}
	}
	return nil
}

func (f file) check() error {
	now, err := os.Stat(f.path)
	switch {
	case err != nil && !errors.Is(err, os.ErrNotExist): // nobody knows
	case err != nil, !os.SameFile(f.info, now):
		return fmt.Errorf("%s is not the file that was opened", f.path)
	}
	return nil
}
