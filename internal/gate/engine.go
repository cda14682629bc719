// Package gate keeps agents working until commands pass. Gates are checked after each completed
// turn. The failures become the next prompt of the session, until all gates pass or the limit
// of turns is reached.
//
// A [domain.GateLoop] is stored, and changes in the same transactions as the states of its turns.
// After a crash, the next hub repeats a pending check from the first gate. A loop whose turn was
// interrupted continues when the turn is continued.
package gate

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/background"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/usercommand"
)

// Turns is the engine's access to turns.
type Turns interface {
	// Write runs a transaction.
	Write(ctx context.Context, change func(store.Tx) error) error
	// Next queues a turn with a prompt at the end of turn's session, with turn's permissions. If it
	// is refused, the error is a *domain.Error and nothing has changed.
	Next(t store.Tx, turn domain.Turn, prompt string) (domain.Turn, error)
	// MayStart makes the hub start queued turns at the end of the transaction.
	MayStart(t store.Tx)
	// Say adds a note to the transcript of a turn.
	Say(t store.Tx, turn domain.Turn, text string) error
	// Environment returns the environment of the client that launched a turn, or nil.
	Environment(turn int64) clientenv.Environment
	// Resting reports whether the hub starts nothing new.
	Resting() bool
	// Rested signals the end of a check.
	Rested()
}

// Options configure an Engine. All but Logger and Sandbox are required.
type Options struct {
	Store      store.Reader
	Turns      Turns
	Configured func() (Configured, error) // current configuration
	Run        func(context.Context, usercommand.Command) (usercommand.Result, error)
	AwaitRoom  func(context.Context) error // waits until the disk may have space again
	// Sandbox, if set, returns the sandbox of a session's agent, which also confines gates: they run
	// what the agent has written. nil: none.
	Sandbox func(context.Context, domain.Session) (*catalog.Sandbox, error)
	Root    string // project root, absolute
	Getenv  func(string) string
	Logger  *slog.Logger
}

// Engine checks the gates of turns. Its methods may be called from any goroutine, except that those
// with a transaction belong to the store's writer.
type Engine struct {
	opts  Options
	ctx   context.Context // ends with the engine
	tasks background.Group

	mu       sync.Mutex                   // guards the fields below
	checking map[int64]context.CancelFunc // by checked turn
	awaiting map[int64][]chan struct{}    // by loop; closed at its end
}

// New returns an Engine whose checks end with ctx.
func New(ctx context.Context, opts Options) *Engine {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	return &Engine{
		opts: opts, ctx: ctx, checking: make(map[int64]context.CancelFunc), awaiting: make(map[int64][]chan struct{}),
	}
}

// Close waits until no check runs. The engine's context must have ended. The error is that of ctx
// if it ends first.
func (e *Engine) Close(ctx context.Context) error { return e.tasks.Close(ctx) }

// Busy reports whether any gates are being checked.
func (e *Engine) Busy() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.checking) > 0
}

// Checks reports whether the gates of a turn are being checked.
func (e *Engine) Checks(turn int64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.checking[turn] != nil
}

// Of returns the loop of a turn. has is false if the turn has none.
func (e *Engine) Of(ctx context.Context, turn int64) (l domain.GateLoop, has bool, err error) {
	return found(e.opts.Store.GateLoop(ctx, turn))
}

// OfAll returns the loops of turns, by turn.
func (e *Engine) OfAll(ctx context.Context, turns []int64) (map[int64]domain.GateLoop, error) {
	return e.opts.Store.GateLoops(ctx, turns)
}

func found(l domain.GateLoop, err error) (domain.GateLoop, bool, error) {
	if errors.Is(err, store.ErrNotFound) {
		return l, false, nil
	}
	return l, err == nil, err
}

// Configured holds the configured gates.
type Configured struct {
	Gates   []config.Gate
	Waiting []string // names of gates in untrusted files
}

// configured returns the current configuration.
func (e *Engine) configured() (Configured, error) {
	c, err := e.opts.Configured()
	if err != nil {
		return c, &domain.Error{
			Kind: domain.KindExecutor, Message: "the configuration cannot be read: " + err.Error(), Err: err,
		}
	}
	return c, nil
}

// trusted finds a configured gate by name. It returns a *domain.Error if the user has not trusted
// the gate's file.
func (c Configured) trusted(name string) (config.Gate, bool, error) {
	g, is := c.named(name)
	if !is && slices.Contains(c.Waiting, name) {
		return g, false, domain.Errorf(domain.KindNotTrusted,
			"the gate %q is one of this project's configuration, which waits for your trust: duet-rpc trust", name)
	}
	return g, is, nil
}

// named finds a gate by name.
func (c Configured) named(name string) (config.Gate, bool) {
	for _, g := range c.Gates {
		if g.Name == name {
			return g, true
		}
	}
	return config.Gate{}, false
}

// end ends a loop.
func (e *Engine) end(t store.Tx, l domain.GateLoop, turn domain.Turn, state, reason string) error {
	l.State, l.Reason = state, reason
	if err := t.UpdateGateLoop(l); err != nil {
		return err
	}
	var failing []string
	for _, r := range l.Failing() {
		failing = append(failing, r.Gate)
	}
	t.AfterCommit(func() { e.wake(l.ID) })
	return announce(t, turn, domain.LoopEnded{
		State: state, Reason: reason, Iteration: l.Iteration, MaxIterations: l.MaxIterations, Failing: failing,
	})
}

func announce(t store.Tx, turn domain.Turn, p domain.Payload) error {
	_, err := t.Append(turn.Event(p))
	return err
}

// wake wakes the waiters for the end of a loop.
func (e *Engine) wake(loop int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, waiter := range e.awaiting[loop] {
		close(waiter)
	}
	delete(e.awaiting, loop)
}
