package supervisor

import (
	"cmp"
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
	// EditorFiles, if set, can be asked for files, too.
	EditorFiles catalog.EditorFiles
	// Command returns how an executor of ours is started, at each start.
	Command func() []string
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

// roomChanged wakes whoever waits for room; mu is held.
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
