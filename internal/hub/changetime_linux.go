package hub

import (
	"io/fs"
	"syscall"
	"time"
)

// changeTime returns when a file was changed last. Programs can set a modification time, and not
// this one.
func changeTime(info fs.FileInfo) time.Time {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(stat.Ctim.Unix())
	}
	return info.ModTime()
}
