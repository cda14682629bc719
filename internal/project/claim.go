package project

import (
	"context"
	"os"
	"path/filepath"
	"time"
)

// Claim prepares the state directory, takes the project's lock, and writes down which
// directory the state belongs to. It is for the hub. Errors are those of
// [Project.Prepare] and [Project.Lock].
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
	_ = os.Remove(p.stoppedMark()) // mostly it is not there
	return lock, nil
}

// stoppedMark is the file that says that the hub was stopped on purpose.
func (p Project) stoppedMark() string { return filepath.Join(p.StateDir, "stopped") }

// MarkStopped notes that the hub was stopped on purpose: whoever is attached to
// it does not take its place at once. Who claims the project ends that.
func (p Project) MarkStopped() error { return os.WriteFile(p.stoppedMark(), nil, 0o600) }

// Stopped reports whether the hub was stopped on purpose, and there was none
// since.
func (p Project) Stopped() bool {
	_, err := os.Stat(p.stoppedMark())
	return err == nil
}
