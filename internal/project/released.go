package project

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"github.com/gofrs/flock"
)

// Released returns a channel that is closed when the hub's lock has been given up: at
// once where nobody has it, and also where the system cannot tell. Somebody else may have
// taken it in the same moment, and then it may be closed only when that one gives it up.
//
// The system tells by a lock that is waited for, which nothing but the lock's holder can
// end. So it is for a process that does not go on for long without it.
func (p Project) Released() <-chan struct{} {
	released := make(chan struct{})
	file := flock.New(filepath.Join(p.StateDir, "lock"), flock.SetFlag(os.O_RDWR|NoFollow))
	go func() { // until the lock is given up, or this process ends
		defer close(released)
		for errors.Is(file.RLock(), syscall.EINTR) {
		}
		file.Close()
	}()
	return released
}
