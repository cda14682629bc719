//go:build unix && !linux && !darwin

package origin

import (
	"fmt"
	"io/fs"
	"syscall"
)

func identify(path string, info fs.FileInfo) (fileID, error) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fileID{}, fmt.Errorf("%s cannot be told from other files", path)
	}
	return fileID{Inode: uint64(stat.Ino)}, nil
}
