package sqlite

import (
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// identify notes which files the database is. A connection has to be open.
func (w *writer) identify(path string, valid func() error) error {
	files, err := identifyFile(path)
	if err != nil {
		return err
	}
	lost := func(err error) error {
		if err == nil {
			return nil
		}
		return &store.LostError{Err: err}
	}
	w.log = path + "-wal"
	w.databaseValid = func() error {
		err := files.CheckDatabase()
		if err == nil && valid != nil {
			err = valid()
		}
		return lost(err)
	}
	w.valid = func() error {
		if err := w.databaseValid(); err != nil {
			return err
		}
		return lost(files.CheckLog())
	}
	return nil
}

// rescue brings what was committed into the database where only what is beside
// it was removed, and reports whether nothing of it is missing there. The
// writer's connection still has the log open.
func (w *writer) rescue() bool {
	if w.databaseValid() != nil {
		return false
	}
	var busy, frames, done int
	err := w.conn.QueryRowContext(background, "PRAGMA wal_checkpoint(FULL)").Scan(&busy, &frames, &done)
	return err == nil && busy == 0 && frames == done
}

// Valid gives a [*store.LostError] if what is written is lost. It is cheap.
func (s *Store) Valid() error { return s.writer.valid() }
