//go:build linux || darwin

package socket

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// privateDirectory reports whether path is a directory that belongs to us and that no other user
// can write to.
func privateDirectory(path string) bool {
	var stat unix.Stat_t
	return unix.Stat(path, &stat) == nil && isType(stat, unix.S_IFDIR) &&
		int(stat.Uid) == os.Geteuid() && stat.Mode&0o022 == 0
}

// readPrivate reads a file that only we can have written, up to most bytes.
func readPrivate(path string, most int) ([]byte, error) {
	// O_NONBLOCK because opening a pipe would wait for its other end.
	fd, err := open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC)
	switch {
	case errors.Is(err, unix.ELOOP):
		return nil, &UnsafeError{Path: path, Reason: "is a symbolic link", Remedy: ourSocketsOnly}
	case errors.Is(err, unix.ENXIO), errors.Is(err, unix.EOPNOTSUPP):
		return nil, &UnsafeError{Path: path, Reason: "is a socket", Remedy: ourSocketsOnly}
	case err != nil:
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return nil, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	if reason := notPrivate(stat); reason != "" {
		return nil, &UnsafeError{Path: path, Reason: reason, Remedy: ourSocketsOnly}
	}
	return io.ReadAll(io.LimitReader(f, int64(most)))
}

func notPrivate(stat unix.Stat_t) string {
	switch {
	case isType(stat, unix.S_IFLNK):
		return "is a symbolic link"
	case !isType(stat, unix.S_IFREG):
		return "is no regular file"
	case int(stat.Uid) != os.Geteuid():
		return fmt.Sprintf("belongs to user %d", stat.Uid)
	case stat.Mode&0o022 != 0:
		return "can be written to by other users"
	}
	return ""
}

// checkReplaceable returns an error unless path is free or a file of ours.
func checkReplaceable(path string) error {
	var stat unix.Stat_t
	switch err := unix.Lstat(path, &stat); {
	case errors.Is(err, unix.ENOENT):
		return nil
	case err != nil:
		return &os.PathError{Op: "lstat", Path: path, Err: err}
	}
	if reason := notPrivate(stat); reason != "" {
		return &OccupiedError{Path: path, Reason: reason}
	}
	return nil
}
