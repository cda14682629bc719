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

// refusals are for a Daemon that wants to know of reports which were
// lost before it could tell whose they were.
type refusals interface {
	ReportRefused(task string, why error)
}

// refused tells that something which the process had to say of a task was not
// taken; of "", or one that is not its own, it is not known which of its tasks
// was meant, so each is told of.
func (p *process) refused(task string, why error) {
	hub, ok := p.supervisor.opts.Daemon.(refusals)
	if !ok {
		return
	}
	for _, task := range p.inventory.tasksMeant(task) {
		hub.ReportRefused(task, why)
	}
}

// unserved is told of what came from the process and was no message, or had
// other parameters than it should. What the hub itself refuses it knows.
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

// refuse makes an error of the hub fit for the wire, and sees to it that the
// run is known whose executor has another token than its own: the hub takes
// nobody's word for that.
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

// refusedByHub is an error of the hub: what came was served.
type refusedByHub struct{ error }

func (e refusedByHub) Unwrap() error { return e.error }
