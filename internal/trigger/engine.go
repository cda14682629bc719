package trigger

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/background"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// Definitions are the triggers of the configuration, and what holds for all of them.
type Definitions struct {
	Triggers   []config.Trigger
	Automation config.Automation
}

// Changes tell whether the configuration may have changed.
type Changes interface {
	// Watch tells on changed, until stop is called. It is closed when the system cannot
	// tell any more, and nil where it never could.
	Watch() (changed <-chan struct{}, stop func())
}

// A Begin is a session that is to begin.
type Begin struct {
	Prompt, Title, Agent string
	Priority             int
	Metadata             map[string]any
	Draft                bool // it waits for a person to agree
}

// Runs is what triggers need of the life of runs. The methods with a store.Tx are part
// of the caller's change.
type Runs interface {
	// Write makes a change of the store. Its error can be told.
	Write(ctx context.Context, change func(store.Tx) error) error
	// Begin adds a run in a conversation of its own.
	Begin(t store.Tx, b Begin) (domain.Run, error)
	// Submit queues a draft, Discard gives it up.
	Submit(t store.Tx, run *domain.Run) error
	Discard(t store.Tx, run *domain.Run) error
}

// Questions asks people.
type Questions interface {
	// Propose asks a person whether something is to be done. No rule answers it.
	Propose(t store.Tx, run *domain.Run, a domain.Approval) error
}

// A Log is what has happened.
type Log interface {
	// Last is the number of the last event.
	Last() int64
	// Replay calls f with the events of some kinds that came after since, up to one,
	// until it returns false.
	Replay(ctx context.Context, kinds []domain.EventKind, since, upTo int64, f func(domain.Event, domain.Session) bool) error
}

// Options say what an Engine stands on.
type Options struct {
	Store     store.Reader
	Runs      Runs
	Questions Questions
	Log       Log
	// Definitions are those of the configuration as it is now, without what waits for
	// the user's trust. An error says why it cannot be read: then no trigger does
	// anything.
	Definitions func() (Definitions, error)
	Changes     Changes // may be nil
	Root        string  // of the project: its files are watched
	StateDir    string  // is never watched
	Logger      *slog.Logger
}

// lookBack is how far back is looked after a start for what was not seen to.
const lookBack = time.Minute

// An Engine looks for events and does what triggers want. Its methods may be called from
// any goroutine.
type Engine struct {
	opts   Options
	ctx    context.Context // ends with the engine
	end    context.CancelFunc
	tasks  background.Group
	poke   chan struct{} // something has happened, or may have changed
	sender *sender

	// Of the goroutine that looks, and nobody else:
	begun    time.Time            // when the engine was started
	followed int64                // the last event of the log that was looked at
	known    map[string]time.Time // since when a trigger is known, by id
	due      map[string]*dueTime  // by id of the trigger
	changed  <-chan struct{}      // the configuration has changed
	unwatch  func()
	watching []config.Trigger
	batches  <-chan changeBatch
	unseen   []changeBatch // that could not be seen to yet; a trigger has few

	mu      sync.Mutex // guards the fields below
	started bool
	wants   []domain.EventKind // of the log; nil: nothing of it is of interest
	active  []config.Trigger
	problem string // why no trigger does anything, or ""
	fired   map[string]time.Time
	watcher *watcher // nil: nothing is watched
	watched []string // paths
}

// New makes an engine that does nothing before Start. It ends with ctx, or by Close.
func New(ctx context.Context, opts Options) *Engine {
	e := &Engine{
		opts: opts, poke: make(chan struct{}, 1), known: make(map[string]time.Time), due: make(map[string]*dueTime),
		fired: make(map[string]time.Time), unwatch: func() {},
	}
	e.ctx, e.end = context.WithCancel(ctx)
	return e
}

// Close ends the engine. What it was about to do it does after the next start, but for
// what was being sent. The error is that of ctx if that ends first.
func (e *Engine) Close(ctx context.Context) error {
	e.end()
	return e.tasks.Close(ctx)
}

// Look has the engine look at the configuration again. It does not wait for that.
func (e *Engine) Look() {
	select {
	case e.poke <- struct{}{}:
	default:
	}
}

// Committed is told what was added to the log. It does not block.
func (e *Engine) Committed(events []domain.Event) {
	e.mu.Lock()
	wants, started := e.wants, e.started
	e.mu.Unlock()
	if started && slices.ContainsFunc(events, func(ev domain.Event) bool {
		kind := ev.Payload.Kind()
		// The configuration is not watched while there is no trigger, so it is looked at
		// when something is done.
		return kind == domain.EventRunState || slices.Contains(wants, kind)
	}) {
		e.Look()
	}
}

func (e *Engine) warn(err error, what, trigger string) {
	if err == nil || errors.Is(err, context.Canceled) || e.opts.Logger == nil {
		return
	}
	e.opts.Logger.Warn(what, "trigger", trigger, "err", err)
}

// definition is a trigger that is active by the configuration as it is now: trust may
// have been taken back a moment ago.
func (e *Engine) definition(id string) (config.Trigger, config.Automation, bool) {
	now, err := e.opts.Definitions()
	if err != nil {
		return config.Trigger{}, config.Automation{}, false
	}
	for _, t := range now.Triggers {
		if t.ID == id {
			return t, now.Automation, true
		}
	}
	return config.Trigger{}, now.Automation, false
}

func isEnabled(t config.Trigger, state domain.TriggerState) bool {
	if state.Enabled != nil {
		return *state.Enabled
	}
	return t.Enabled
}
