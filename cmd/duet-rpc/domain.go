package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/handlers"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/logging"
	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/supervisor"
)

// A domain opens the project's hub when it is first needed, or a moment after
// the start, beside the first reply and never before it.
type domain struct {
	settings *settings
	log      *logging.Log
	begin    sync.Once
	opened   chan struct{} // closed when hub or failure is set

	claim   claim
	problem string // that this process is the hub, though it should not be; or empty

	// Set before opened is closed.
	hub       *hub.Hub
	failure   *hub.Error
	executors *supervisor.Supervisor
	agents    agents
}

func newDomain(s *settings, log *logging.Log, c claim) *domain {
	return &domain{settings: s, log: log, claim: c, opened: make(chan struct{})}
}

// A claim is the right to be the hub of a project, or why there is none.
type claim struct {
	project project.Project
	lock    *project.Lock
	err     error // of *project.HeldError if another process is the hub
}

// claimProject tries to become the hub of the project.
func claimProject(s *settings) claim {
	p, err := findProject(s)
	if err != nil {
		return claim{err: err}
	}
	if err := p.Prepare(); err != nil {
		return claim{project: p, err: err}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	lock, err := p.Lock(ctx)
	if err == nil {
		_ = os.Remove(stoppedMark(p)) // mostly it is not there
	}
	return claim{p, lock, err}
}

// held reports whether another process is the hub.
func (c claim) held() bool {
	var held *project.HeldError
	return errors.As(c.err, &held)
}

// open begins to open the hub.
func (d *domain) open() {
	d.begin.Do(func() {
		go func() {
			defer close(d.opened)
			if err := d.tryOpen(context.Background()); err != nil {
				d.failure = unavailable(err)
				d.log.Warn("sessions are not available", "err", err)
			}
		}()
	})
}

// Hub waits for the hub. Its error is a *hub.Error of KindUnavailable.
func (d *domain) Hub(ctx context.Context) (*hub.Hub, error) {
	d.open()
	select {
	case <-d.opened:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if d.failure != nil {
		return nil, d.failure
	}
	return d.hub, nil
}

// Issues lists what is wrong, without waiting.
func (d *domain) Issues() (issues []string) {
	if d.problem != "" {
		issues = append(issues, d.problem)
	}
	select {
	case <-d.opened:
	default:
		return issues
	}
	if d.failure != nil {
		return append(issues, d.failure.Message)
	}
	return append(issues, d.hub.Issues()...)
}

// close interrupts what runs and ends the executors.
func (d *domain) close(ctx context.Context) {
	defer d.claim.lock.Close()
	begun := true
	d.begin.Do(func() { begun = false })
	if !begun {
		return
	}
	<-d.opened
	if d.hub != nil {
		if err := d.hub.Close(); err != nil {
			d.log.Warn("the database was not closed properly", "err", err)
		}
	}
	if d.executors != nil {
		d.executors.Close(ctx)
	}
}

// tryOpen opens the project's hub.
func (d *domain) tryOpen(ctx context.Context) error {
	if d.claim.err != nil {
		return d.claim.err
	}
	p := d.claim.project
	c, err := loadConfig(d.settings)
	if err != nil {
		return configError(err)
	}
	for _, file := range c.Untrusted {
		d.log.Warn("a project's configuration waits for your trust; parts of it have no effect", "file", file, "todo", "duet-rpc trust")
	}
	command, environment, err := executorCommand()
	if err != nil {
		return err
	}
	d.agents.load = func() (*config.Config, error) { return loadConfig(d.settings) }
	d.agents.files, err = configFiles(p)
	if err != nil {
		return err
	}
	d.agents.take(c)
	d.hub, err = hub.Open(ctx, hub.Options{
		Database: p.Database(), Root: p.Root, Agents: &d.agents, Keys: c.Keys, Rules: c.Rules, Limits: c.Limits,
		Getenv: os.Getenv, Logger: d.log.Logger, KillAgents: supervisor.KillAgents, Idle: debug.FreeOSMemory,
		Executors: func(daemon catalog.Daemon) hub.Executors {
			d.executors = supervisor.New(supervisor.Options{
				Daemon: daemon, Command: command, Environment: environment, Logger: d.log.Logger, WireError: handlers.ExecutorError,
			})
			return d.executors
		},
	})
	return err
}

// executorCommand is how an executor is started, and its environment, which
// is built from nothing.
func executorCommand() (command, environment []string, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, fmt.Errorf("finding the program itself, which is also the executor: %w", err)
	}
	for _, name := range []string{"PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TERM", "TMPDIR", "USER", "LOGNAME", "SHELL", "GORACE"} {
		if value, ok := os.LookupEnv(name); ok {
			environment = append(environment, name+"="+value)
		}
	}
	return []string{self, "executor"}, environment, nil
}

// unavailable is why there is no hub, as clients are told it.
func unavailable(err error) *hub.Error {
	text := err.Error()
	var held *project.HeldError
	var broken *store.OpenError
	switch {
	case errors.As(err, &held):
		text = fmt.Sprintf("another duet-rpc has this project open (process %d); talk to it with `duet-rpc session` and `duet-rpc approvals`, or end it", held.PID)
	case errors.As(err, &broken):
		text += "; `duet-rpc doctor` says more"
	}
	return &hub.Error{Kind: hub.KindUnavailable, Message: "sessions are not available: " + text, Err: err}
}

// openAfter is when the hub is opened at the latest: runs that were queued
// when a process died go on without anybody asking.
const openAfter = 100 * time.Millisecond

// drainFor is how long daemon.stop lets work finish (DESIGN section 11).
const drainFor = 15 * time.Second

// ready is the hub, or nil where there is none, or none yet.
func (d *domain) ready() *hub.Hub {
	select {
	case <-d.opened:
		return d.hub
	default:
		return nil
	}
}

// busy reports whether agents are at work.
func (d *domain) busy() bool {
	h := d.ready()
	return h != nil && h.Busy()
}

// drain waits until no agent is at work, as long as ctx lasts, and lets no
// other begin.
func (d *domain) drain(ctx context.Context) {
	if h := d.ready(); h != nil {
		h.Drain(ctx)
	}
}
