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

	"github.com/duet-rpc/duet-rpc/internal/filewatch"
)

// A Lock makes its holder the hub of a project. The operating system releases it when the
// process ends, however it ends. Close is safe for concurrent use.
type Lock struct {
	// Record is the project's record when [Project.Claim] took the lock.
	Record Record
	// Unrecorded is why Record could not be written, or nil.
	Unrecorded error

	path  string
	taken os.FileInfo // the file
	close func() error
}

// Valid returns an error if the lock's file was removed or replaced: another process can then
// hold the lock, too.
func (l *Lock) Valid() error {
	now, err := os.Stat(l.path)
	switch {
	case err != nil && !errors.Is(err, os.ErrNotExist): // unknown: assume it is valid
		return nil
	case err != nil:
		return fmt.Errorf("%s was removed", l.path)
	case !os.SameFile(l.taken, now):
		return fmt.Errorf("%s was replaced", l.path)
	}
	return nil
}

// HeldError reports that another process, or another part of this one, is the hub.
type HeldError struct {
	PID  int    // of the lock holder; 0 if it could not be read
	Path string // of the lock
}

func (e *HeldError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("another process holds %s", e.Path)
	}
	return fmt.Sprintf("process %d holds %s", e.PID, e.Path)
}

// Lock takes the lock of the project, whose state directory must be prepared. If a running
// process holds it, Lock returns a [HeldError] at once. If the holder's id is missing, or its
// process has ended, the holder has just taken the lock, or only checks whether it is free
// ([Project.Unlocked], [Project.Released]). Lock then tries for a second more, or until ctx
// ends. It follows no symbolic links.
func (p Project) Lock(ctx context.Context) (*Lock, error) { return p.lock(ctx, "lock") }

// LockStart is Lock for a process that starts a hub in another process: one at a time. It does
// not prevent any process from being the hub.
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
	// On a full disk the lock holds, only without its holder's id.
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
		// The next holder must not be mistaken for this process.
		if l.Valid() == nil {
			_ = os.Truncate(path, 0)
		}
		return file.Close()
	})
	return l, nil
}

// Unlocked reports whether the lock is free now.
func (p Project) Unlocked() bool {
	file := flock.New(filepath.Join(p.StateDir, "lock"), flock.SetFlag(os.O_RDWR))
	got, err := file.TryLock()
	file.Close()
	return got && err == nil || errors.Is(err, os.ErrNotExist)
}

// Holder returns the current holder of the lock; held with 0 if its id cannot be read.
func (p Project) Holder(ctx context.Context) (pid int, held bool) {
	if p.Unlocked() {
		return 0, false
	}
	return holder(ctx, filepath.Join(p.StateDir, "lock")), true
}

// Close releases the lock. The file stays: removing it would let two processes hold locks on two
// files of the same name. A second call does nothing, nor does one on nil.
func (l *Lock) Close() error {
	if l == nil {
		return nil
	}
	return l.close()
}

// lockPatience is how long Lock tries while the holder is unknown: on a busy machine a process
// that only checks the lock may hold it for a while.
const lockPatience = time.Second

// patience is how long the holder of a lock may take to write its process id.
const patience = 100 * time.Millisecond

// holder reads the holder's id from a lock. The file is empty until the holder has written it.
func holder(ctx context.Context, path string) int {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		if pid := readPID(path); pid > 0 || !pause(ctx) {
			return pid
		}
	}
}

// pause waits briefly, and reports whether ctx is still alive.
func pause(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(5 * time.Millisecond):
		return true
	}
}

// readPID returns the process id in a lock, or 0.
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

// Claim prepares the state directory, takes the project's lock, and records which directory the
// state belongs to. The hub calls it. Errors are those of [Project.Prepare] and [Project.Lock].
func (p Project) Claim(ctx context.Context) (*Lock, error) {
	if err := p.Prepare(); err != nil {
		return nil, err
	}
	lock, err := p.Lock(ctx)
	if err != nil {
		return nil, err
	}
	if lock.Record, lock.Unrecorded = p.record(time.Now()); lock.Record.Root == "" {
		lock.Close()
		return nil, lock.Unrecorded
	}
	_ = os.Remove(p.stoppedMark()) // usually it does not exist
	return lock, nil
}

// stoppedMark returns the file that marks a hub stopped on purpose.
func (p Project) stoppedMark() string { return filepath.Join(p.StateDir, "stopped") }

// MarkStopped records that the hub was stopped on purpose, so that its clients do not start
// another one at once. The next claim removes the mark.
func (p Project) MarkStopped() error { return os.WriteFile(p.stoppedMark(), nil, 0o600) }

// AwaitClaim returns when another process may have claimed the project since
// [Project.MarkStopped], or without that since the call, or when ctx ends.
func (p Project) AwaitClaim(ctx context.Context) {
	watch, err := filewatch.Written(p.stoppedMark()) // which a claim removes
	switch {
	case errors.Is(err, os.ErrNotExist):
		watch, err = filewatch.Written(filepath.Join(p.StateDir, "lock"))
	case err == nil && !p.Stopped():
		watch.Close()
		return
	}
	if err == nil {
		defer watch.Close()
		select {
		case <-watch.C:
		case <-ctx.Done():
		}
		return
	}
	for ctx.Err() == nil && p.Unlocked() { // without file events, poll
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
}

// Stopped reports whether the hub was stopped on purpose, and none ran since.
func (p Project) Stopped() bool {
	_, err := os.Stat(p.stoppedMark())
	return err == nil
}
