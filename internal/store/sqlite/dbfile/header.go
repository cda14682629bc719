// Package dbfile is what the operating system says of the files of an SQLite
// database: whether one can be opened, whether it is still the one that was opened,
// who has it locked, and how much room is left. SQLite is not asked.
package dbfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// A DamagedError says why a file cannot be a whole database.
type DamagedError struct{ Problem string }

func (e *DamagedError) Error() string { return e.Problem }

// Version is the user_version of the database at path, which is 0 where there is
// no file, or nothing was ever committed to it. The file is not changed, as SQLite
// would when it opens it. A file that cannot be a database, or was cut off, is a
// *DamagedError. https://sqlite.org/fileformat2.html#user_version_number
func Version(path string) (int, error) {
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
	case n == 0 && errors.Is(err, io.EOF): // made, but nothing was ever committed
		return 0, nil
	case err != nil:
		return 0, &DamagedError{"it is too short"}
	case string(head[:16]) != "SQLite format 3\x00":
		return 0, &DamagedError{"it is not an SQLite database"}
	}
	if err := checkSize(f, head); err != nil {
		return 0, err
	}
	return int(binary.BigEndian.Uint32(head[60:])), nil
}

// checkSize finds a database that was cut off, which SQLite does only when it
// needs a page that is missing. With a log beside it that cannot be told: it
// may hold the rest. https://sqlite.org/fileformat2.html#in_header_database_size
func checkSize(f *os.File, head []byte) error {
	if wal, err := os.Stat(f.Name() + "-wal"); err == nil && wal.Size() > 0 {
		return nil
	}
	info, err := f.Stat()
	if err != nil {
		return &DamagedError{err.Error()}
	}
	pageSize := int64(binary.BigEndian.Uint16(head[16:]))
	if pageSize == 1 {
		pageSize = 1 << 16
	}
	valid := string(head[24:28]) == string(head[92:96])
	if want := int64(binary.BigEndian.Uint32(head[28:])) * pageSize; valid && info.Size() < want {
		return &DamagedError{fmt.Sprintf("it is cut off: %d of %d bytes", info.Size(), want)}
	}
	return nil
}
