package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/internal/shellcommand"
)

// Projects lists, moves and forgets the user's projects on this machine, for commands and for the
// clients of a daemon. Errors are safe to show to users; those that are no *domain.Error come from ctx.
type Projects struct {
	Settings *hubprocess.Settings
	// Own is the project of this daemon, and Hub its hub. A command has neither.
	Own project.Project
	Hub *hub.Hub
}

// List returns all projects, the last used first.
func (p Projects) List(ctx context.Context) ([]protocol.Project, error) {
	records, err := project.All(os.Getenv)
	if err != nil {
		return nil, explain(err, "")
	}
	list := make([]protocol.Project, 0, len(records))
	for _, r := range records {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		list = append(list, p.describe(ctx, r))
	}
	return list, nil
}

func (p Projects) describe(ctx context.Context, r project.Record) protocol.Project {
	d := protocol.Project{Root: string(r.Root), StateDir: r.StateDir, LastUsed: r.LastUsed, Replaced: !r.ReplacedAt.IsZero()}
	if _, err := os.Stat(d.Root); errors.Is(err, fs.ErrNotExist) {
		d.Missing = true
	}
	_ = filepath.WalkDir(r.StateDir, func(_ string, e fs.DirEntry, err error) error { // files may appear and disappear meanwhile
		if err != nil {
			return nil
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			d.Bytes += info.Size()
		}
		return nil
	})
	var err error
	if d.Sessions, err = p.sessions(ctx, r); err != nil {
		d.Error = err.Error()
	}
	return d
}

// counting is held while this process has a database open to count its sessions.
var counting sync.Mutex

// sessions returns the number of sessions of a project. It asks the hub of the own project, and opens one
// database at a time: opening and closing a database that this process has open would release the locks on
// it (https://sqlite.org/howtocorrupt.html#_posix_advisory_locks_canceled_by_a_separate_thread_doing_close_).
func (p Projects) sessions(ctx context.Context, r project.Record) (n int, err error) {
	if p.Hub == nil || r.StateDir != p.Own.StateDir {
		counting.Lock()
		defer counting.Unlock()
		return CountSessions(ctx, project.Project{Root: string(r.Root), StateDir: r.StateDir})
	}
	paths, err := p.Hub.Query().RecentPaths(ctx, math.MaxInt32)
	for _, path := range paths {
		n += path.Count
	}
	return n, err
}

// Keep is KeepProject for the project at root; "": the daemon's own.
func (p Projects) Keep(root string) (protocol.KeptProject, error) {
	of := p.Own
	if root != "" {
		r, err := project.Known(os.Getenv, root)
		if err != nil {
			return protocol.KeptProject{}, explain(err, root)
		}
		of = project.Project{Root: string(r.Root), StateDir: r.StateDir}
	}
	kept, err := KeepProject(of)
	return protocol.KeptProject{Root: of.Root, Kept: kept}, err
}

// KeepProject makes the rules, trust and answers from before the replacement of a project's directory
// count again. It reports whether the directory had been replaced.
func KeepProject(p project.Project) (kept bool, err error) {
	kept, err = p.Keep()
	if errors.Is(err, fs.ErrNotExist) {
		err = &project.NoStateError{Root: p.Root}
	}
	return kept, explain(err, p.Root)
}

// Move gives the sessions of the project at one directory to another, as [project.Move] does. It first
// ends an idle daemon of the project.
func (p Projects) Move(ctx context.Context, from, to string) error {
	for _, root := range []string{from, to} {
		if err := p.checkOther(root, "move", from, to); err != nil {
			return err
		}
	}
	p.endIdleDaemon(ctx, from)
	return explain(project.Move(ctx, os.Getenv, from, to), from)
}

// Forget deletes the sessions of the project at root with their worktrees, as [project.Forget] does. It
// first ends an idle daemon of the project. If a worktree has work that is not landed, it deletes
// nothing. kept is the directory of worktrees without a repository, which stay.
func (p Projects) Forget(ctx context.Context, root string) (kept string, err error) {
	if err := p.checkOther(root, "forget", root); err != nil {
		return "", err
	}
	p.endIdleDaemon(ctx, root)
	err = project.Forget(ctx, os.Getenv, root, func(stateDir string) error {
		stay, err := RemoveGitState(ctx, stateDir)
		if err == nil {
			kept = stay
		}
		return err
	})
	return kept, explain(err, root)
}

// checkOther refuses the own project, whose state this process has open. The error has the command that
// does it without the daemon.
func (p Projects) checkOther(root, command string, args ...string) error {
	if p.Hub == nil {
		return nil
	}
	r, err := project.Known(os.Getenv, root)
	if isOwn := err == nil && r.StateDir == p.Own.StateDir || project.SameFile(root, p.Own.Root); !isOwn {
		return nil
	}
	for _, arg := range args {
		command += " " + shellcommand.Argument(arg)
	}
	return domain.Errorf(domain.KindBadState,
		"%s is the project of this daemon: end it with `duet-rpc daemon stop --root %s`, then run `duet-rpc projects %s`",
		root, shellcommand.Argument(root), command)
}

// explain gives an error its kind, and tells how to end the daemon that prevents moving or forgetting the
// project at root.
func explain(err error, root string) error {
	if err == nil || errors.As(err, new(*domain.Error)) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	e := &domain.Error{Kind: domain.KindNotWritable, Message: err.Error(), Err: err}
	if errors.As(err, new(*project.NoStateError)) {
		e.Kind = domain.KindProjectNotFound
	}
	if held, ok := errors.AsType[*project.HeldError](err); ok {
		e.Kind = domain.KindBadState
		e.Message = fmt.Sprintf("a daemon runs there (process %d): end it with `duet-rpc daemon stop --root %s`, then try again",
			held.PID, shellcommand.Argument(root))
	}
	return e
}

const (
	// soonIdle is how long a daemon may take to be idle: it may not have noticed yet that the last client,
	// or its agent, has ended.
	soonIdle = 2 * time.Second
	// idlePoll is the time between two looks at a daemon.
	idlePoll = 20 * time.Millisecond
)

// endIdleDaemon ends the daemon of the project at root if it is idle and has no other client. The lock
// shows whether it has ended.
func (p Projects) endIdleDaemon(ctx context.Context, root string) {
	r, err := project.Known(os.Getenv, root)
	if err != nil {
		return
	}
	there := project.Project{Root: string(r.Root), StateDir: r.StateDir}
	c, err := hubprocess.Dial(ctx, p.Settings.ForAnyBuild(), there)
	if err != nil {
		return
	}
	defer c.Close()
	for deadline := time.Now().Add(soonIdle); ; {
		var status protocol.DaemonStatus
		err := c.Call(ctx, "daemon.status", nil, &status)
		if x := status.Subsystems; err == nil && x.Supervisor.Running+x.Supervisor.Queued == 0 && x.IPC.Clients <= 1 {
			break
		}
		if err != nil || time.Now().After(deadline) || !wait(ctx, idlePoll) {
			return
		}
	}
	if c.Call(ctx, "daemon.stop", protocol.StopDaemonParams{}, nil) != nil {
		return
	}
	for deadline := time.Now().Add(p.Settings.StartWithin()); !there.Unlocked() && time.Now().Before(deadline); {
		if !wait(ctx, idlePoll) {
			return
		}
	}
}

// wait waits, and reports whether ctx is still alive.
func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
