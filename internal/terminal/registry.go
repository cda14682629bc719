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
	// Release gives it back; it may be ended when nobody uses it.
	Release()
}

// Runs finds runs.
type Runs interface {
	// Session is the run that an id of any kind names.
	Session(ctx context.Context, id string) (domain.Session, error)
}

// A Publisher tells subscribers of events that the log does not keep. It must
// not block, and not call the registry.
type Publisher interface {
	// Publish returns how many subscribers are told.
	Publish(domain.Event) int
}

// Secrets knows the API keys that agents have.
type Secrets interface {
	// Of are those of the agents of a thread.
	Of(thread int64) *redact.Secrets
}

// A Log keeps events.
type Log interface {
	Enqueue(change func(store.Tx) error, done func(error))
}

// Options are what a Registry needs. All but Logger are required.
type Options struct {
	// Acquire gets an executor for a terminal of a person.
	Acquire func(context.Context) (Executor, error)
	// Directory is where a program starts that is to start in path; "" is the
	// project's root.
	Directory func(path string) (string, error)
	Runs      Runs
	Events    Publisher
	Log       Log
	Secrets   Secrets
	Logger    *slog.Logger
}

// A Registry knows the terminals that run, and who watches them. Its methods may
// be called from any goroutine.
type Registry struct {
	opts   Options
	ctx    context.Context // ends with the registry
	cancel context.CancelFunc
	tasks  background.Group // calls of executors that nobody waits for any more

	mu        sync.Mutex           // guards the fields below
	terminals map[string]*terminal // by id
	starting  int                  // terminals whose start is not answered
	redacted  map[string]*redact.Stream
}

// New makes a registry, to be ended by Close. It lives on when ctx ends.
func New(ctx context.Context, opts Options) *Registry {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	r := &Registry{opts: opts, terminals: make(map[string]*terminal), redacted: make(map[string]*redact.Stream)}
	r.ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	return r
}

// Close waits until no goroutine of the registry runs any more, as long as ctx
// lasts. Terminals end with their executors.
func (r *Registry) Close(ctx context.Context) error {
	r.cancel()
	return r.tasks.Close(ctx)
}

// Info is what is known of a terminal.
type Info struct {
	ID      string
	PID     int    // of its program; 0 where that is not known
	Program string // as it was asked for, or the user's shell
	Args    []string
	CWD     string
	Cols    int // 0 for an agent's terminal, which has no size
	Rows    int
	Tmux    string          // the tmux session, if it is one
	OfAgent bool            // an agent runs it: people can watch, and do nothing else
	Run     *domain.Session // of the agent; nil if it is not known
	Started time.Time
	Views   int  // how many watch it
	Taken   bool // a view has its descriptor
}

// A terminal is one that runs, or has printed something before its start was
// answered. The registry's mu guards it.
type terminal struct {
	Info                                  // ID is "" until the start is answered
	executor  Executor                    // nil for an agent's
	views     []*View                     // in the order in which they came
	holder    *View                       // has the descriptor, or gives it back; nil: nobody
	printed   scrollback                  // the end of it
	exitEarly *catalog.TerminalExitParams // it ended before its start was answered
}

// info is what is known now.
func (t *terminal) info() Info {
	i := t.Info
	i.Views, i.Taken = len(t.views), t.holder != nil
	return i
}

// List lists the terminals that run, the oldest first.
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

// terminal is the one with that id; r.mu is held.
func (r *Registry) terminal(id string) (*terminal, error) {
	if term := r.terminals[id]; term != nil && term.ID != "" {
		return term, nil
	}
	return nil, domain.Errorf(domain.KindTerminalNotFound, "no terminal has the id %q", id)
}

// executorOf is the executor of a terminal that people may use.
func (r *Registry) executorOf(id string) (executor Executor, taken bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	term, err := r.terminal(id)
	if err != nil {
		return nil, false, err
	}
	return term.executor, term.holder != nil, term.usable()
}

// usable is an error for a terminal that people may only watch.
func (t *terminal) usable() error {
	if t.executor == nil {
		return domain.Errorf(domain.KindTerminalReadOnly, "the terminal %s is an agent's: it can be watched, and no more; stop its task to end it", t.ID)
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
		return domain.Errorf(domain.KindTerminalTaken, "somebody has the descriptor of the terminal %s, and types on it", p.TerminalID)
	}
	return executor.TerminalWrite(ctx, p)
}

// Resize changes a terminal's size, for all who watch it.
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
