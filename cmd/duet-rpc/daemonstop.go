package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/host"
	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/socket"
)

// stopPause is how long whoever waits for the end of a hub waits before it
// looks again.
const stopPause = 20 * time.Millisecond

// stopHub asks the project's hub to end, and waits until it has. With force one
// that does not answer is killed.
func stopHub(ctx context.Context, s *settings, p project.Project, force bool) (daemonStatus, error) {
	within := host.DrainWithin + s.AnswerWithin
	if force {
		within = host.EndWithin + s.AnswerWithin
	}
	asking, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	status, err := askToStop(asking, s, p, force)
	var silent *host.SilentError
	switch {
	case err == nil || ctx.Err() != nil:
		return status, err
	case force && (errors.As(err, &silent) && silent.Held || asking.Err() != nil):
		return killHub(ctx, s, p)
	case asking.Err() != nil:
		pid, _ := p.Holder(ctx)
		return status, fmt.Errorf("process %d has not ended yet; --force does not wait for what it runs", pid)
	}
	return status, err
}

// askToStop asks the hub to end, and waits until it has, or ctx ends.
func askToStop(ctx context.Context, s *settings, p project.Project, force bool) (daemonStatus, error) {
	status, err := hubStatus(ctx, s, p)
	if err != nil {
		return status, err
	}
	c, err := host.Dial(ctx, &s.Settings, p, client.WithReconnect(false))
	if err != nil {
		return status, err
	}
	defer c.Close()
	if err := c.Call(ctx, "daemon.stop", map[string]bool{"force": force}, nil); err != nil {
		return status, err
	}
	for { // until that process is the hub no more
		now, err := hubStatus(ctx, s, p)
		var nobody *socket.NobodyError
		ended := errors.As(err, &nobody) && p.Unlocked()
		if ended || err == nil && now.PID != status.PID {
			return status, nil
		}
		select {
		case <-ctx.Done():
			return status, ctx.Err()
		case <-time.After(stopPause):
		}
	}
}

// killHub ends the process that is the hub and does not answer: by SIGTERM, and
// if it has not ended then as long after it as a hub needs, by SIGKILL.
func killHub(ctx context.Context, s *settings, p project.Project) (status daemonStatus, err error) {
	pid, held := p.Holder(ctx)
	if !held {
		return status, errors.New("the hub has ended by itself")
	}
	if pid == 0 {
		return status, fmt.Errorf("the hub does not answer, and %s does not tell which process it is: end it yourself", p.StateDir)
	}
	process, err := os.FindProcess(pid) // the very one, where the system can hold one
	if err != nil {
		return status, fmt.Errorf("the hub (process %d) does not answer, and cannot be ended: %w", pid, err)
	}
	defer process.Release()
	stillIts := func() bool {
		now, held := p.Holder(ctx)
		return held && now == pid
	}
	status.PID, status.killed = pid, true
	status.raw, _ = json.Marshal(map[string]any{"pid": pid, "killed": true}) // never fails
	for _, kill := range []struct {
		signal os.Signal
		within time.Duration
	}{{syscall.SIGTERM, min(host.EndWithin, s.AnswerWithin)}, {os.Kill, s.AnswerWithin}} {
		if !stillIts() {
			return status, nil
		}
		if err = process.Signal(kill.signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
			err = fmt.Errorf("the hub (process %d) does not answer, and cannot be ended: %w", pid, err)
			continue // not every system knows both
		}
		err = nil
		for deadline := time.Now().Add(kill.within); time.Now().Before(deadline); {
			if !stillIts() {
				return status, nil
			}
			select {
			case <-ctx.Done():
				return status, ctx.Err()
			case <-time.After(stopPause):
			}
		}
	}
	if err == nil {
		err = fmt.Errorf("process %d was killed, and still has not ended", pid)
	}
	return status, err
}
