package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// Check reports whether the database at path can be used, without changing it. A missing database
// is no error. Its errors are those of [Open].
func Check(ctx context.Context, path string) error {
	err := check(ctx, path)
	if !isCorrupt(err) {
		return err
	}
	if err := unreadable(path); err != nil {
		return err
	}
	return check(ctx, path)
}

func check(ctx context.Context, path string) error {
	db, version, err := openToRead(ctx, path)
	if db == nil || err != nil {
		return err
	}
	defer db.Close()
	var found string
	if err := db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&found); err != nil {
		return &OpenError{path, reason(err), err}
	}
	if found != "ok" {
		return &OpenError{path, "corrupt", errors.New(found)}
	}
	if version < words {
		return nil // empty, or its rows are read after the upgrade
	}
	if err := checkRows(ctx, db); err != nil {
		return &OpenError{path, reason(err), err}
	}
	return nil
}

// Check reads the whole database like a client, and returns what is damaged.
func (s *Store) Check(ctx context.Context) error {
	var found string
	if err := s.readers.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&found); err != nil {
		return failed(err)
	}
	if found != "ok" {
		return &damagedValueError{errors.New(found)}
	}
	return failed(checkRows(ctx, s.readers))
}

// openToRead opens the user's own database at path, concurrently with other processes, and
// changes nothing. It returns nil, without an error, if there is none.
func openToRead(ctx context.Context, path string) (db *sql.DB, version int, err error) {
	if err := checkHeader(path); err != nil {
		return nil, 0, err
	}
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil, 0, nil
	}
	if db, err = sql.Open("sqlite", dsn(path, "_pragma=query_only(1)&_pragma=busy_timeout(1000)")); err != nil {
		return nil, 0, &OpenError{path, "unreadable", err}
	}
	if err = db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		err = &OpenError{path, reason(err), err}
	} else if err = checkVersion(path, version); err == nil {
		if err = checkSchema(ctx, db, version); err != nil {
			err = &OpenError{path, reason(err), err}
		}
	}
	if err != nil {
		db.Close()
		return nil, 0, err
	}
	return db, version, nil
}

// CountSessions returns the number of sessions in the database at path, without changing it: 0
// if none exists. Errors are those of [Open].
func CountSessions(ctx context.Context, path string) (int, error) {
	db, version, err := openToRead(ctx, path)
	if db == nil || err != nil {
		return 0, err
	}
	defer db.Close()
	table := "sessions"
	switch {
	case version == 0:
		return 0, nil
	case version < words:
		table = "threads"
	}
	var n int
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM "+table).Scan(&n); err != nil {
		return 0, &OpenError{path, reason(err), err}
	}
	return n, nil
}

// KeyAccesses lists the requests for API keys, the newest first, in the user's own database at
// path, without changing it. Errors are those of [Open], and one for an older format.
func KeyAccesses(ctx context.Context, path string, limit int) ([]domain.KeyAccess, error) {
	db, version, err := openToRead(ctx, path)
	if db == nil || err != nil {
		return nil, err
	}
	defer db.Close()
	if version < words {
		return nil, &OpenError{path, "former", fmt.Errorf("its format is %d", version)}
	}
	q := queries{newStatements(db, nil, nil)}
	defer q.s.close()
	list, err := q.KeyAccesses(ctx, limit)
	if err != nil {
		return nil, &OpenError{path, reason(err), err}
	}
	return list, nil
}

// checkRows reads the log and all sessions like a client.
func checkRows(ctx context.Context, db *sql.DB) (damage error) {
	q := queries{newStatements(db, func(err error) { damage = err }, nil)}
	defer q.s.close()
	const some = 1000
	for after := int64(0); ; {
		events, err := q.Events(ctx, after, some)
		if err != nil || damage != nil {
			return cmp.Or(damage, err)
		}
		for _, e := range events {
			if e.Seq != after+1 && after > 0 {
				return &damagedValueError{Err: fmt.Errorf("the log has nothing between %d and %d", after, e.Seq)}
			}
			after = e.Seq
		}
		if len(events) < some {
			break
		}
	}
	for after := int64(0); ; {
		items, err := q.items(ctx, "WHERE i.id > ? ORDER BY i.id LIMIT ?", after, some)
		if err != nil || damage != nil {
			return cmp.Or(damage, err)
		}
		for _, i := range items {
			if i.ID <= after {
				return &damagedValueError{Err: fmt.Errorf("an entry of a session has the number %d behind %d", i.ID, after)}
			}
			after = i.ID
		}
		if len(items) < some {
			return nil
		}
	}
}

// Files of a database, without SQLite: whether they can be opened, whether they are the same,
// which process has a lock, and the free space.

// damagedError reports why a file is not an intact database.
type damagedError struct{ Problem string }

func (e *damagedError) Error() string { return e.Problem }

// fileVersion returns the user_version of the database at path. Unlike SQLite it does not change
// the file. It returns 0 if the file does not exist or nothing was ever committed, and a
// *damagedError if the file is truncated or not a database.
// https://sqlite.org/fileformat2.html#user_version_number
func fileVersion(path string) (int, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	head := make([]byte, 100)
	n, err := io.ReadFull(f, head)
	switch {
	case n == 0 && errors.Is(err, io.EOF): // created without a commit
		return 0, nil
	case errors.Is(err, io.ErrUnexpectedEOF):
		return 0, &damagedError{"it is too short"}
	case err != nil:
		return 0, err
	case string(head[:16]) != "SQLite format 3\x00":
		return 0, &damagedError{"it is not an SQLite database"}
	}
	if err := checkSize(f, head); err != nil {
		return 0, err
	}
	return int(binary.BigEndian.Uint32(head[60:])), nil
}

// checkSize finds a truncated database, which SQLite notices only when it needs a missing page. A
// log beside the database may hold the rest, so it is not checked then. https://sqlite.org/fileformat2.html#in_header_database_size
func checkSize(f *os.File, head []byte) error {
	if wal, err := os.Stat(f.Name() + "-wal"); err == nil && wal.Size() > 0 {
		return nil
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	pageSize := int64(binary.BigEndian.Uint16(head[16:]))
	if pageSize == 1 {
		pageSize = 1 << 16
	}
	valid := string(head[24:28]) == string(head[92:96])
	if want := int64(binary.BigEndian.Uint32(head[28:])) * pageSize; valid && info.Size() < want {
		return &damagedError{fmt.Sprintf("it is cut off: %d of %d bytes", info.Size(), want)}
	}
	return nil
}

// walFiles are the files that SQLite keeps open beside a database: the write-ahead log, which holds
// the latest commits, and its index, which also holds locks between processes
// (https://sqlite.org/walformat.html#files_on_disk). SQLite removes them when the last connection
// closes the database, and before that at most truncates them.
var walFiles = []string{"-wal", "-shm"}

// fileIdentity identifies the files of an opened database. Any goroutine may use it.
type fileIdentity struct {
	database file
	wal      []file
}

type file struct {
	path string
	info fs.FileInfo
}

// identifyFile records the files of the database at path. A connection in WAL mode must be open.
func identifyFile(path string) (*fileIdentity, error) {
	var i fileIdentity
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

// CheckDatabase returns an error if the database was removed or replaced. It is cheap. It returns
// nil if the system does not report that.
func (i *fileIdentity) CheckDatabase() error { return i.database.check() }

// CheckLog is CheckDatabase for the write-ahead log and its index.
func (i *fileIdentity) CheckLog() error {
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
	case err != nil && !errors.Is(err, os.ErrNotExist): // unknown
	case err != nil, !os.SameFile(f.info, now):
		return fmt.Errorf("%s is not the file that was opened", f.path)
	}
	return nil
}
