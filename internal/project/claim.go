package project

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/filewatch"
)

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
