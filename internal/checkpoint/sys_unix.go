//go:build unix

package checkpoint

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func readable(path string) bool { return unix.Access(path, unix.R_OK) == nil }

// errNotDirectory reports a path through a file.
const errNotDirectory = syscall.ENOTDIR

// ChangeTime returns when a file was changed last. Programs can set a modification time, and not
// this one.
func ChangeTime(path string) (time.Time, error) {
	var stat unix.Stat_t
	if err := unix.Lstat(path, &stat); err != nil {
		return time.Time{}, &os.PathError{Op: "lstat", Path: path, Err: err}
	}
	return time.Unix(stat.Ctim.Unix()), nil
}
