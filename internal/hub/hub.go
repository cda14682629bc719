package hub

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/configwatch"
	"github.com/duet-rpc/duet-rpc/internal/conversation"
	"github.com/duet-rpc/duet-rpc/internal/eventlog"
	"github.com/duet-rpc/duet-rpc/internal/intake"
	"github.com/duet-rpc/duet-rpc/internal/store"

	"github.com/duet-rpc/duet-rpc/internal/domain"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/terminal"
)

// Executors starts executors and finds them again.
type Executors interface {
	// Acquire returns an executor for a purpose, and starts one if need be. It
	// waits while there is no room for one.
	Acquire(ctx context.Context, want catalog.LeaseRequest) (catalog.Lease, error)
	// HasRoom reports whether Acquire would not have to wait. It is asked again
	// when a run has ended, whose lease was released before.
	HasRoom(want catalog.LeaseRequest) bool
	// Count is how many executors there are.
	Count() int
}

// leaseFor is what is asked of the executors for an agent of a thread.
func leaseFor(thread string, agent config.Agent) catalog.LeaseRequest {
	return catalog.LeaseRequest{Thread: thread, Agent: agent.Name, Driver: agent.Driver, Command: agent.Command}
}

// Agents knows the configured agents.
type Agents interface {
	// Resolve is the agent of a name, or the default one for "".
	Resolve(name string) (config.Agent, error)
}

// Options configure a Hub.
type Options struct {
	// OpenStore opens the store, with what it is to tell the hub.
	OpenStore func(ctx context.Context, opts store.Options) (store.Store, error)
	Database  string // the store's path
	Root      string // of the project
	Agents    Agents
	// Keys and Rules, if set, are those of the configuration as it is now: it
	// may change while the hub runs. They are asked often.
	Keys  func() map[string]config.Key
	Rules func() []config.Rule
	// Restricted, if set, is the configuration as it is for who does not
	// trust the workspace; see package restricted.
	Restricted func() (*config.Config, error)
	// Changes, if set, is looked at while agents are at work: what they stand
	// on may be taken back.
	Changes   configwatch.Changes
	Limits    config.Limits
	Executors func(catalog.Daemon) Executors // makes the executors' owner, once
	Getenv    func(string) string
	Logger    *slog.Logger
	// Idle, if set, is called a moment after the last run has ended: a good
	// time to return memory to the system.
	Idle func()
	// KillAgents ends agents that a dead process left behind.
	KillAgents func([]domain.Process)
	// Valid, if set, tells whether this process is still the project's hub. It
	// is asked often, and must be cheap.
	Valid func() error
	// Removed, if set, has one in it when the database, or what Valid looks at, may
	// have been removed or replaced. Else that is looked for every second.
	Removed <-chan struct{}
	// Lost, if set, is called once, by a goroutine of its own, if the database
	// was removed or replaced, or Valid gave an error: nothing is kept any more,
	// and the hub is to be closed.
	Lost func(error)
}

// A Hub keeps the domain. Its methods may be called from any goroutine.
type Hub struct {
	opts         Options
	store        store.Store
	configs      *configwatch.Watch // nil where the configuration does not change
	approvals    *Inbox
	executors    Executors
	log          *slog.Logger
	events       *eventlog.Log
	conversation *conversation.Writer
	intake       *intake.Intake
	histories    historyIntake
	reserve      reserve
	full         atomic.Bool // the disk is
	damage       damage
	keys         *agentKeys
	terminals    *terminal.Registry
	sessions     *recentSessions // runs that were lately needed for their ids
	started      time.Time

	ctx    context.Context // ends with the hub
	cancel context.CancelFunc
	active sync.WaitGroup // goroutines of runs

	mu       sync.Mutex // guards the fields below
	live     map[int64]*liveRun
	awaiting map[int64][]chan struct{}
	tokens   map[[32]byte]domain.Token
	secrets  map[string]chan string // requests for keys that wait for a human
	issues   map[string]string
	doomed   map[int64]struct{} // runs that a full disk does not let go on, until that is kept
	ending   bool               // a goroutine ends them
	closing  bool
	draining bool        // nothing new is started
	lost     bool        // nothing is kept any more
	calm     *time.Timer // calls Options.Idle
}

// Open opens the database, picks up what a dead process left behind, and
// starts the runs that are queued. An error is that of
// Options.OpenStore, or one of the file system.
func Open(ctx context.Context, opts Options) (*Hub, error) {
	h, err := openOnce(ctx, opts)
	if !store.IsFull(err) || os.Remove(reservePath(opts.Database)) != nil {
		if err == nil {
			h.active.Go(h.reserve.hold) // beside: it takes as long as the disk does
			h.active.Go(h.watchStore)
		}
		return h, err
	}
	// What was set aside is room enough to look at what there is.
	if h, err = openOnce(ctx, opts); err == nil {
		h.full.Store(true)
		h.setIssue("disk", fullIssue)
		h.active.Go(h.watchStore)
	}
	return h, err
}

func openOnce(ctx context.Context, opts Options) (*Hub, error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	h := &Hub{
		opts: opts, log: opts.Logger, started: time.Now(),
		live:     make(map[int64]*liveRun),
		awaiting: make(map[int64][]chan struct{}), tokens: make(map[[32]byte]domain.Token), sessions: newRecentSessions(),
		secrets: make(map[string]chan string), issues: make(map[string]string),
		doomed: make(map[int64]struct{}), keys: newAgentKeys(),
	}
	h.damage.log = h.log
	h.ctx, h.cancel = context.WithCancel(context.WithoutCancel(ctx))
	h.events = h.newEvents(h.ctx)
	h.conversation = conversation.New(h.ctx, h.known)
	var err error
	if h.store, err = opts.OpenStore(ctx, store.Options{Committed: h.committed, RolledBack: h.conversation.RolledBack, Valid: opts.Valid, Damaged: h.damage.note}); err != nil {
		return nil, err
	}
	h.approvals = h.newInbox()
	h.reserve.path = reservePath(opts.Database)
	h.intake = intake.New(h.ctx, intake.Options{
		Store: h.store, Conversation: h.conversation, Runs: forIntake{h}, Answers: h.approvals, Health: forIntake{h}, Root: opts.Root, Logger: h.log,
	})
	h.terminals = h.newTerminals(h.ctx)
	h.executors = opts.Executors(daemon{h, h.intake})
	h.configs = h.watchConfig()
	if err := h.recover(ctx); err != nil {
		h.store.Close()
		return nil, err
	}
	h.beginSettle()
	return h, nil
}

// Close interrupts what runs, so that it can be resumed, and closes the
// database. Questions that wait for a human go on waiting. It returns within
// about a second.
func (h *Hub) Close() error {
	h.mu.Lock()
	if h.closing {
		h.mu.Unlock()
		return nil
	}
	h.closing = true
	h.mu.Unlock()
	h.histories.close()

	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := h.store.Write(ctx, h.shutDown)
	if err != nil {
		h.log.Warn("runs could not be marked as interrupted", "err", err)
	}
	h.cancel()
	h.intake.Close()
	ended := make(chan struct{})
	go func() {
		h.active.Wait()
		_ = h.terminals.Close(ctx)
		_ = h.events.Close(ctx)
		if h.configs != nil {
			_ = h.configs.Close(ctx)
		}
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		h.log.Warn("runs did not end in time")
	}
	return h.store.Close()
}

// Abandon interrupts what runs, as Close does at first, and starts nothing more:
// for who is told of that before its connection ends.
func (h *Hub) Abandon(ctx context.Context) error {
	h.mu.Lock()
	h.draining = true
	h.mu.Unlock()
	return h.write(ctx, h.shutDown)
}

func (h *Hub) shutDown(t store.Tx) error {
	return h.abandon(t, "SHUTDOWN", "duet-rpc was ended while this ran; continue it to go on where it was")
}

// Drain waits until nothing runs that does not wait for a human, or ctx ends: a
// question can be answered later, too. Queued runs stay queued, and nothing new is
// started until the hub is closed.
func (h *Hub) Drain(ctx context.Context) {
	h.mu.Lock()
	h.draining = true
	h.mu.Unlock()
	for h.works() {
		select {
		case <-ctx.Done():
			return
		case <-time.After(20 * time.Millisecond): // as long as a human does not notice
		}
	}
}

// Busy reports whether agents are at work.
func (h *Hub) Busy() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.live) > 0
}

// works reports whether a run does something on its own.
func (h *Hub) works() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, live := range h.live {
		if !live.asks {
			return true
		}
	}
	return false
}

// isClosing reports whether nothing new is to be started.
func (h *Hub) isClosing() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.closing || h.draining
}

// setIssue notes that something is wrong with a part of the hub, or that it
// is well again where text is "".
func (h *Hub) setIssue(part, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if text == "" {
		delete(h.issues, part)
	} else {
		h.issues[part] = text
	}
}

// Issues lists what is wrong.
func (h *Hub) Issues() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var list []string
	for _, text := range h.issues {
		list = append(list, text)
	}
	if h.damage.found() {
		list = append(list, damagedIssue)
	}
	return list
}

// write is the store's Write with errors that can be told.
func (h *Hub) write(ctx context.Context, change func(store.Tx) error) error {
	return h.noteWrite(h.store.Write(ctx, change))
}

// noteWrite notes what the outcome of a write says of the store, and makes an
// error fit to be told.
func (h *Hub) noteWrite(err error) error {
	switch {
	case store.IsFull(err):
		h.diskIsFull(err)
	case err == nil && h.full.Load():
		h.diskHasRoom()
	case store.IsLost(err):
		h.storeIsLost(err)
	}
	return stored(err)
}
