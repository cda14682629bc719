package project

import (
	"fmt"
	"io/fs"
	"os"
)

// NotPrivateError reports that a place which must be private to the user is not: another user
// could read or plant its content.
type NotPrivateError struct {
	Path   string
	Reason string // such as "is a symbolic link"
}

func (e *NotPrivateError) Error() string {
	return fmt.Sprintf("%s %s and is not used: remove it", e.Path, e.Reason)
}

// CheckPrivate returns a [NotPrivateError] if path is a symbolic link, belongs to another user
// or can be written by one. For a missing path it returns the error of [os.Lstat].
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
