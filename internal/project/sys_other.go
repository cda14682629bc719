//go:build unix && !linux && !darwin

package project

import (
	"fmt"
	"io/fs"
	"syscall"
)

func identify(path string, info fs.FileInfo) (Identity, error) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return Identity{}, fmt.Errorf("the system does not say which directory %s is", path)
	}
	return Identity{Device: uint64(stat.Dev), Inode: uint64(stat.Ino)}, nil
}

// networkFileSystem returns "": this system does not report whether a directory is on a network.
func networkFileSystem(string) string { return "" }
