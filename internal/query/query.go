// Package query reads sessions, turns and transcripts. It changes nothing.
package query

import (
	"context"
	"errors"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// Queries reads a store. Its methods may be called from any goroutine. Errors that are a
// *domain.Error are safe to show to users.
type Queries struct {
	ctx    context.Context
	store  store.Store
	recent *recentTurns // sessions used recently for their ids

	searches chan struct{} // holds a value per running search

	// Unstored, if set, returns the turns whose end could not be stored yet because the disk is
	// full. The returned overlay sets the end state in a session; it is nil if there are no such
	// runs. It must be called before the session is read, so that an end stored in between is not
	// missed. Set it before the first query.
	Unstored func() (overlay func(*domain.TurnInSession))
}

// New returns Queries of a store. They end with ctx.
func New(ctx context.Context, s store.Store) *Queries {
	return &Queries{ctx: ctx, store: s, recent: newRecentTurns(), searches: make(chan struct{}, searchesAtOnce)}
}

// NoTurn returns the error of an unknown id.
func NoTurn(id string) *domain.Error {
	return domain.Errorf(domain.KindTurnNotFound, "no session or turn has the id %q", id)
}

// Find returns the turn that an id of any kind names, also inside a transaction. The error is of
// domain.KindTurnNotFound if none exists, else the store's own.
func Find(ctx context.Context, r store.Reader, id string) (domain.Turn, error) {
	n, err := r.Find(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return domain.Turn{}, NoTurn(id)
	}
	if err != nil {
		return domain.Turn{}, err
	}
	return r.Turn(ctx, n)
}

// Turn returns the turn that an id of any kind names: one of the turn, of its session (which means its last
// turn), the caller's own, or a number.
func (q *Queries) Turn(ctx context.Context, id string) (domain.TurnInSession, error) {
	n, err := q.store.Find(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return domain.TurnInSession{}, NoTurn(id)
	}
	if err != nil {
		return domain.TurnInSession{}, store.Explain(err)
	}
	return q.ByTurn(ctx, n)
}

// Scope resolves an id of any kind to a session with all its future turns, or to a turn; the other
// result is 0.
func (q *Queries) Scope(ctx context.Context, id string) (turn, session int64, err error) {
	s, err := q.Turn(ctx, id)
	if err != nil {
		return 0, 0, err
	}
	whole, err := q.store.NamesSession(ctx, id)
	if err != nil {
		return 0, 0, store.Explain(err)
	}
	if whole {
		return 0, s.Session.ID, nil
	}
	return s.Turn.ID, 0, nil
}

// ByTurn returns the session of a turn.
func (q *Queries) ByTurn(ctx context.Context, turn int64) (domain.TurnInSession, error) {
	overlay := q.unstored()
	s, err := q.store.TurnInSession(ctx, turn)
	if err == nil && overlay != nil {
		overlay(&s)
	}
	return s, store.Explain(err)
}

// LastOfNative returns the last turn of the session with an agent's own session.
func (q *Queries) LastOfNative(ctx context.Context, native string) (domain.TurnInSession, error) {
	session, err := q.store.FindNative(ctx, native)
	if errors.Is(err, store.ErrNotFound) {
		return domain.TurnInSession{}, domain.Errorf(domain.KindTurnNotFound, "no session of an agent has the id %q", native)
	}
	if err != nil {
		return domain.TurnInSession{}, store.Explain(err)
	}
	last, err := q.store.LastTurn(ctx, session)
	if err != nil {
		return domain.TurnInSession{}, store.Explain(err)
	}
	return q.ByTurn(ctx, last.ID)
}

// Turns lists turns, the newest first.
func (q *Queries) Turns(ctx context.Context, f domain.TurnFilter) ([]domain.TurnInSession, error) {
	overlay := q.unstored()
	list, err := q.store.TurnsInSessions(ctx, f)
	if overlay != nil {
		for i := range list {
			overlay(&list[i])
		}
	}
	return list, store.Explain(err)
}

func (q *Queries) unstored() (overlay func(*domain.TurnInSession)) {
	if q.Unstored == nil {
		return nil
	}
	return q.Unstored()
}

// Counts returns the number of turns in each state.
func (q *Queries) Counts(ctx context.Context) (domain.Counts, error) {
	c, err := q.store.Counts(ctx)
	return c, store.Explain(err)
}

// Usage returns the usage of turns, and with by also per day, agent, session or model.
func (q *Queries) Usage(
	ctx context.Context, f domain.UsageFilter, by domain.UsageBy, now time.Time,
) (total domain.Usage, rows []domain.UsageRow, err error) {
	if total, err = q.store.Usage(ctx, f, now); err == nil && by != "" {
		rows, err = q.store.UsageBy(ctx, f, by, now)
	}
	return total, rows, store.Explain(err)
}

// Changes lists the files that a turn changed.
func (q *Queries) Changes(ctx context.Context, id string) ([]domain.Change, error) {
	s, err := q.Turn(ctx, id)
	if err != nil {
		return nil, err
	}
	list, err := q.store.Changes(ctx, s.Turn.ID)
	return list, store.Explain(err)
}

// TurnOf returns the session of a row, such as an approval's or an item's.
func (q *Queries) TurnOf(ctx context.Context, turn int64) (domain.TurnInSession, error) {
	if s, ok := q.Known(turn); ok {
		return s, nil
	}
	return q.ByTurn(ctx, turn)
}

// ParentName returns the number of the turn before a turn, such as 12.2; "" if there is none, or it was
// deleted.
func (q *Queries) ParentName(ctx context.Context, s domain.TurnInSession) (string, error) {
	if s.Parent == 0 {
		return "", nil
	}
	before, err := q.TurnOf(ctx, s.Parent)
	if errors.Is(err, store.ErrNotFound) {
		return "", nil
	}
	return before.Name(), err
}

// RecentPaths returns the directories of sessions, the last used first.
func (q *Queries) RecentPaths(ctx context.Context, limit int) ([]domain.RecentPath, error) {
	list, err := q.store.RecentPaths(ctx, limit)
	return list, store.Explain(err)
}

// Known returns a cached session, of which only the ids are current.
func (q *Queries) Known(turn int64) (domain.TurnInSession, bool) { return q.recent.of(turn) }

// Changed drops a cached session that the current transaction has changed.
func (q *Queries) Changed(t store.Tx, turn int64) {
	t.AfterCommit(func() { q.recent.drop(turn) })
}

// Committed updates cached sessions with committed events; see [store.Options].
func (q *Queries) Committed(events []domain.Event, now store.Reader) {
	for _, e := range events {
		if e.Turn == 0 {
			continue
		}
		_, known := q.recent.of(e.Turn)
		if known && e.Payload.Kind() != domain.EventTurnState {
			continue
		}
		if s, err := now.TurnInSession(q.ctx, e.Turn); err == nil {
			q.recent.keep(s)
		}
	}
}

// Attachment returns at most limit bytes of an attachment, from offset on.
func (q *Queries) Attachment(ctx context.Context, id string, offset int64, limit int) (domain.AttachmentInfo, []byte, error) {
	info, part, err := q.store.AttachmentPart(ctx, id, offset, limit)
	if errors.Is(err, store.ErrNotFound) {
		return info, nil, domain.Errorf(domain.KindAttachmentNotFound, "no attachment has the id %q", id)
	}
	return info, part, store.Explain(err)
}
