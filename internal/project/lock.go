package project

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

// A Lock makes its holder the hub of a project. The operating system gives it
// up when the process ends, however it ends. Close is safe for concurrent use.
type Lock struct {
	// Record is the project's, as it was when the lock was taken by [Project.Claim].
	Record Record
	// Unrecorded is why Record could not be written, or nil.
	Unrecorded error

	path  string
	taken os.FileInfo // the file
	close func() error
}

// Valid gives an error if the lock's file was removed or replaced: another
// process can hold the lock then, too.
func (l *Lock) Valid() error {
	now, err := os.Stat(l.path)
	switch {
	case err != nil && !errors.Is(err, os.ErrNotExist): // nobody knows
		return nil
	case err != nil:
		return fmt.Errorf("%s was removed", l.path)
	case !os.SameFile(l.taken, now):
		return fmt.Errorf("%s was replaced", l.path)
	}
	return nil
}

// HeldError says that another process, or another part of this one, is the hub.
type HeldError struct {
	PID  int    // who holds the lock; 0 where that could not be read
	Path string // of the lock
}

func (e *HeldError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("another process holds %s", e.Path)
	}
	return fmt.Sprintf("process %d holds %s", e.PID, e.Path)
}

// Lock takes the lock of the project, whose state directory must have been
// prepared, or gives a [HeldError] without waiting for the process whose id it has to
// give it up. Where the id is missing, or that of a process which has ended, the holder
// has just taken the lock, or is a process that only looks whether it is free
// ([Project.Unlocked], [Project.Released]): the lock is tried for a second more, or until
// ctx ends. Symbolic links are not followed.
func (p Project) Lock(ctx context.Context) (*Lock, error) { return p.lock(ctx, "lock") }

// LockStart is as Lock, for whoever starts a hub in another process: one at a time.
// It keeps nobody from being the hub.
func (p Project) LockStart(ctx context.Context) (*Lock, error) { return p.lock(ctx, "starting") }

func (p Project) lock(ctx context.Context, name string) (*Lock, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("locking the project: %w", err)
	}
	path := filepath.Join(p.StateDir, name)
	file := flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR|NoFollow), flock.SetPermissions(0o600))
	trying, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	for {
		got, err := file.TryLock()
		if err != nil {
			return nil, fmt.Errorf("locking the project: %w", err)
		}
		if got {
			break
		}
		if pid := readPID(path); hasProcess(pid) || !pause(trying) {
			file.Close()
			return nil, &HeldError{PID: pid, Path: path}
		}
	}
	// On a full disk the lock holds, only nobody is told whose it is.
	if err := writePID(path); err != nil && !errors.Is(err, syscall.ENOSPC) {
		file.Close()
		return nil, fmt.Errorf("locking the project: %w", err)
	}
	taken, err := os.Stat(path)
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("locking the project: %w", err)
	}
	l := &Lock{path: path, taken: taken}
	l.close = sync.OnceValue(func() error {
		// Whoever takes the lock next must not be mistaken for this process.
		if l.Valid() == nil {
			_ = os.Truncate(path, 0)
		}
		return file.Close()
	})
	return l, nil
}

// Unlocked reports whether nobody has the lock just now.
func (p Project) Unlocked() bool {
	file := flock.New(filepath.Join(p.StateDir, "lock"), flock.SetFlag(os.O_RDWR))
	got, err := file.TryLock()
	file.Close()
	return got && err == nil || errors.Is(err, os.ErrNotExist)
}

// Holder tells who has the lock just now; held with 0 where that cannot be read.
func (p Project) Holder(ctx context.Context) (pid int, held bool) {
	if p.Unlocked() {
		return 0, false
	}
	return holder(ctx, filepath.Join(p.StateDir, "lock")), true
}

// Close gives the lock up. The file stays: removing it would let two processes
// hold locks on two files of the same name. A second call does nothing, nor
// does one on nil.
func (l *Lock) Close() error {
	if l == nil {
		return nil
	}
	return l.close()
}

// lockPatience is how long a lock is tried whose holder is no process that is known: on a busy
// machine a process that only looks may be held up while it has it.
const lockPatience = time.Second

// patience is how long the holder of a lock may take to write its process id.
const patience = 100 * time.Millisecond

// holder reads who holds the lock. It is empty for as long as the holder needs
// to write it.
func holder(ctx context.Context, path string) int {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		if pid := readPID(path); pid > 0 || !pause(ctx) {
			return pid
		}
	}
}

// pause waits a moment, and reports whether ctx is still alive.
func pause(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(5 * time.Millisecond):
		return true
	}
}

// readPID is the process id in a lock, or 0.
func readPID(path string) int {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid < 0 {
		return 0
	}
	return pid
}
