// Package hub runs the life cycle of turns: launch, state transitions, scheduling, execution, and
// recovery after a crash. One function, transition, makes every state change. The hub also
// constructs the owners of all other state and hands them out: the event log, the approval inbox,
// terminals, keys; see docs/architecture.md. It does not depend on connections.
package hub

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/approval"
	"github.com/duet-rpc/duet-rpc/internal/background"
	"github.com/duet-rpc/duet-rpc/internal/build"
	"github.com/duet-rpc/duet-rpc/internal/changereview"
	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/credential"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/durable"
	"github.com/duet-rpc/duet-rpc/internal/eventlog"
	"github.com/duet-rpc/duet-rpc/internal/gate"
	"github.com/duet-rpc/duet-rpc/internal/intake"
	"github.com/duet-rpc/duet-rpc/internal/mcp"
	"github.com/duet-rpc/duet-rpc/internal/preview"
	"github.com/duet-rpc/duet-rpc/internal/query"
	"github.com/duet-rpc/duet-rpc/internal/sandbox"
	"github.com/duet-rpc/duet-rpc/internal/sessionsettings"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/terminal"
	"github.com/duet-rpc/duet-rpc/internal/transcript"
	"github.com/duet-rpc/duet-rpc/internal/trigger"
	"github.com/duet-rpc/duet-rpc/internal/usercommand"
)

// Hub owns turns and connects the owners of all other state. Its methods may be called from any
// goroutine.
type Hub struct {
	opts         Options
	store        store.Store
	health       *store.Monitor // of the store
	configured   *config.Configuration
	configs      *configWatch
	events       *eventlog.Log
	transcript   *transcript.Writer
	checkpoints  *checkpoints
	prepared     preparedWorktrees
	sandboxes    sandbox.Finder
	intake       *intake.Intake
	approvals    *approval.Inbox
	settings     *sessionsettings.Settings
	budget       *budgetGuard
	clocks       *turnClocks
	cutShort     *cutShortByFullDisk
	calls        *ExecutorCalls
	servers      *mcp.Servers
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
	launches     launches
	environments *turnEnvironments
	query        *query.Queries
	log          *slog.Logger
	started      time.Time

	ctx    context.Context // ends with the hub
	cancel context.CancelFunc
	active background.Group // goroutines of turns and subscriptions

	mayStart bool // the current transaction lets a queued turn start; belongs to the store's writer
	// client is the environment of the client of the current transaction, or nil. It belongs to the
	// store's writer.
	client clientenv.Environment

	mu       sync.Mutex // guards the fields below
	live     map[int64]*liveTurn
	awaiting map[int64][]chan struct{}
	closing  bool
	draining bool          // start nothing new
	rested   chan struct{} // for Drain: closed when a turn ends or begins to wait for a human; nil without Drain
	calm     *time.Timer   // fires Options.Idle
}

// Health returns the monitor of the store's problems.
func (h *Hub) Health() *store.Monitor { return h.health }

// Status is the hub's current activity (AIWG, daemon.status).
type Status struct {
	Started   time.Time
	MaxTurns  int
	Counts    domain.Counts
	Running   []domain.TurnInSession // turns with an agent
	Queued    []domain.TurnInSession // in starting order
	Executors int
	Pending   int // open approvals
	LastSeq   int64
	Issues    []string // current problems; empty: healthy
	Database  string
}

// write is change with errors that are safe to show to users.
func (h *Hub) write(ctx context.Context, change func(store.Tx) error) error {
	return h.noteWrite(h.change(ctx, change))
}

// apply is write without waiting for the disk, see [store.Store.Apply].
func (h *Hub) apply(ctx context.Context, change func(store.Tx) error) error {
	return h.noteWrite(h.store.Apply(ctx, h.scheduling(ctx, change)))
}

// change is the store's Write for transactions that may change the state of turns.
func (h *Hub) change(ctx context.Context, change func(store.Tx) error) error {
	return h.store.Write(ctx, h.scheduling(ctx, change))
}

// scheduling returns a change after which queued turns that may start do so in the same transaction:
// a crash between two transactions would leave them unstarted.
func (h *Hub) scheduling(ctx context.Context, change func(store.Tx) error) func(store.Tx) error {
	return func(t store.Tx) error {
		h.mayStart = false // a rolled-back transaction may have left it set
		h.client = clientenv.From(ctx)
		if err := change(t); err != nil || !h.mayStart {
			return err
		}
		return h.schedule(t)
	}
}

// Delete deletes the session that an id names; see [RemovedSession].
// If its worktree has work that is not landed, the error is of KindLosses.
func (h *Hub) Delete(ctx context.Context, id string) (r RemovedSession, err error) {
	w, err := h.worktreeToRemove(ctx, id)
	if err != nil {
		return r, err
	}
	remove := removalChange(h.ctx, id, removalMemory{Turns: h.query, Log: h.events}, &r)
	err = h.write(ctx, func(t store.Tx) error {
		if session, err := t.FindSession(h.ctx, id); err == nil { // remove reports an unknown id
			if err := h.rests(t, session); err != nil {
				return err
			}
		}
		return remove(t)
	})
	if err == nil && w.top != "" && (r.Kept > 0 || !h.removeWorktree(ctx, w)) {
		r.Worktree = w.top
	}
	return r, err
}

// noteWrite records what the result of a write shows about the store, and returns an error for
// users.
func (h *Hub) noteWrite(err error) error {
	h.health.Note(err)
	return stored(err)
}

// stored converts a store error to one for users.
func stored(err error) error { return store.Explain(err) }

// OrEnding returns the error of a request, in words for users. If the hub's end interrupted the request,
// and not ctx, it returns why the hub ends.
func (h *Hub) OrEnding(ctx context.Context, err error) error {
	if errors.Is(err, context.Canceled) && ctx.Err() == nil && h.ctx.Err() != nil {
		err = domain.ErrEnding
	}
	if errors.Is(err, domain.ErrEnding) && h.health.Lost() {
		return stored(&store.LostError{Err: err})
	}
	if known := (*domain.Error)(nil); errors.As(err, &known) {
		return err
	}
	if durable.Unknown(err) { // the disk fails, for example
		return &domain.Error{Kind: domain.KindUnavailable, Message: err.Error(), Err: err}
	}
	return stored(err) // of a read, for example
}

// Events returns the event log.
func (h *Hub) Events() *eventlog.Log { return h.events }

func (h *Hub) newEvents(ctx context.Context) *eventlog.Log {
	return eventlog.New(ctx, eventlog.Options{
		Turns: logged{h}, Questions: logged{h}, Damaged: h.health.Damaged, Issue: store.TextDamaged, Logger: h.log,
	})
}

// committed runs after each commit, on the store's writer.
func (h *Hub) committed(events []domain.Event, now store.Reader) {
	h.query.Committed(events, now)
	h.events.Committed(events)
	if h.triggers != nil { // nil while the hub is opening
		h.triggers.Committed(events)
	}
}

// logged gives the log access to owners that are created after it.
type logged struct{ hub *Hub }

// TurnOf implements eventlog.Turns.
func (l logged) TurnOf(ctx context.Context, turn int64) (domain.TurnInSession, error) {
	return l.hub.query.TurnOf(ctx, turn)
}

// Scope implements eventlog.Turns.
func (l logged) Scope(ctx context.Context, id string) (turn, session int64, err error) {
	return l.hub.query.Scope(ctx, id)
}

// Pending implements eventlog.Questions.
func (l logged) Pending(ctx context.Context, turn int64) ([]domain.Event, error) {
	return l.hub.approvals.PendingEvents(ctx, turn)
}

// publisher sends subscribers the events that the log does not store.
type publisher struct{ hub *Hub }

func (p publisher) Publish(e domain.Event) int {
	return p.hub.events.Publish(e)
}

// Ask implements credential.Asker.
func (p publisher) Ask(e domain.Event) (heard <-chan struct{}, withdraw func()) {
	return p.hub.events.Ask(e)
}

func (h *Hub) announceState(
	t store.Tx, turn domain.Turn, session domain.Session, from domain.State, reason string,
) error {
	changed := domain.TurnStateChanged{
		SessionUUID: session.UUID, From: from, To: turn.State, Title: turn.Title, Agent: turn.Agent, Reason: reason,
		StopReason: turn.Stop,
	}
	if turn.State.Ended() || turn.State == domain.Interrupting {
		changed.Error, changed.ErrorCode, changed.SignIn = turn.Error, turn.ErrorCode, turn.SignIn
	}
	if turn.Parent != 0 {
		parent, err := t.Turn(h.ctx, turn.Parent)
		if err != nil {
			return err
		}
		changed.ParentHumanLayerSession = parent.HumanLayerSession
	}
	return h.announce(t, turn, changed)
}

// announce adds an event of a turn to the log.
func (h *Hub) announce(t store.Tx, turn domain.Turn, p domain.Payload) error {
	_, err := t.Append(turn.Event(p))
	return err
}
