//go:build unix

package checkpoint

import (
	"syscall"

	"golang.org/x/sys/unix"
)

func readable(path string) bool { return unix.Access(path, unix.R_OK) == nil }

// errNotDirectory reports a path through a file.
const errNotDirectory = syscall.ENOTDIR
