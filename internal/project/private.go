package project

import (
	"fmt"
	"io/fs"
	"os"
)

// NotPrivateError says that a place which must be ours alone is not, so that
// somebody else could read or plant what is in it.
type NotPrivateError struct {
	Path   string
	Reason string // such as "is a symbolic link"
}

func (e *NotPrivateError) Error() string {
	return fmt.Sprintf("%s %s and is not used: remove it", e.Path, e.Reason)
}

// CheckPrivate gives a [NotPrivateError] where path is a symbolic link,
// belongs to another user or can be written by one. A path that does not exist
// is an error as of [os.Lstat].
func CheckPrivate(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if err := checkPrivate(path, info); err != nil {
		return err
	}
	if sharedWrite(info) {
		return &NotPrivateError{Path: path, Reason: "can be written by other users"}
	}
	return nil
}

func checkPrivate(path string, info fs.FileInfo) error {
	if info.Mode()&fs.ModeSymlink != 0 {
		return &NotPrivateError{Path: path, Reason: "is a symbolic link"}
	}
	if IsForeign(info) {
		return &NotPrivateError{Path: path, Reason: "belongs to another user"}
	}
	return nil
}
