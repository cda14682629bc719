package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/hub"
)

// Options configure a Supervisor.
type Options struct {
	// Daemon serves what executors ask.
	Daemon catalog.Daemon
	// Command is how an executor of ours is started.
	Command []string
	// Environment is that of executors: nothing is inherited.
	Environment []string
	// WireError turns an error of Daemon into one that executors are told.
	WireError func(error) error
	Logger    *slog.Logger
	// Trace, if set, sees each message between the hub and an executor, by its
	// process id; see server.Options.
	Trace func(pid int, sent bool, message []byte)
	// Most is how many executors there may be. Default 10.
	Most int
	// IdleAfter is when an executor that nobody uses is ended. Default 60 s.
	IdleAfter time.Duration
	// StartWithin is how long an executor of ours may take to answer for the
	// first time. Default 10 s.
	StartWithin time.Duration
}

// errClosed is what Acquire returns after Close.
var errClosed = errors.New("the executors have been ended")

// A Supervisor owns the executors. Its methods may be called from any
// goroutine.
type Supervisor struct {
	opts Options

	mu        sync.Mutex // guards the fields below, and the uses of processes
	processes map[*process]struct{}
	closed    bool
	ended     sync.WaitGroup
}

// New makes a Supervisor without executors.
func New(opts Options) *Supervisor {
	opts.Most = cmp.Or(opts.Most, 10)
	opts.IdleAfter = cmp.Or(opts.IdleAfter, time.Minute)
	opts.StartWithin = cmp.Or(opts.StartWithin, 10*time.Second)
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.WireError == nil {
		opts.WireError = func(err error) error { return err }
	}
	return &Supervisor{opts: opts, processes: make(map[*process]struct{})}
}

// Count is how many executors there are.
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

// purpose says who may share an executor. An ACP thread has one to itself
// while there is room; commands and terminals share one; an executor that
// somebody else wrote runs one thread of one agent.
type purpose struct {
	kind   string // command, acp, or executor and the agent's name
	thread string // "" where threads share
}

func purposeOf(w hub.Want) purpose {
	switch w.Agent.Driver {
	case "command", "":
		return purpose{kind: "command"}
	case "executor":
		return purpose{"executor " + w.Agent.Name, w.Thread}
	}
	return purpose{"acp", w.Thread}
}

// Acquire returns an executor for a purpose, and starts one if there is none
// and there is room.
func (s *Supervisor) Acquire(ctx context.Context, want hub.Want) (hub.Lease, error) {
	p, err := s.choose(want)
	if err != nil {
		return nil, err
	}
	select {
	case <-p.started:
	case <-ctx.Done():
		s.release(p)
		return nil, ctx.Err()
	}
	if p.failure != nil {
		s.release(p)
		return nil, p.failure
	}
	return &lease{Executor: p.executor, process: p, release: sync.OnceFunc(func() { s.release(p) })}, nil
}

// choose finds or makes the process for a purpose, and counts the use.
func (s *Supervisor) choose(want hub.Want) (*process, error) {
	purpose := purposeOf(want)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	var own, idle, shared *process
	for p := range s.processes {
		switch {
		case p.ending:
		case p.threads[purpose]:
			own = p
		case p.kind != purpose.kind:
			if p.uses == 0 && (idle == nil || p.idleSince.Before(idle.idleSince)) {
				idle = p
			}
		case shared == nil || p.uses < shared.uses:
			shared = p
		}
	}
	p := own
	switch {
	case p != nil:
	case len(s.processes) < s.opts.Most:
		p = s.start(purpose, want, nil)
	case shared != nil:
		p = shared
	case idle != nil: // it makes room
		idle.ending = true
		idle.end("room for another")
		p = s.start(purpose, want, idle)
	default:
		return nil, fmt.Errorf("there are %d executors already, none of which runs %s; wait for one to end", len(s.processes), purpose.kind)
	}
	p.threads[purpose] = true
	p.use()
	return p, nil
}

// start makes a process and begins to start it, when the one that it replaces
// has gone.
func (s *Supervisor) start(of purpose, want hub.Want, replaces *process) *process {
	p := &process{
		supervisor: s, kind: of.kind, threads: make(map[purpose]bool), started: make(chan struct{}), exited: make(chan struct{}),
		command: s.opts.Command, replaces: replaces,
	}
	if want.Agent.Driver == "executor" {
		p.command, p.foreign = want.Agent.Command, true
	}
	s.processes[p] = struct{}{}
	s.ended.Go(p.run)
	return p
}

// release counts the end of a use.
func (s *Supervisor) release(p *process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.uses--
	if p.uses > 0 || p.ending {
		return
	}
	p.idleSince = time.Now()
	p.idle = time.AfterFunc(s.opts.IdleAfter, func() {
		s.mu.Lock()
		ending := p.uses == 0 && !p.ending
		p.ending = p.ending || ending
		s.mu.Unlock()
		if ending {
			p.end("idle_timeout")
		}
	})
}

// forget removes a process that has ended.
func (s *Supervisor) forget(p *process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.ending = true
	delete(s.processes, p)
	if p.idle != nil {
		p.idle.Stop()
	}
}

// Close ends all executors with their agents, and waits until they are gone,
// no longer than ctx lasts; then they are killed.
func (s *Supervisor) Close(ctx context.Context) {
	s.mu.Lock()
	s.closed = true
	var all []*process
	for p := range s.processes {
		p.ending = true
		all = append(all, p)
	}
	s.mu.Unlock()
	for _, p := range all {
		p.hangUp()
	}
	for _, p := range all {
		select {
		case <-p.exited:
		case <-ctx.Done():
			p.kill()
		}
	}
	s.ended.Wait()
}
