// Package terminal manages running terminals and their views.
//
// A terminal is independent of connections. Its executor owns the program and the PTY, and reports
// the output. A [Registry] keeps the last output and sends it to every [View]. A view may get the
// terminal's descriptor instead: it then reads and writes the PTY alone, without the executor. An
// agent's terminal can only be watched.
//
//   - registry.go lists terminals and passes on input; spawn.go starts them.
//   - report.go receives executors' reports.
//   - attach.go and view.go manage views; descriptor.go hands over descriptors.
//   - scrollback.go keeps the last output of a terminal.
package terminal

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/background"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/redact"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// An Executor runs the programs of terminals; see [catalog.Executor].
type Executor interface {
	SpawnTerminal(context.Context, catalog.SpawnTerminalParams) (catalog.SpawnTerminalResult, error)
	TerminalWrite(context.Context, catalog.TerminalWriteParams) error
	TerminalResize(context.Context, catalog.TerminalResizeParams) error
	TerminalClose(context.Context, catalog.TerminalCloseParams) (catalog.TerminalCloseResult, error)
	TerminalDescriptor(context.Context, catalog.TerminalDescriptorParams) (*os.File, error)
	TerminalReturn(context.Context, catalog.TerminalReturnParams) error
	// Release returns it; an unused executor may be ended.
	Release()
}

// Turns finds turns.
type Turns interface {
	// Session returns the turn that an id of any kind names.
	Turn(ctx context.Context, id string) (domain.TurnInSession, error)
}

// Publisher sends subscribers events that the log does not store. It must not block and must not
// call the registry.
type Publisher interface {
	// Publish returns the number of recipients.
	Publish(domain.Event) int
}

// Secrets holds the API keys of agents.
type Secrets interface {
	// Of returns those of a session's agents.
	Of(session int64) *redact.Secrets
}

// Log stores events.
type Log interface {
	Enqueue(change func(store.Tx) error, done func(error))
}

// Options configure a Registry. All but Logger are required.
type Options struct {
	// Acquire returns an executor for a person's terminal.
	Acquire func(context.Context) (Executor, error)
	// Directory resolves the working directory of a program; "" is the project root.
	Directory func(path string) (string, error)
	Turns     Turns
	Events    Publisher
	Log       Log
	Secrets   Secrets
	Logger    *slog.Logger
}

// Registry manages running terminals and their views. Its methods may be called from any goroutine.
type Registry struct {
	opts   Options
	ctx    context.Context // ends with the registry
	cancel context.CancelFunc
	tasks  background.Group // executor calls that no caller waits for

	mu        sync.Mutex           // guards the fields below
	terminals map[string]*terminal // by id
	starting  int                  // unanswered starts
	redacted  map[string]*redact.Stream
}

// New returns a registry; end it with Close. It outlives ctx.
func New(ctx context.Context, opts Options) *Registry {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	r := &Registry{opts: opts, terminals: make(map[string]*terminal), redacted: make(map[string]*redact.Stream)}
	r.ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	return r
}

// Close waits until all goroutines of the registry have ended, or ctx ends. Terminals end with
// their executors.
func (r *Registry) Close(ctx context.Context) error {
	r.cancel()
	return r.tasks.Close(ctx)
}

// Info describes a terminal.
type Info struct {
	ID      string
	PID     int    // of its program; 0 if unknown
	Program string // as requested, or the user's shell
	Args    []string
	CWD     string
	Cols    int // 0 for an agent's terminal, which has no size
	Rows    int
	Tmux    string                // the tmux session, if it is one
	OfAgent bool                  // an agent runs it: people can only watch
	Turn    *domain.TurnInSession // of the agent; nil if unknown
	Started time.Time
	Views   int  // number of views
	Taken   bool // a view has its descriptor
}

// terminal is a running terminal, or one that printed before its start was answered. The registry's
// mu guards it.
type terminal struct {
	Info                                  // ID is "" until the start is answered
	executor  Executor                    // nil for an agent's terminal
	views     []*View                     // in order of arrival
	holder    *View                       // has the descriptor or is giving it back; nil: no view
	printed   scrollback                  // the last output
	exitEarly *catalog.TerminalExitParams // set if it ended before its start was answered
}

// info returns the current description.
func (t *terminal) info() Info {
	i := t.Info
	i.Views, i.Taken = len(t.views), t.holder != nil
	return i
}

// List lists the running terminals, the oldest first.
func (r *Registry) List() []Info {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := []Info{}
	for _, term := range r.terminals {
		if term.ID != "" {
			list = append(list, term.info())
		}
	}
	slices.SortFunc(list, func(a, b Info) int { return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.ID, b.ID)) })
	return list
}

// terminal finds a terminal; r.mu is held.
func (r *Registry) terminal(id string) (*terminal, error) {
	if term := r.terminals[id]; term != nil && term.ID != "" {
		return term, nil
	}
	return nil, domain.Errorf(domain.KindTerminalNotFound, "no terminal has the id %q", id)
}

// executorOf returns the executor of a terminal that people may use.
func (r *Registry) executorOf(id string) (executor Executor, taken bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	term, err := r.terminal(id)
	if err != nil {
		return nil, false, err
	}
	return term.executor, term.holder != nil, term.usable()
}

// usable returns an error for a terminal that people may only watch.
func (t *terminal) usable() error {
	if t.executor == nil {
		return domain.Errorf(domain.KindTerminalReadOnly, "the terminal %s belongs to an agent and can only be watched; stop its turn to end it",
			t.ID)
	}
	return nil
}

// Write types into a terminal.
func (r *Registry) Write(ctx context.Context, p catalog.TerminalWriteParams) error {
	executor, taken, err := r.executorOf(p.TerminalID)
	switch {
	case err != nil:
		return err
	case taken:
		return domain.Errorf(domain.KindTerminalTaken, "another client has the descriptor of the terminal %s, and writes to it", p.TerminalID)
	}
	return executor.TerminalWrite(ctx, p)
}

// Resize changes a terminal's size for all views.
func (r *Registry) Resize(ctx context.Context, p catalog.TerminalResizeParams) error {
	executor, _, err := r.executorOf(p.TerminalID)
	if err != nil {
		return err
	}
	if err := executor.TerminalResize(ctx, p); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if term := r.terminals[p.TerminalID]; term != nil {
		term.Cols, term.Rows = p.Cols, p.Rows
	}
	return nil
}

// End ends a terminal's program.
func (r *Registry) End(ctx context.Context, p catalog.TerminalCloseParams) (catalog.TerminalCloseResult, error) {
	executor, _, err := r.executorOf(p.TerminalID)
	if err != nil {
		return catalog.TerminalCloseResult{}, err
	}
	return executor.TerminalClose(ctx, p)
}
