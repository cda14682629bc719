// Package supervisor starts, shares, watches and ends executors: children of this process that
// are connected to it by a socketpair and speak the catalog in both directions.
//
// A [Supervisor] owns the executors and all their goroutines. Each process has one goroutine
// that starts it and stays until it has gone (process.run), and Close waits for all of them. The
// package knows neither the hub, which requests leases of executors, nor the content of prompts.
//
// Agents are processes of an executor: see package executor/acp.
package supervisor

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/background"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// Options configure a Supervisor.
type Options struct {
	// Daemon serves requests of executors.
	Daemon catalog.Daemon
	// EditorFiles, if set, serves file requests, too.
	EditorFiles catalog.EditorFiles
	// Command returns the command of Duet's own executor, at each start.
	Command func() []string
	// Environment is the complete environment of executors: they inherit nothing.
	Environment []string
	// WireError converts an error of Daemon for executors.
	WireError func(error) error
	Logger    *slog.Logger
	// Trace, if set, receives each message between the hub and an executor, with its process id;
	// see server.Options.
	Trace func(pid int, sent bool, message []byte)
	// Most is the maximum number of executors, at least 2: one of the places is for commands and
	// terminals only. Default 10.
	Most int
	// IdleAfter is when an idle agent and an unused executor are ended. Default 60 s.
	IdleAfter time.Duration
	// MostIdle is the maximum number of idle agents: beyond it the longest idle one is ended at
	// once.
	MostIdle int
	// StartWithin is how long Duet's own executor may take for its first answer. Default 10 s.
	StartWithin time.Duration
}

// errClosed is the error of Acquire after Close.
var errClosed = errors.New("the executors have been ended")

// A Supervisor owns the executors. Its methods may be called from any
// goroutine.
type Supervisor struct {
	opts   Options
	launch func(command []string) (*child, error) // startChild, or a replacement in tests
	work   background.Group                       // every goroutine: of processes, and those that end them

	mu        sync.Mutex // guards the fields below, and the uses of processes
	processes map[*process]struct{}
	idle      idleSessions
	changed   chan struct{} // closed and replaced when there may be room
	closed    bool
}

// New makes a Supervisor without executors.
func New(opts Options) *Supervisor {
	opts.Most = max(cmp.Or(opts.Most, 10), 2)
	opts.IdleAfter = cmp.Or(opts.IdleAfter, time.Minute)
	opts.StartWithin = cmp.Or(opts.StartWithin, 10*time.Second)
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.WireError == nil {
		opts.WireError = func(err error) error { return err }
	}
	s := &Supervisor{opts: opts, processes: make(map[*process]struct{}), changed: make(chan struct{})}
	s.launch = s.startChild
	return s
}

// Count returns the number of executors.
func (s *Supervisor) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.processes)
}

func (s *Supervisor) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// purpose determines which uses may share an executor. An ACP session has one to itself while
// there is room, then they share. Commands and terminals share one, whose place is always free.
// A third-party executor runs one session of one agent.
type purpose struct {
	kind    string // command, acp, or executor and the agent's name
	session string // "" if sessions share
}

const (
	kindCommand = "command"
	kindACP     = "acp"
)

func purposeOf(w catalog.LeaseRequest) purpose {
	switch w.Driver {
	case "command", "":
		return purpose{kind: kindCommand}
	case "executor":
		return purpose{"executor " + w.Agent, w.Session}
	}
	return purpose{kindACP, w.Session}
}

// roomChanged wakes all callers that wait for room; mu is held.
func (s *Supervisor) roomChanged() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// forget removes a process that has ended.
func (s *Supervisor) forget(p *process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.ending = true
	s.roomChanged()
	delete(s.processes, p)
	if p.idle != nil {
		p.idle.Stop()
	}
	for _, i := range slices.Clone(s.idle) {
		if i.process == p {
			s.idle.remove(i)
		}
	}
}

// refusals is implemented by a Daemon that handles lost reports without a known task.
type refusals interface {
	ReportRefused(task string, why error)
}

// refused records that a report of the process about a task was not accepted. For "", or a task
// of another executor, the task is unknown, so each of its tasks is affected.
func (p *process) refused(task string, why error) {
	hub, ok := p.supervisor.opts.Daemon.(refusals)
	if !ok {
		return
	}
	for _, task := range p.inventory.affectedTasks(task) {
		hub.ReportRefused(task, why)
	}
}

// unserved handles a message from the process that was invalid, or had wrong parameters. The hub
// knows its own refusals.
func (p *process) unserved(method string, err error) {
	var refusal *frame.Refusal
	var wrong *jsonrpc2.Error
	var byHub refusedByHub
	switch {
	case errors.As(err, &byHub):
		return
	case errors.As(err, &refusal), errors.Is(err, frame.ErrTimeout):
	case strings.HasPrefix(method, "report_") && errors.As(err, &wrong):
	default:
		return
	}
	p.refused("", err)
}

// refuse converts an error of the hub for the wire. It reports an invalid token to the turns of
// the executor, because the hub does not trust the turn that such a message names.
func (d daemon) refuse(task, method string, err error) error {
	if err == nil {
		return nil
	}
	var known *domain.Error
	if errors.As(err, &known) && known.Kind == domain.KindInvalidToken {
		d.process.refused(task, fmt.Errorf("%s: %w", method, err))
	}
	return refusedByHub{d.wire(err)}
}

// refusedByHub is an error of the hub: the message itself was served.
type refusedByHub struct{ error }

func (e refusedByHub) Unwrap() error { return e.error }
