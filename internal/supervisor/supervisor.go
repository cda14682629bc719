package supervisor

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/background"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
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
	// Most is how many executors there may be, at least 2: one of the places
	// is for commands and terminals alone. Default 10.
	Most int
	// IdleAfter is when an agent that waits for a prompt is ended, and an
	// executor that nobody uses. Default 60 s.
	IdleAfter time.Duration
	// MostIdle is how many agents may wait for a prompt: of more the one that
	// waits longest is ended at once.
	MostIdle int
	// StartWithin is how long an executor of ours may take to answer for the
	// first time. Default 10 s.
	StartWithin time.Duration
}

// errClosed is what Acquire returns after Close.
var errClosed = errors.New("the executors have been ended")

// A Supervisor owns the executors. Its methods may be called from any
// goroutine.
type Supervisor struct {
	opts   Options
	launch func(command []string) (*child, error) // startChild; tests have another
	work   background.Group                       // every goroutine: of processes, and who ends them

	mu        sync.Mutex // guards the fields below, and the uses of processes
	processes map[*process]struct{}
	idle      idleThreads
	changed   chan struct{} // closed and made anew when there may be room
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

// purpose says who may share an executor: an ACP thread has
// one to itself while there is room, then they share; commands and terminals
// share one, whose place is always free; an executor that somebody else wrote
// runs one thread of one agent.
type purpose struct {
	kind   string // command, acp, or executor and the agent's name
	thread string // "" where threads share
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
		return purpose{"executor " + w.Agent, w.Thread}
	}
	return purpose{kindACP, w.Thread}
}

// Acquire returns an executor for a purpose, and starts one if there is none.
// It waits while there is no room for it.
func (s *Supervisor) Acquire(ctx context.Context, want catalog.LeaseRequest) (catalog.Lease, error) {
	of := purposeOf(want)
	p, err := s.choose(ctx, of, want)
	if err != nil {
		return nil, err
	}
	select {
	case <-p.started:
	case <-ctx.Done():
		s.release(p, of)
		return nil, ctx.Err()
	}
	if p.failure != nil {
		s.release(p, of)
		return nil, p.failure
	}
	return &lease{Executor: p.executor, process: p, release: sync.OnceFunc(func() { s.release(p, of) })}, nil
}

// HasRoom reports whether Acquire would not have to wait.
func (s *Supervisor) HasRoom(want catalog.LeaseRequest) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, room := s.find(purposeOf(want))
	return room || s.closed
}

// choose finds or makes the process for a purpose, and counts the use.
func (s *Supervisor) choose(ctx context.Context, purpose purpose, want catalog.LeaseRequest) (*process, error) {
	for {
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			return nil, errClosed
		}
		if c, room := s.find(purpose); room {
			defer s.mu.Unlock()
			p := c.use
			if p == nil {
				p = s.start(purpose, want, c.instead)
			}
			s.markBusy(p, purpose)
			p.threads[purpose]++
			p.use()
			return p, nil
		}
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// A choice is where there is room: in a process that is there, or else in a
// new one, in a free place or instead of another.
type choice struct{ use, instead *process }

// find looks for room; mu is held.
func (s *Supervisor) find(of purpose) (c choice, room bool) {
	places := 1
	if of.kind != kindCommand {
		places = s.opts.Most - 1 // the one for commands is not theirs
	}
	taken := 0
	var going, spare, shared, idle *process
	for p := range s.processes {
		switch {
		case p.replaced, (p.kind == kindCommand) != (of.kind == kindCommand):
			continue
		case p.ending:
			going = p
		case p.has(of):
			return choice{use: p}, true
		case p.kind == of.kind && p.isSpare():
			spare = p
		case p.kind == of.kind && of.kind == kindACP && (shared == nil || p.uses < shared.uses):
			shared = p
		case p.uses == 0 && (idle == nil || p.idleSince.Before(idle.idleSince)):
			idle = p
		}
		taken++
	}
	switch {
	case spare != nil:
		return choice{use: spare}, true
	case taken < places:
		return choice{}, true
	case going != nil:
		return choice{instead: going}, true
	case shared != nil:
		return choice{use: shared}, true
	case idle != nil:
		return choice{instead: idle}, true
	}
	return choice{}, false
}

// roomChanged wakes whoever waits for room; mu is held.
func (s *Supervisor) roomChanged() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// start makes a process and begins to start it, when the one that it replaces
// has gone, which is ended.
func (s *Supervisor) start(of purpose, want catalog.LeaseRequest, replaces *process) *process {
	if replaces != nil {
		replaces.replaced = true
		if !replaces.ending {
			replaces.ending = true
			replaces.end("room for another")
		}
	}
	p := &process{
		supervisor: s, kind: of.kind, threads: make(map[purpose]int), started: make(chan struct{}), exited: make(chan struct{}),
		command: s.opts.Command, replaces: replaces,
	}
	if want.Driver == "executor" {
		p.command, p.foreign = want.Command, true
	}
	s.processes[p] = struct{}{}
	s.work.Go(p.run)
	return p
}

// release counts the end of a use.
func (s *Supervisor) release(p *process, of purpose) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.uses--
	p.threads[of]--
	if p.ending {
		return
	}
	if p.uses == 0 {
		s.roomChanged()
		p.idleSince = time.Now()
	}
	if of.thread != "" {
		if p.threads[of] == 0 {
			s.markIdle(p, of)
		}
		return // it has agents
	}
	if p.uses == 0 {
		s.linger(p)
	}
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

// Close ends all executors with their agents, and waits until they are gone,
// no longer than ctx lasts; then they are killed.
func (s *Supervisor) Close(ctx context.Context) {
	s.mu.Lock()
	s.closed = true
	s.roomChanged()
	for _, i := range s.idle {
		i.timer.Stop()
	}
	s.idle = nil
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
	_ = s.work.Close(context.Background()) // all of it ends with the processes
}
