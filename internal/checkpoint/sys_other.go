//go:build !unix

package checkpoint

import (
	"errors"
	"os"
	"time"
)

func readable(string) bool { return true }

var errNotDirectory = errors.New("not a directory")

// ChangeTime returns when a file was changed last.
func ChangeTime(path string) (time.Time, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return time.Time{}, err
	}
	return info.ModTime(), nil
}
