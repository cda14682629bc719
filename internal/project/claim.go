package project

import (
	"context"
	"os"
	"path/filepath"
)

// Claim prepares the state directory and takes the project's lock, as whoever is
// going to be its hub, or use its database where no hub runs. An error is one
// of [Project.Prepare] or [Project.Lock].
func (p Project) Claim(ctx context.Context) (*Lock, error) {
	if err := p.Prepare(); err != nil {
		return nil, err
	}
	lock, err := p.Lock(ctx)
	if err == nil {
		_ = os.Remove(p.stoppedMark()) // mostly it is not there
	}
	return lock, err
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
