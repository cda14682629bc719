// Package sessionsettings changes the settings of sessions and sends them to the active agent.
package sessionsettings

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/background"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/query"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// Turns is the access of [Settings] to turns. Its methods may be called from any goroutine.
type Turns interface {
	// Write runs a transaction. Its error is safe to show to clients.
	Write(ctx context.Context, change func(store.Tx) error) error
	// LeaseOf returns the executor that works for a session, or nil. It returns one as long as the
	// session's turn reads as active.
	LeaseOf(session int64) catalog.Lease
}

// Agents looks up configured agents.
type Agents interface {
	// Agent returns a named agent, or the default one for "". Its error is safe to show to clients.
	Agent(name string) (config.Agent, error)
	// AgentFor is Agent for a caller that may be restricted.
	AgentFor(restricted bool, name string) (config.Agent, error)
	// Known returns an agent, or the known data of one that is not configured.
	Known(name string) config.Agent
}

// Questions holds the open approvals.
type Questions interface {
	// Reconsider answers the open questions that the session's settings can answer now.
	Reconsider(t store.Tx, session int64) error
	// CloseStale closes a session's questions of dead agents.
	CloseStale(t store.Tx, session int64) error
}

// Options configure Settings. All of them are required.
type Options struct {
	Store     store.Reader
	Query     *query.Queries
	Turns     Turns
	Agents    Agents
	Questions Questions
	// MayArchive returns an error if the agent of a session goes on by itself.
	MayArchive func(t store.Tx, session int64) error
	Logger     *slog.Logger
}

// Settings changes the settings of all sessions. Its methods may be called from any goroutine.
type Settings struct {
	opts    Options
	ctx     context.Context
	telling background.Group // sends changes for callers that do not wait
	turns   turns            // order of the sends
}

// New returns Settings. When ctx ends, agents get no more changes.
func New(ctx context.Context, opts Options) *Settings {
	return &Settings{opts: opts, ctx: ctx}
}

// Close waits until no change is being sent, or ctx ends. The context of [New] must have ended.
func (ts *Settings) Close(ctx context.Context) error { return ts.telling.Close(ctx) }

// Update changes the session of a turn. An active agent gets its mode, model and options afterwards;
// a refusal becomes an error of its turn. SetAgent waits for the agent instead.
func (ts *Settings) Update(ctx context.Context, id string, c domain.SettingsChanged) (domain.TurnInSession, error) {
	if _, err := ts.checkChange(ctx, id, c); err != nil {
		return domain.TurnInSession{}, err
	}
	return ts.keep(ctx, id, c, func() bool { return isForAgent(c) })
}

// SetAgent is Update, but waits until the active agent has accepted its mode, model and options;
// live reports whether one is active. If the agent refuses, nothing changes. SetAgent overwrites
// changes that Update stored meanwhile, because it comes later.
func (ts *Settings) SetAgent(ctx context.Context, id string, c domain.SettingsChanged) (s domain.TurnInSession, live bool, err error) {
	named, err := ts.checkChange(ctx, id, c)
	if err != nil {
		return domain.TurnInSession{}, false, err
	}
	turn := ts.turns.take(named.Session.ID, false)
	select {
	case <-turn.before:
		defer turn.done()
	case <-ctx.Done():
		if !ts.telling.Go(func() { <-turn.before; turn.done() }) { // later turns still wait for earlier ones
			turn.done()
		}
		return domain.TurnInSession{}, false, ctx.Err()
	}
	if !isForAnother(c, named.Session) {
		if live, err = ts.setLive(ctx, named.Session, c); err != nil {
			return domain.TurnInSession{}, false, err
		}
	}
	// Settings stored meanwhile reach the agent first; then this change is sent again and wins.
	s, err = ts.keep(ctx, id, c, func() bool { return isForAgent(c) && turn.isOvertaken() })
	return s, live, err
}

// checkChange refuses an invalid change, and returns the session that id names.
func (ts *Settings) checkChange(ctx context.Context, id string, c domain.SettingsChanged) (domain.TurnInSession, error) {
	if c.Mode != nil && *c.Mode == "" {
		return domain.TurnInSession{}, domain.Invalid("permission_mode", "a permission mode", "an empty string", duets...)
	}
	named, err := ts.opts.Query.Turn(ctx, id)
	if err != nil {
		return domain.TurnInSession{}, err
	}
	var mode, model string
	set(&mode, c.Mode)
	set(&model, c.Model)
	agent, err := ts.agentAfter(ctx, named, c)
	if err != nil {
		return named, err
	}
	return named, ts.Check(ctx, ts.opts.Store, named.Session.ID, agent, mode, model, c.Options)
}

// keep stores a checked change. If tell returns true at the commit, the agent gets the changes
// afterwards, one after the other.
func (ts *Settings) keep(ctx context.Context, id string, c domain.SettingsChanged, tell func() bool) (domain.TurnInSession, error) {
	var turn domain.Turn
	err := ts.opts.Turns.Write(ctx, func(t store.Tx) error {
		var err error
		if turn, err = query.Find(ts.ctx, t, id); err != nil {
			return err
		}
		session, err := t.Session(ts.ctx, turn.Session)
		if err == nil && c.Archived != nil && *c.Archived {
			err = ts.opts.MayArchive(t, session.ID)
		}
		if err != nil {
			return err
		}
		changed := c
		changed.Agent = nil
		if isForAnother(c, session) {
			agent, err := ts.opts.Agents.AgentFor(clientenv.IsRestricted(ctx), *c.Agent)
			if err != nil {
				return err
			}
			if err := ts.giveTo(t, &session, agent.Name, &changed); err != nil {
				return err
			}
			if turn, err = t.Turn(ts.ctx, turn.ID); err != nil { // a draft gets it too
				return err
			}
		}
		changed.Apply(&session)
		set(&turn.Title, c.Title)
		set(&turn.Mode, c.Mode)
		if err := t.UpdateTurn(turn); err != nil {
			return err
		}
		if c.Mode != nil { // whichever turn of the session was named
			if err := ts.setModes(t, &session, *c.Mode); err != nil {
				return err
			}
		}
		if err := t.UpdateSession(session); err != nil {
			return err
		}
		ts.opts.Query.Changed(t, turn.ID)
		if err := announce(t, turn, changed); err != nil {
			return err
		}
		t.AfterCommit(func() {
			if tell() {
				ts.tellInBackground(domain.TurnInSession{Turn: turn, Session: session}, c)
			}
		})
		return ts.opts.Questions.Reconsider(t, session.ID)
	})
	if err != nil {
		return domain.TurnInSession{}, err
	}
	return ts.opts.Query.ByTurn(ctx, turn.ID)
}

// isForAnother reports whether a change changes the session's agent.
func isForAnother(c domain.SettingsChanged, session domain.Session) bool {
	return c.Agent != nil && *c.Agent != session.Agent
}

// isForAgent reports whether the agent must get a change.
func isForAgent(c domain.SettingsChanged) bool {
	return c.Mode != nil || c.Model != nil || len(c.Options) > 0
}

// set sets *field to *value unless value is nil.
func set[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}

// announce adds an event of a turn to the log.
func announce(t store.Tx, turn domain.Turn, p domain.Payload) error {
	_, err := t.Append(turn.Event(p))
	return err
}

// setModes changes the mode of a session's turns that have not ended. Ended turns keep theirs; later
// turns begin with the session's.
func (ts *Settings) setModes(t store.Tx, session *domain.Session, mode string) error {
	last, err := t.LastTurn(ts.ctx, session.ID)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	session.Settings.ModeTurn = last.ID
	turns, err := t.UnfinishedTurns(ts.ctx, session.ID)
	if err != nil {
		return err
	}
	for _, turn := range turns {
		agentMode := turn.AgentMode
		if turn.State.Active() && catalog.ModeName(agentMode) == catalog.ModeName(mode) {
			session.Settings.ModeTurn = turn.ID - 1 // the agent is in it: its next report counts
		}
		if turn.State == domain.Draft || turn.State == domain.Queued {
			agentMode = "" // the mode in which the agent would have continued
		}
		if turn.Mode == mode && turn.AgentMode == agentMode {
			continue
		}
		turn.Mode, turn.AgentMode = mode, agentMode
		if err := t.UpdateTurn(turn); err != nil {
			return err
		}
	}
	return nil
}

// turns serializes the sends to the agents of sessions: one at a time per session, in order. The zero
// value is ready.
type turns struct {
	mu   sync.Mutex // guards the fields below
	last map[int64]chan struct{}
	kept map[int64]int // turns of sessions whose change is already stored
}

// turn is one send. It may run when before is closed.
type turn struct {
	before <-chan struct{}

	of      *turns
	session int64
	isKept  bool          // the change is stored
	mine    chan struct{} // closed at its end
}

// take returns the next turn of a session, for a change that is already stored or not. It never
// blocks.
func (o *turns) take(session int64, isKept bool) turn {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.last == nil {
		o.last, o.kept = make(map[int64]chan struct{}), make(map[int64]int)
	}
	mine, previous := make(chan struct{}), o.last[session]
	if previous == nil {
		previous = make(chan struct{})
		close(previous)
	}
	o.last[session] = mine
	if isKept {
		o.kept[session]++
	}
	return turn{previous, o, session, isKept, mine}
}

// done ends the turn. It must be called exactly once.
func (t turn) done() {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	if t.isKept {
		t.of.kept[t.session]--
	}
	if t.of.last[t.session] == t.mine {
		delete(t.of.last, t.session)
		delete(t.of.kept, t.session)
	}
	close(t.mine)
}

// isOvertaken reports whether a stored change waits behind this turn, which has begun.
func (t turn) isOvertaken() bool {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	return t.of.kept[t.session] > 0
}
