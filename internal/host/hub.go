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
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/agentlink"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/dialect/executor"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/filewatch"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/logging"
	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite"
	"github.com/duet-rpc/duet-rpc/internal/supervisor"
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
		o.log.Warn("a project's configuration waits for your trust; parts of it have no effect",
			"file", file, "todo", "duet-rpc trust")
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
		Project: &hubProject{
			project: p, lock: o.lock, config: live, notes: notes, log: o.log, replaced: o.lock.Record.ReplacedAt,
		},
		Configuration: live,
		Database:      p.Database(), Root: p.Root, StateDir: p.StateDir, WorktreesDir: project.WorktreesDir(p.StateDir),
		Limits: c.Limits, Getenv: os.Getenv, Logger: o.log.Logger, KillAgents: supervisor.KillAgents, Idle: o.idle,
		Private: func() []string { return private(p, live) },
		Removed: removed, Lost: func(error) { lost() },
		Executors: func(daemon catalog.Daemon) hub.Executors {
			h.executors = supervisor.New(supervisor.Options{
				Daemon: daemon, EditorFiles: o.editorFiles,
				Command: executorCommand, Environment: executorEnvironment(), MostIdle: c.Limits.MostIdle(),
				Logger: o.log.Logger, WireError: executor.Family.Error, Trace: traceExecutors(o.log),
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

// executorEnvironment returns the environment of executors, without the secrets that the
// daemon's may contain.
func executorEnvironment() (environment []string) {
	for _, name := range []string{
		"PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TERM", "TMPDIR", "USER", "LOGNAME", "SHELL", "GORACE",
		project.StateVariable, "XDG_STATE_HOME",
	} {
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
		text = fmt.Sprintf("another duet-rpc has this project open (process %d); talk to it with `duet-rpc session` and `duet-rpc approvals`, "+
			"or end it", held.PID)
	case store.IsFull(err): // the error needs no prefix
	case errors.As(err, new(*sqlite.OpenError)):
		text += "; `duet-rpc doctor` says more"
	}
	return p.ShortenPaths(text)
}

// unavailable returns the error for clients of a project that has no hub.
func unavailable(p project.Project, err error) *domain.Error {
	return &domain.Error{Kind: lineKind(err), Message: "sessions are not available: " + whyUnavailable(p, err), Err: err}
}

// lineKind returns the kind of an error for clients of a daemon that cannot be reached.
func lineKind(err error) string {
	if hubprocess.LacksProject(err) {
		return domain.KindNoDirectory
	}
	return domain.KindUnavailable
}
