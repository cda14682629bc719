//go:build !linux

package hub

import (
	"io/fs"
	"time"
)

// changeTime returns when a file was changed last.
func changeTime(info fs.FileInfo) time.Time { return info.ModTime() }
