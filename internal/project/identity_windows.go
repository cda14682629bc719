package project

import (
	"fmt"
	"io/fs"
	"syscall"
)

func identify(path string, info fs.FileInfo) (Identity, error) {
	data, ok := info.Sys().(*syscall.Win32FileAttributeData)
	if !ok {
		return Identity{}, fmt.Errorf("the system does not say which directory %s is", path)
	}
	return Identity{Born: data.CreationTime.Nanoseconds()}, nil
}
