package project

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"github.com/gofrs/flock"
)

// Released returns a channel that is closed when the hub's lock has been released: at once if it
// is free, and also if the system cannot report it. Another process may take the lock in the
// same moment, and the channel may then be closed only when that one releases it.
//
// It waits for the lock in the system, which only the lock's holder can end. So only a process
// that exits soon without the lock should use it.
func (p Project) Released() <-chan struct{} {
	released := make(chan struct{})
	file := flock.New(filepath.Join(p.StateDir, "lock"), flock.SetFlag(os.O_RDWR|NoFollow))
	go func() { // until the lock is released, or this process ends
		defer close(released)
		for errors.Is(file.RLock(), syscall.EINTR) {
		}
		file.Close()
	}()
	return released
}
