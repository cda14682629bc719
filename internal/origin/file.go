package origin

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/duet-rpc/duet-rpc/internal/ownership"
)

// A fileID tells a file from every other one of its file system, also from one
// that has its name, or its inode, after it. The zero value is no file.
type fileID struct {
	Inode uint64 `json:"inode"`
	Born  int64  `json:"born"` // nanoseconds since 1970; 0 where the system does not know
}

// is reports whether both are the same file.
func (a fileID) is(b fileID) bool {
	return a.Inode == b.Inode && a != fileID{} && (a.Born == b.Born || a.Born == 0 || b.Born == 0)
}

// An UnusableError says that something in the place of a database is not used,
// nor touched.
type UnusableError struct {
	Path   string
	Reason string // such as "is a named pipe"
}

func (e *UnusableError) Error() string {
	return fmt.Sprintf("%s %s and is not used: move it away", e.Path, e.Reason)
}

// companions are what SQLite has beside a database.
func companions() []string { return []string{"-wal", "-shm", "-journal"} }

// look tells which file path is, without opening it: that would wait for the
// other end of a pipe. There being none is fs.ErrNotExist; what is no file of
// this user's alone is an *UnusableError.
func look(path string) (fileID, fs.FileInfo, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return fileID{}, nil, err
	}
	if reason := notOurs(info); reason != "" {
		return fileID{}, info, &UnusableError{path, reason}
	}
	id, err := identify(path, info)
	return id, info, err
}

func notOurs(info fs.FileInfo) string {
	switch mode := info.Mode(); {
	case mode&fs.ModeSymlink != 0:
		return "is a symbolic link"
	case mode.IsDir():
		return "is a directory"
	case mode&fs.ModeNamedPipe != 0:
		return "is a named pipe"
	case mode&fs.ModeSocket != 0:
		return "is a socket"
	case mode&fs.ModeDevice != 0:
		return "is a device"
	case !mode.IsRegular():
		return "is no regular file"
	case ownership.IsForeign(info):
		return "belongs to another user"
	case ownership.Links(info) > 1:
		return "has another name elsewhere (a hard link)"
	}
	return ""
}

// openRegular opens a file for reading that has been looked at, and never
// waits.
func openRegular(path string) (*os.File, fs.FileInfo, error) {
	if _, _, err := look(path); err != nil {
		return nil, nil, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|ownership.NoFollow|ownership.NonBlocking, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &UnusableError{path, "is no regular file"}
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// replaceFile puts content in the place of a file at once (mode 0600). After a
// power cut it is the new one or the old one; it is the new one for good when
// [syncDir] was called.
func replaceFile(path string, content []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
