package gate

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/background"
	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/usercommand"
)

// Runs is the life of runs as gates need it.
type Runs interface {
	// Write keeps a change.
	Write(ctx context.Context, change func(store.Tx) error) error
	// Next queues a run behind all others of a thread that may do what run might. Where that is
	// refused the error is a *domain.Error, and nothing was changed.
	Next(t store.Tx, run domain.Run, prompt string) (domain.Run, error)
	// MayStart has what waits in the queue looked at at the end of the change.
	MayStart(t store.Tx)
	// Say notes something in the conversation of a run.
	Say(t store.Tx, run domain.Run, text string) error
	// Environment is that of the client that launched a run, or nil.
	Environment(run int64) clientenv.Environment
	// Resting reports whether nothing new is to be started.
	Resting() bool
	// Rested tells that a check has ended.
	Rested()
}

// Options say what an Engine stands on. All of them but Logger are required.
type Options struct {
	Store      store.Reader
	Runs       Runs
	Configured func() (Configured, error) // as it is now
	Run        func(context.Context, usercommand.Command) (usercommand.Result, error)
	AwaitRoom  func(context.Context) error // waits until there may be room on the disk again
	Root       string                      // of the project, absolute
	Getenv     func(string) string
	Logger     *slog.Logger
}

// An Engine has the gates of runs checked. Its methods may be called from any goroutine;
// those that are given a change belong to the store's writer.
type Engine struct {
	opts  Options
	ctx   context.Context // ends with the engine
	tasks background.Group

	mu       sync.Mutex                   // guards the fields below
	checking map[int64]context.CancelFunc // by the run that is checked
	awaiting map[int64][]chan struct{}    // by loop; closed when it is over
}

// New makes an Engine whose checks end when ctx does.
func New(ctx context.Context, opts Options) *Engine {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	return &Engine{opts: opts, ctx: ctx, checking: make(map[int64]context.CancelFunc), awaiting: make(map[int64][]chan struct{})}
}

// Close waits until no check runs; the context of the engine has to be over. The error is
// that of ctx if it ends first.
func (e *Engine) Close(ctx context.Context) error { return e.tasks.Close(ctx) }

// Busy reports whether gates are checked.
func (e *Engine) Busy() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.checking) > 0
}

// Checks reports whether the gates of a run are checked now.
func (e *Engine) Checks(run int64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.checking[run] != nil
}

// Of is the loop that a run belongs to, if it belongs to one.
func (e *Engine) Of(ctx context.Context, run int64) (l domain.GateLoop, has bool, err error) {
	return found(e.opts.Store.GateLoop(ctx, run))
}

// OfAll are the loops of those of some runs that belong to one, by run.
func (e *Engine) OfAll(ctx context.Context, runs []int64) (map[int64]domain.GateLoop, error) {
	return e.opts.Store.GateLoops(ctx, runs)
}

func found(l domain.GateLoop, err error) (domain.GateLoop, bool, error) {
	if errors.Is(err, store.ErrNotFound) {
		return l, false, nil
	}
	return l, err == nil, err
}

// Configured is what the configuration says of gates.
type Configured struct {
	Gates   []config.Gate
	Waiting []string // the names of those in files that wait for the user's trust
}

// configured is what the configuration says now.
func (e *Engine) configured() (Configured, error) {
	c, err := e.opts.Configured()
	if err != nil {
		return c, &domain.Error{Kind: domain.KindExecutor, Message: "the configuration cannot be read: " + err.Error(), Err: err}
	}
	return c, nil
}

// trusted is the gate of a name, if the configuration has it. It is refused, as a
// *domain.Error, if that waits for its user's trust.
func (c Configured) trusted(name string) (config.Gate, bool, error) {
	g, is := c.named(name)
	if !is && slices.Contains(c.Waiting, name) {
		return g, false, domain.Errorf(domain.KindNotTrusted, "the gate %q is one of this project's configuration, which waits for your trust: duet-rpc trust", name)
	}
	return g, is, nil
}

// named is the gate of a name.
func (c Configured) named(name string) (config.Gate, bool) {
	for _, g := range c.Gates {
		if g.Name == name {
			return g, true
		}
	}
	return config.Gate{}, false
}

// end ends a loop.
func (e *Engine) end(t store.Tx, l domain.GateLoop, run domain.Run, state, reason string) error {
	l.State, l.Reason = state, reason
	if err := t.UpdateGateLoop(l); err != nil {
		return err
	}
	var failing []string
	for _, r := range l.Failing() {
		failing = append(failing, r.Gate)
	}
	t.AfterCommit(func() { e.wake(l.ID) })
	return announce(t, run, domain.LoopEnded{State: state, Reason: reason, Iteration: l.Iteration, MaxIterations: l.MaxIterations, Failing: failing})
}

func announce(t store.Tx, run domain.Run, p domain.Payload) error {
	_, err := t.Append(run.Event(p))
	return err
}

// wake tells who waits that a loop is over.
func (e *Engine) wake(loop int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, waiter := range e.awaiting[loop] {
		close(waiter)
	}
	delete(e.awaiting, loop)
}
