package store

import (
	"errors"
	"fmt"
	"os"
)

// A LostError says that the database, or what gives the right to write it, was
// removed or replaced while it was open. What is written then is in a file that
// nobody will find again.
type LostError struct{ Err error }

func (e *LostError) Error() string {
	return fmt.Sprintf("the database was removed or replaced while it was open: %v", e.Err)
}

func (e *LostError) Unwrap() error { return e.Err }

// identity notes which file the database is.
func (w *writer) identity(path string, valid func() error) error {
	opened, err := os.Stat(path)
	if err != nil {
		return err
	}
	w.valid = func() error {
		now, err := os.Stat(path)
		switch {
		case err != nil && !errors.Is(err, os.ErrNotExist): // nobody knows
		case err != nil, !os.SameFile(opened, now):
			return &LostError{fmt.Errorf("%s is not the file that was opened", path)}
		}
		if valid != nil {
			if err := valid(); err != nil {
				return &LostError{err}
			}
		}
		return nil
	}
	return nil
}

// Valid gives a [*LostError] if what is written is lost. It is cheap.
func (s *Store) Valid() error { return s.writer.valid() }
