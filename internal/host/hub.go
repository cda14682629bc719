// Package host runs the two kinds of processes of a project.
//
// [Serve] and [ServeThrough] run an editor's process: it answers the core methods itself and
// relays all other messages to the project's daemon, which it starts if none runs.
//
// [Daemon] runs the daemon: it takes the project's lock, opens the hub, and then listens for
// clients. It ends when the hub cannot be opened or has lost its files, and when it has no
// clients and no work. The next client that needs a hub starts another one.
package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/checkpoint"

	"github.com/duet-rpc/duet-rpc/handlers"
	"github.com/duet-rpc/duet-rpc/internal/agentlink"
	"github.com/duet-rpc/duet-rpc/internal/build"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/durable"
	"github.com/duet-rpc/duet-rpc/internal/filewatch"
	"github.com/duet-rpc/duet-rpc/internal/gate"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/logging"
	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite"
	"github.com/duet-rpc/duet-rpc/internal/supervisor"
	"github.com/duet-rpc/duet-rpc/internal/trigger"
)

// An openHub is a project's open hub, with its executors.
type openHub struct {
	hub       *hub.Hub
	executors *supervisor.Supervisor
	log       *logging.Log
	watch     *filewatch.Watch // of its directory; nil: the directory is not watched
	gone      chan struct{}    // closed when its files no longer belong to the project
}

// hubOptions are the options to open a hub with.
type hubOptions struct {
	settings *hubprocess.Settings
	log      *logging.Log
	project  project.Project
	lock     *project.Lock

	editorFiles catalog.EditorFiles // may be nil
	idle        func()              // see hub.Options
}

// openProject opens the project's hub. The caller holds the lock.
func openProject(ctx context.Context, o hubOptions) (*openHub, error) {
	p := o.project
	live, err := o.settings.LiveConfig(p)
	if err != nil {
		return nil, err
	}
	c, err := live.Current(false)
	if err != nil {
		return nil, err
	}
	for _, note := range p.Notes {
		o.log.Warn("a part of the project is ignored", "note", note)
	}
	for _, file := range c.Untrusted {
		o.log.Warn("a project's configuration waits for your trust; parts of it have no effect", "file", file, "todo", "duet-rpc trust")
	}
	if err := o.lock.Unrecorded; err != nil {
		o.log.Warn("cannot record the project, so it may not be found again after a move", "err", err)
	}
	notes, err := agentlink.DefaultNotes(os.Getenv)
	if err != nil {
		o.log.Debug("cannot store what agents report", "err", err)
	}
	h := &openHub{log: o.log, gone: make(chan struct{})}
	lost := sync.OnceFunc(func() { close(h.gone) })
	var removed <-chan struct{}
	if h.watch, err = filewatch.Directory(p.StateDir, p.Root); err == nil {
		removed = h.watch.C
	} else {
		o.log.Debug("cannot watch for the removal of the project's files, so Duet checks at intervals", "err", err)
	}
	h.hub, err = hub.Open(ctx, hub.Options{
		OpenStore: openStore(p, o.lock.Record, o.log), Database: p.Database(), Root: p.Root, Agents: live, Keys: live.Keys, Rules: live.Rules, Budget: live.Budget, Limits: c.Limits, Changes: live,
		Builds: func() (build.Configured, error) {
			now, err := live.Current(false)
			if err != nil {
				return build.Configured{}, err
			}
			return build.Configured{Builds: now.Builds, Untrusted: len(now.Untrusted) > 0}, nil
		},
		Gates: func() (gate.Configured, error) {
			now, err := live.Current(false)
			if err != nil {
				return gate.Configured{}, err
			}
			return gate.Configured{Gates: now.Gates, Waiting: now.WaitingGates}, nil
		},
		Preview: func(restricted bool) (config.Preview, error) {
			now, err := live.Current(restricted)
			if err != nil {
				return config.Preview{}, err
			}
			return now.Preview, nil
		},
		TryServers: func() bool {
			now, err := live.Current(false)
			return err == nil && now.ProbeServers
		},
		EditorServer: func(session string) *catalog.MCPServer {
			if now, err := live.Current(false); err != nil || !now.EditorTools {
				return nil
			}
			return editorServer(p.Root, session)
		},
		Checkpoints: func(dir string) (checkpoint.Options, bool) {
			now, err := live.Current(false)
			return checkpoint.Options{Dir: dir, State: checkpointState(p.StateDir, dir), Log: o.log.Logger, Trusted: func() bool { return isTrusted(p) }}, err == nil && now.Checkpoints && !holdsHome(dir)
		},
		Worktrees: &hub.WorktreeOptions{
			Parent: project.WorktreesDir(p.StateDir),
			Open: func(ctx context.Context, trusts bool) (hub.Worktrees, error) {
				return openWorktrees(ctx, p, trusts, o.log.Logger)
			},
			Config: func(restricted bool) (config.Worktrees, bool) {
				now, err := live.Current(restricted)
				if now == nil {
					o.log.Warn("worktrees are not used as configured", "err", err)
					return config.Worktrees{Use: config.WorktreeNever}, false
				}
				return now.Worktrees, now.WorktreesWait
			},
		},
		Triggers: func() (trigger.Definitions, error) {
			now, err := live.Current(false)
			if err != nil {
				return trigger.Definitions{}, err
			}
			return trigger.Definitions{Triggers: now.Triggers, Automation: now.Automation}, nil
		},
		StateDir:   p.StateDir,
		Replaced:   replacedSince(p, o.lock.Record.ReplacedAt),
		Restricted: func() (*config.Config, error) { return live.Current(true) },
		SignInSeen: func(a config.Agent, answered bool) { notes.Turn(a.Name, a.StartCommand(), answered) },
		Getenv:     os.Getenv, Logger: o.log.Logger, KillAgents: supervisor.KillAgents,
		Idle: o.idle,
		Valid: func() error {
			if err := o.lock.Valid(); err != nil {
				return err
			}
			return o.lock.Record.CheckRoot()
		},
		Removed: removed,
		Lost:    func(error) { lost() },

		Executors: func(daemon catalog.Daemon) hub.Executors {
			h.executors = supervisor.New(supervisor.Options{
				Daemon: daemon, EditorFiles: o.editorFiles, Command: executorCommand, Environment: executorEnvironment(), Logger: o.log.Logger, WireError: handlers.ExecutorError,
				Trace: traceExecutors(o.log), MostIdle: c.Limits.MostIdle(),
			})
			return h.executors
		},
	})
	if err == nil {
		return h, nil
	}
	if h.executors != nil {
		h.executors.Close(ctx)
	}
	if h.watch != nil {
		h.watch.Close()
	}
	return nil, sqlite.Locked(p.Database(), err)
}

// replacedSince returns [project.Project.Replaced]: the last known value while the record cannot be
// read. It may be called from any goroutine.
func replacedSince(p project.Project, first time.Time) func() time.Time {
	var mu sync.Mutex
	last := first
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		if at, err := p.Replaced(); err == nil {
			last = at
		}
		return last
	}
}

// openStore opens the project's database. For a project that was moved it renames the directory of
// its worktrees, whose links package worktree repairs, and replaces the paths in the database.
func openStore(p project.Project, r project.Record, log *logging.Log) func(context.Context, store.Options) (store.Store, error) {
	return func(ctx context.Context, opts store.Options) (store.Store, error) {
		s, err := sqlite.Open(ctx, p.Database(), opts)
		if err != nil {
			return nil, err
		}
		if r.MovedFrom == "" {
			return s, nil
		}
		from := string(r.MovedFrom)
		log.Info("the project was moved here", "from", from)
		worktrees, oldWorktrees := project.WorktreesDir(p.StateDir), r.OldWorktreesDir()
		if oldWorktrees != worktrees { // else a power cut came before the state got its new name, or the project is back
			if err = durable.Rename(oldWorktrees, worktrees); errors.Is(err, fs.ErrNotExist) { // there are none, or a killed process has moved them
				err = nil
			}
		}
		if err == nil {
			err = s.Write(ctx, func(t store.Tx) error {
				return errors.Join(t.MoveDirectories(from, p.Root), t.MoveDirectories(oldWorktrees, worktrees))
			})
		}
		if err == nil {
			err = p.PathsMoved()
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("moving the project from %s: %w", from, err), s.Close())
		}
		return s, nil
	}
}

// close interrupts all work and ends the executors.
func (h *openHub) close(ctx context.Context) {
	if err := h.hub.Close(); err != nil && !h.hub.Health().Lost() { // for a lost hub the problem was logged already
		h.log.Warn("the database was not closed properly", "err", err)
	}
	h.executors.Close(ctx)
	if h.watch != nil {
		h.watch.Close()
	}
}

// traceExecutors returns a function that logs the messages of executors by their process ids;
// nil if message logging is off.
func traceExecutors(log *logging.Log) func(pid int, sent bool, message []byte) {
	messages := log.Messages()
	if messages == nil {
		return nil
	}
	return func(pid int, sent bool, message []byte) {
		messages(fmt.Sprintf("executor %d", pid), sent, message)
	}
}

// executorCommand returns the command of an executor: the program of this process, even if its
// file was replaced by another build.
func executorCommand() []string { return []string{runningProgram(), "executor"} }

// holdsHome reports whether a directory is the user's home directory or above it. Such a
// directory has too much that is no project.
func holdsHome(dir string) bool {
	home, err := os.UserHomeDir()
	if err != nil {
		return false
	}
	rel, err := filepath.Rel(dir, home)
	return err == nil && filepath.IsLocal(rel)
}

// CheckpointsDir returns the directory with a directory for each checkpoint store of a project.
func CheckpointsDir(stateDir string) string { return filepath.Join(stateDir, "checkpoints") }

// checkpointState returns the directory of the store of a working directory.
func checkpointState(stateDir, dir string) string {
	name := sha256.Sum256([]byte(dir))
	return filepath.Join(CheckpointsDir(stateDir), hex.EncodeToString(name[:8]))
}

// editorServer returns the MCP server with the tools of the editor of a conversation. Agents start
// servers with an environment of their own choice, so it names all that the server needs.
func editorServer(root, session string) *catalog.MCPServer {
	program := runningProgram()
	if strings.HasPrefix(program, "/proc/self/") { // which would be the agent's
		program = fmt.Sprintf("/proc/%d/exe", os.Getpid())
	}
	env := make(map[string]string)
	for _, name := range []string{project.StateVariable, "XDG_STATE_HOME", "XDG_CONFIG_HOME", "HOME"} {
		if value := os.Getenv(name); value != "" {
			env[name] = value
		}
	}
	return &catalog.MCPServer{Name: catalog.EditorServer, Command: program, Args: []string{"mcp", "--session", session, "--root", root}, Env: env}
}

// executorEnvironment returns the environment of executors, without the secrets that the
// daemon's may contain.
func executorEnvironment() (environment []string) {
	for _, name := range []string{"PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TERM", "TMPDIR", "USER", "LOGNAME", "SHELL", "GORACE", project.StateVariable, "XDG_STATE_HOME"} {
		if value, ok := os.LookupEnv(name); ok {
			environment = append(environment, name+"="+value)
		}
	}
	return environment
}

// whyUnavailable describes, for the user, why a project's hub failed to open.
func whyUnavailable(p project.Project, err error) string {
	text := err.Error()
	var held *project.HeldError
	switch {
	case errors.As(err, &held):
		text = fmt.Sprintf("another duet-rpc has this project open (process %d); talk to it with `duet-rpc session` and `duet-rpc approvals`, or end it", held.PID)
	case store.IsFull(err): // the error needs no prefix
	case errors.As(err, new(*sqlite.OpenError)):
		text += "; `duet-rpc doctor` says more"
	}
	return p.ShortenPaths(text)
}

// unavailable returns the error for clients of a project that has no hub.
func unavailable(p project.Project, err error) *domain.Error {
	return &domain.Error{Kind: domain.KindUnavailable, Message: "sessions are not available: " + whyUnavailable(p, err), Err: err}
}
