package hub

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/approval"
	"github.com/duet-rpc/duet-rpc/internal/background"
	"github.com/duet-rpc/duet-rpc/internal/build"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/changereview"
	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/conversation"
	"github.com/duet-rpc/duet-rpc/internal/credential"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/eventlog"
	"github.com/duet-rpc/duet-rpc/internal/gate"
	"github.com/duet-rpc/duet-rpc/internal/intake"
	"github.com/duet-rpc/duet-rpc/internal/mcp"
	"github.com/duet-rpc/duet-rpc/internal/preview"
	"github.com/duet-rpc/duet-rpc/internal/query"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/terminal"
	"github.com/duet-rpc/duet-rpc/internal/threadsettings"
	"github.com/duet-rpc/duet-rpc/internal/trigger"
	"github.com/duet-rpc/duet-rpc/internal/usercommand"
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

// Options configure a Hub.
type Options struct {
	// OpenStore opens the store, with what it is to tell the hub.
	OpenStore func(ctx context.Context, opts store.Options) (store.Store, error)
	Database  string // the store's path
	Root      string // of the project
	Agents    config.Agents
	// Keys and Rules, if set, are those of the configuration as it is now: it
	// may change while the hub runs. They are asked often.
	Keys  func() map[string]config.Key
	Rules func() []config.Rule
	// Restricted, if set, is the configuration as it is for who does not
	// trust the workspace; see package clientenv.
	Restricted func() (*config.Config, error)
	// Changes, if set, is looked at while agents are at work: what they stand
	// on may be taken back.
	Changes ConfigChanges
	// Builds, if set, is what the configuration says of builds now.
	Builds func() (build.Configured, error)
	// Gates are those of the configuration as it is now; nil: there are none.
	Gates func() (gate.Configured, error)
	// Preview, if set, is what a preview shows now, as it is configured, to who trusts the
	// workspace or, restricted, to who does not.
	Preview func(restricted bool) (config.Preview, error)
	// TryServers, if set, tells whether the MCP servers that agents get are tried, so
	// that conversations are told which do not work.
	TryServers func() bool
	// Triggers, if set, are those of the configuration as it is now, without what waits
	// for trust.
	Triggers func() (trigger.Definitions, error)
	StateDir string // of the project: triggers do not watch it, and no change in there is reverted
	// Budget, if set, is what runs may use, as it is configured now. It is asked often.
	Budget    func() config.Budget
	Limits    config.Limits
	Executors func(catalog.Daemon) Executors // makes the executors' owner, once
	Getenv    func(string) string
	Logger    *slog.Logger
	// Idle, if set, is called a moment after the last run has ended: a good
	// time to return memory to the system.
	Idle func()
	// AgentTold, if set, is called when the end of a run has told of who is signed in to
	// its agent: it has answered, or wants somebody to sign in. The run's own goroutine
	// calls it, never the store's writer, and the end of the run is kept when it has
	// returned: who hears of the end can read what was told.
	AgentTold func(agent config.Agent, answered bool)
	// KillAgents ends agents that a dead process left behind.
	KillAgents func([]domain.Process)
	// Valid, if set, tells whether this process is still the project's hub. It
	// is asked often, and must be cheap.
	Valid func() error
	// Replaced, if set, returns when the project's directory was made anew, or the zero time.
	// Rules and answers from before do not count.
	Replaced func() time.Time

	// Removed, if set, has one in it when the database, or what Valid looks at, may
	// have been removed or replaced. Else that is looked for every second.
	Removed <-chan struct{}
	// Lost, if set, is called once if the database was removed or replaced, or
	// Valid gave an error: nothing is kept any more, and the hub is to be closed,
	// but not by Lost itself, which must not block.
	Lost func(error)
}

// A Hub keeps the domain. Its methods may be called from any goroutine.
type Hub struct {
	opts         Options
	store        store.Store
	health       *store.Monitor // of the store
	configured   *config.Configuration
	configs      *configWatch // nil where the configuration does not change
	events       *eventlog.Log
	conversation *conversation.Writer
	intake       *intake.Intake
	approvals    *approval.Inbox
	settings     *threadsettings.Settings
	budget       *budgetGuard
	cutShort     *cutShortByFullDisk
	calls        *ExecutorCalls
	servers      *mcp.Servers // nil: none is tried
	mcp          *mcp.Clients
	terminals    *terminal.Registry
	triggers     *trigger.Engine
	commands     *usercommand.Runner
	builds       *build.Builds
	gates        *gate.Engine
	preview      *preview.Preview
	review       *changereview.Review
	tokens       *credential.Tokens
	keys         *credential.Keys
	executors    Executors
	toExecute    *startQueue
	adoption     *Adopter
	environments *runEnvironments
	query        *query.Queries
	log          *slog.Logger
	started      time.Time

	ctx    context.Context // ends with the hub
	cancel context.CancelFunc
	active background.Group // goroutines of runs and subscriptions

	mayStart bool // the change under way lets a queued run start; belongs to the store's writer
	// client is the environment of the client that asks for the change under way, or nil; it
	// belongs to the store's writer.
	client clientenv.Environment

	mu       sync.Mutex // guards the fields below
	live     map[int64]*liveRun
	awaiting map[int64][]chan struct{}
	closing  bool
	draining bool          // nothing new is started
	rested   chan struct{} // for Drain: closed when a run ends, or begins to wait for a human; nil while nobody drains
	calm     *time.Timer   // calls Options.Idle
}

// Open opens the database, picks up what a dead process left behind, and
// starts the runs that are queued. An error is that of
// Options.OpenStore, or one of the file system.
func Open(ctx context.Context, opts Options) (*Hub, error) {
	h, err := openOnce(ctx, opts)
	full := store.IsFull(err) && store.FreeReserve(opts.Database) == nil
	if full { // what was set aside is room enough to look at what there is
		h, err = openOnce(ctx, opts)
	}
	if err == nil {
		h.health.Watch(full)
	}
	return h, err
}

func openOnce(ctx context.Context, opts Options) (*Hub, error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	h := &Hub{
		opts: opts, log: opts.Logger, started: time.Now(),
		live: make(map[int64]*liveRun), awaiting: make(map[int64][]chan struct{}),
		tokens: credential.NewTokens(), toExecute: newStartQueue(), environments: newRunEnvironments(),
	}
	h.configured = &config.Configuration{Agents: opts.Agents, Keys: opts.Keys, Restricted: opts.Restricted, Logger: h.log}
	h.ctx, h.cancel = context.WithCancel(context.WithoutCancel(ctx))
	h.conversation = conversation.New(h.ctx, func(run int64) (domain.Session, bool) { return h.query.Known(run) })
	h.health = store.NewMonitor(store.MonitorOptions{
		Database: opts.Database, Removed: opts.Removed, Full: func(err error) { h.cutShort.DiskIsFull(err) }, Room: func() { h.cutShort.DiskHasRoom() }, Lost: opts.Lost, Logger: h.log,
	})
	h.events = h.newEvents(h.ctx)
	var err error
	if h.store, err = opts.OpenStore(ctx, store.Options{Committed: h.committed, RolledBack: h.conversation.RolledBack, Valid: opts.Valid, Damaged: h.health.Damaged}); err != nil {
		return nil, err
	}
	h.health.Opened(h.store)
	h.query = query.New(h.ctx, h.store)
	h.keys = h.newKeys()
	h.approvals = h.newInbox()
	h.cutShort = newFullDisk(h.ctx, fullDiskOptions{
		Store: h.store, Runs: forFullDisk{h}, Questions: h.approvals, Conversation: h.conversation, AwaitRoom: h.health.AwaitRoom, Logger: h.log,
	})
	h.query.Unstored = forFullDisk{h}.unstored
	h.settings = threadsettings.New(h.ctx, threadsettings.Options{
		Store: h.store, Query: h.query, Runs: forSettings{h}, Agents: h.configured, Questions: h.approvals, Logger: h.log,
	})
	h.budget = newBudgetGuard(h.ctx, budgetOptions{Limits: h.budgets, Runs: forBudget{h}})
	h.intake = intake.New(h.ctx, intake.Options{
		Store: h.store, Conversation: h.conversation, Runs: forIntake{h}, Answers: h.approvals, Budget: h.budget, Health: h.health, Keys: h.keys.Of, Root: opts.Root, Logger: h.log,
	})
	h.servers = h.newServers(h.ctx)
	h.mcp = h.newMCP(h.ctx)
	h.calls = newExecutorCalls(h.ctx, executorCallOptions{
		GetsServers: h.tryServers,
		Store:       h.store, Query: h.query, Write: h.write, Tokens: h.tokens, Keys: h.keys, Conversation: h.conversation, Approvals: h.approvals, Reports: h.intake, Agents: h.configured,
	})
	h.adoption = h.newAdoption()
	h.terminals = h.newTerminals(h.ctx)
	h.commands = h.newCommands(h.ctx)
	h.builds = h.newBuilds()
	h.gates = h.newGates()
	h.preview = h.newPreview()
	h.review = changereview.New(changereview.Options{Root: opts.Root, StateDir: opts.StateDir, Store: h.store, Write: h.write})
	h.executors = opts.Executors(daemon{ownTurns{h}, h.calls, h.intake, h.keys, h.terminals, h.commands})
	h.configs = h.watchConfig()
	h.triggers = h.newTriggers()
	h.active.Go(h.executeStarted)
	if err := h.recover(ctx); err != nil {
		h.cancel()
		h.store.Close()
		return nil, err
	}
	if err := h.gates.Resume(ctx); err != nil {
		h.log.Warn("gates that were checked when a process died are not checked again", "err", err)
	}
	h.cutShort.DiskHasRoom()
	if opts.Triggers != nil {
		h.triggers.Start()
	}
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
	if h.calm != nil {
		h.calm.Stop()
	}
	h.mu.Unlock()

	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = h.triggers.Close(ctx)
	_ = h.health.Close(ctx)
	err := h.change(ctx, h.shutDown)
	if err != nil {
		h.log.Warn("runs could not be marked as interrupted", "err", err)
	}
	h.cancel()
	h.keys.Close()
	h.intake.Close()
	_ = h.gates.Close(ctx)
	_ = h.terminals.Close(ctx)
	_ = h.mcp.Close(ctx)
	if h.servers != nil {
		_ = h.servers.Close(ctx)
	}
	_ = h.events.Close(ctx)
	if h.configs != nil {
		_ = h.configs.Close(ctx)
	}
	_ = h.settings.Close(ctx)
	_ = h.cutShort.Close(ctx)
	if h.active.Close(ctx) != nil {
		h.log.Warn("runs did not end in time")
	}
	return h.store.Close()
}

// Abandon interrupts what runs, as Close does at first, and starts nothing more:
// for whoever is told of that before its connection ends.
func (h *Hub) Abandon(ctx context.Context) error {
	h.mu.Lock()
	h.draining = true
	h.mu.Unlock()
	return h.write(ctx, h.shutDown)
}

func (h *Hub) shutDown(t store.Tx) error {
	if err := h.abandon(t, "SHUTDOWN", "duet-rpc was ended while this ran; continue it to go on where it was"); err != nil {
		return err
	}
	return h.intake.CutBackground(t)
}

// Health knows what is wrong with the store.
func (h *Hub) Health() *store.Monitor { return h.health }

// LaunchSpec asks for a run in a new thread, or in the one that ThreadAlias
// names. Only Prompt is required.
type LaunchSpec struct {
	Prompt   string
	Content  []domain.Content // what goes with it
	Title    string
	Agent    string // a name of the configuration; "": the default one
	CWD      string // "": the project's root; ~ is expanded; it must be a directory
	Source   string
	Model    string
	Mode     string // of Duet or of the agent; "": the thread's, and of a new one default
	Settings domain.Settings
	Priority int
	Timeout  time.Duration // 0: the configured one
	Tools    []string      // allowed; empty: all
	Quiet    bool          // no deltas
	Draft    bool          // only kept, not queued
	Metadata json.RawMessage
	Gates    gate.Spec

	ThreadUUID  string // of a new thread, as the caller chose it; "": one is made
	ThreadAlias string // the caller's own id of the conversation; prompts with the same one follow each other
	CallerID    string // the caller's own id of this run; it must be new

	chat bool // in the project's chat
}

// ContinueSpec asks for a run that follows another one: in the same thread if
// From is its last run or has not ended, else, or with Fork, in a fork of it. Where From is a
// draft, that run itself is launched.
type ContinueSpec struct {
	From       string           // any id
	Prompt     string           // may be empty where From is a draft: its own
	Content    []domain.Content // what goes with it; of a draft in the place of its own, if there is any
	Fork       bool             // also from the last run
	ThreadUUID string           // with Fork: of the new thread, as the caller chose it; "": one is made
	Source     string
	Settings   func(*domain.Settings) // changes what the thread has; nil: nothing
	Tools      []string               // allowed from now on; empty: as before
	Timeout    time.Duration          // from now on; 0: as before
	Priority   int
	Metadata   json.RawMessage
	Gates      gate.Spec // in the place of those that it would go on with
}

// Status is what the hub is doing (AIWG, daemon.status).
type Status struct {
	Started   time.Time
	MaxRuns   int
	Counts    domain.Counts
	Running   []domain.Session // those that have an agent
	Queued    []domain.Session // in the order in which they will start
	Executors int
	Pending   int // approvals
	LastSeq   int64
	Issues    []string // what is wrong; empty: healthy
	Database  string
}

// write is change with errors for users.
func (h *Hub) write(ctx context.Context, change func(store.Tx) error) error {
	return h.noteWrite(h.change(ctx, change))
}

// change is the store's Write for changes in which runs may change their state.
// Where that lets queued runs start, they start in the same transaction: should
// the process die between two, nobody would start them.
func (h *Hub) change(ctx context.Context, change func(store.Tx) error) error {
	return h.store.Write(ctx, func(t store.Tx) error {
		h.mayStart = false // as a change may have left it that was undone
		h.client = clientenv.From(ctx)
		if err := change(t); err != nil || !h.mayStart {
			return err
		}
		return h.schedule(t)
	})
}

// Delete deletes the conversation that an id names; see package removal.
func (h *Hub) Delete(ctx context.Context, id string) (r RemovedConversation, err error) {
	err = h.write(ctx, removalChange(h.ctx, id, removalMemory{Runs: h.query, Log: h.events}, &r))
	return r, err
}

// noteWrite notes what the outcome of a write says of the store, and makes an
// error one for users.
func (h *Hub) noteWrite(err error) error {
	h.health.Note(err)
	return stored(err)
}

// stored makes an error of the store one for users.
func stored(err error) error { return store.Explain(err) }

// OrEnding returns the error of a request, or, if the end of the hub cut the request short and
// not its own ctx, why the hub ends.
func (h *Hub) OrEnding(ctx context.Context, err error) error {
	if errors.Is(err, context.Canceled) && ctx.Err() == nil && h.ctx.Err() != nil {
		err = domain.ErrEnding
	}
	if errors.Is(err, domain.ErrEnding) && h.health.Lost() {
		return stored(&store.LostError{Err: err})
	}
	return err
}

// Events is the log of what happens.
func (h *Hub) Events() *eventlog.Log { return h.events }

func (h *Hub) newEvents(ctx context.Context) *eventlog.Log {
	return eventlog.New(ctx, eventlog.Options{Runs: logged{h}, Questions: logged{h}, Damaged: h.health.Damaged, Issue: store.TextDamaged, Logger: h.log})
}

// committed is called by the store's writer after each commit.
func (h *Hub) committed(events []domain.Event, now store.Reader) {
	h.query.Committed(events, now)
	h.events.Append(events)
	if h.triggers != nil { // else the hub is being opened
		h.triggers.Committed(events)
	}
}

// logged is what the log asks of owners that are made after it.
type logged struct{ hub *Hub }

// SessionOf implements eventlog.Runs.
func (l logged) SessionOf(ctx context.Context, run int64) (domain.Session, error) {
	return l.hub.query.SessionOf(ctx, run)
}

// Scope implements eventlog.Runs.
func (l logged) Scope(ctx context.Context, id string) (run, thread int64, err error) {
	return l.hub.query.Scope(ctx, id)
}

// Pending implements eventlog.Questions.
func (l logged) Pending(ctx context.Context, run int64) ([]domain.Event, error) {
	return l.hub.approvals.PendingEvents(ctx, run)
}

// A publisher tells subscribers of events that the log does not keep.
type publisher struct{ hub *Hub }

func (p publisher) Publish(e domain.Event) int {
	return p.hub.events.Publish(e)
}

// Ask implements credential.Asker.
func (p publisher) Ask(e domain.Event) (heard <-chan struct{}, withdraw func()) {
	return p.hub.events.Ask(e)
}

func (h *Hub) announceState(t store.Tx, run domain.Run, thread domain.Thread, from domain.State, reason string) error {
	changed := domain.RunStateChanged{
		ThreadUUID: thread.UUID, From: from, To: run.State, Title: run.Title, Agent: run.Agent, Reason: reason, StopReason: run.Stop,
	}
	if run.State.Ended() || run.State == domain.Interrupting {
		changed.Error, changed.ErrorCode, changed.SignIn = run.Error, run.ErrorCode, run.SignIn
	}
	if run.Parent != 0 {
		parent, err := t.Run(h.ctx, run.Parent)
		if err != nil {
			return err
		}
		changed.ParentSession = parent.SessionID
	}
	return h.announce(t, run, changed)
}

// announce adds an event of a run to the log.
func (h *Hub) announce(t store.Tx, run domain.Run, p domain.Payload) error {
	_, err := t.Append(run.Event(p))
	return err
}
