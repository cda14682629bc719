package origin

import (
	"fmt"
	"io/fs"
	"syscall"
)

// errNotDirectory says that a path leads through what is no directory.
const errNotDirectory = syscall.ENOTDIR

func syncDir(string) error { return nil }

func identify(path string, info fs.FileInfo) (fileID, error) {
	data, ok := info.Sys().(*syscall.Win32FileAttributeData)
	if !ok {
		return fileID{}, fmt.Errorf("%s cannot be told from other files", path)
	}
	return fileID{Born: data.CreationTime.Nanoseconds()}, nil
}
