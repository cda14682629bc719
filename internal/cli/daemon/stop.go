package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/host"
	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

// lookAgain is how long whoever waits for the hub's lock waits before it looks whether
// another process has taken it in the moment in which it was free, of which nobody is
// told. That is rare.
const lookAgain = time.Second

// Stop asks the project's hub to end, and waits until it has; note is told what is
// waited for, if anything is. With force a hub that does not answer is killed.
func Stop(ctx context.Context, s *hubprocess.Settings, p project.Project, force bool, note func(string)) (status wire.HubStatus, killed bool, err error) {
	within := host.DrainWithin + s.AnswerWithin
	if force {
		within = host.EndWithin + s.AnswerWithin
	}
	asking, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	status, err = askToStop(asking, s, p, force, note)
	var silent *hubprocess.SilentError
	switch {
	case err == nil || ctx.Err() != nil:
		return status, false, err
	case force && (errors.As(err, &silent) && silent.Held || asking.Err() != nil):
		status, err = killHub(ctx, s, p)
		return status, true, err
	case asking.Err() != nil:
		pid, _ := p.Holder(ctx)
		return status, false, fmt.Errorf("process %d has not ended yet; --force would not wait for its agents", pid)
	}
	return status, false, err
}

// askToStop asks the hub to end, and waits until it has, or ctx ends.
func askToStop(ctx context.Context, s *hubprocess.Settings, p project.Project, force bool, note func(string)) (wire.HubStatus, error) {
	s = s.ForAnyBuild()
	status, err := Status(ctx, s, p)
	if err != nil {
		return status, err
	}
	if running := status.Subsystems.Supervisor.Running; running > 0 && !force {
		note(fmt.Sprintf("waiting for %s at work, at most %v; --force would not wait", term.Count(running, "agent"), host.DrainWithin))
	}
	c, err := hubprocess.Dial(ctx, s, p, client.WithReconnect(false))
	if err != nil {
		return status, err
	}
	defer c.Close()
	connected, cancel := wire.WhileConnected(ctx, c)
	defer cancel()
	if err := c.Call(ctx, "daemon.stop", map[string]bool{"force": force}, nil); err != nil {
		return status, err
	}
	<-connected.Done() // it ends its connections shortly before it gives up the lock
	return status, awaitEnd(ctx, p, status.PID)
}

// awaitEnd waits until a process is no longer the hub, or ctx ends.
func awaitEnd(ctx context.Context, p project.Project, pid int) error {
	released := p.Released()
	for {
		select {
		case <-released: // it was the hub's last deed
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lookAgain):
		}
		if !isHolder(ctx, p, pid) {
			return nil
		}
	}
}

// killedWithin is how long the kernel may take to end a process that was killed: a loaded
// machine runs it first.
const killedWithin = 30 * time.Second

// killHub ends the process that is the hub and does not answer: by SIGTERM, and
// if it has not ended then as long after it as a hub needs, by SIGKILL. The
// status has no more than its process id.
func killHub(ctx context.Context, s *hubprocess.Settings, p project.Project) (status wire.HubStatus, err error) {
	pid, held := p.Holder(ctx)
	if !held {
		return status, errors.New("the hub has ended by itself")
	}
	if pid == 0 {
		return status, fmt.Errorf("the hub does not answer, and nothing in %s says which process it is: end it yourself", p.StateDir)
	}
	process, err := os.FindProcess(pid) // the very one, where the system can hold one
	if err != nil {
		return status, cannotEnd(pid, err)
	}
	defer process.Release()
	status.PID = pid
	status.Raw, _ = json.Marshal(map[string]any{"pid": pid, "killed": true}) // never fails
	for _, kill := range []struct {
		signal os.Signal
		within time.Duration
	}{{syscall.SIGTERM, min(host.EndWithin, s.AnswerWithin)}, {os.Kill, killedWithin}} {
		if !isHolder(ctx, p, pid) {
			return status, nil
		}
		if err = process.Signal(kill.signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
			err = cannotEnd(pid, err)
			continue // not every system knows both
		}
		err = nil
		ending, cancel := context.WithTimeout(ctx, kill.within)
		ended := awaitEnd(ending, p, pid)
		cancel()
		if ended == nil || ctx.Err() != nil {
			return status, ctx.Err()
		}
	}
	if err == nil {
		err = fmt.Errorf("process %d was killed, and still has not ended", pid)
	}
	return status, err
}

// isHolder reports whether a process has the hub's lock, as far as anybody can tell.
func isHolder(ctx context.Context, p project.Project, pid int) bool {
	now, held := p.Holder(ctx)
	return held && (now == pid || now == 0)
}

func cannotEnd(pid int, err error) error {
	return fmt.Errorf("the hub (process %d) does not answer, and cannot be ended: %w", pid, err)
}
