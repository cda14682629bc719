// Package query reads sessions and conversations. It changes nothing.
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
	recent *recentSessions // sessions used recently for their ids

	searches chan struct{} // holds a value per running search

	// Unstored, if set, returns the runs whose end could not be stored yet because the disk is
	// full. The returned overlay sets the end state in a session; it is nil if there are no such
	// runs. It must be called before the session is read, so that an end stored in between is not
	// missed. Set it before the first query.
	Unstored func() (overlay func(*domain.Session))
}

// New returns Queries of a store. They end with ctx.
func New(ctx context.Context, s store.Store) *Queries {
	return &Queries{ctx: ctx, store: s, recent: newRecentSessions(), searches: make(chan struct{}, searchesAtOnce)}
}

// NoRun returns the error of an unknown id.
func NoRun(id string) *domain.Error {
	return domain.Errorf(domain.KindRunNotFound, "no run, session or task has the id %q", id)
}

// Find returns the run that an id of any kind names, also inside a transaction. The error is of
// domain.KindRunNotFound if none exists, else the store's own.
func Find(ctx context.Context, r store.Reader, id string) (domain.Run, error) {
	n, err := r.Find(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return domain.Run{}, NoRun(id)
	}
	if err != nil {
		return domain.Run{}, err
	}
	return r.Run(ctx, n)
}

// Session returns the run that an id of any kind names: a session's, a run's, a task's, a thread's
// (its last run), or the caller's own.
func (q *Queries) Session(ctx context.Context, id string) (domain.Session, error) {
	n, err := q.store.Find(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return domain.Session{}, NoRun(id)
	}
	if err != nil {
		return domain.Session{}, store.Explain(err)
	}
	return q.ByRun(ctx, n)
}

// Scope resolves an id of any kind to a thread with all its future runs, or to a run; the other
// result is 0.
func (q *Queries) Scope(ctx context.Context, id string) (run, thread int64, err error) {
	s, err := q.Session(ctx, id)
	if err != nil {
		return 0, 0, err
	}
	whole, err := q.store.NamesThread(ctx, id)
	if err != nil {
		return 0, 0, store.Explain(err)
	}
	if whole {
		return 0, s.Thread.ID, nil
	}
	return s.Run.ID, 0, nil
}

// ByRun returns the session of a run.
func (q *Queries) ByRun(ctx context.Context, run int64) (domain.Session, error) {
	overlay := q.unstored()
	s, err := q.store.Session(ctx, run)
	if err == nil && overlay != nil {
		overlay(&s)
	}
	return s, store.Explain(err)
}

// SessionOfNative returns the last run of the thread with an agent's own session.
func (q *Queries) SessionOfNative(ctx context.Context, native string) (domain.Session, error) {
	thread, err := q.store.FindNative(ctx, native)
	if errors.Is(err, store.ErrNotFound) {
		return domain.Session{}, domain.Errorf(domain.KindRunNotFound, "no session of an agent has the id %q", native)
	}
	if err != nil {
		return domain.Session{}, store.Explain(err)
	}
	last, err := q.store.LastRun(ctx, thread)
	if err != nil {
		return domain.Session{}, store.Explain(err)
	}
	return q.ByRun(ctx, last.ID)
}

// Sessions lists runs, the newest first.
func (q *Queries) Sessions(ctx context.Context, f domain.RunFilter) ([]domain.Session, error) {
	overlay := q.unstored()
	list, err := q.store.Sessions(ctx, f)
	if overlay != nil {
		for i := range list {
			overlay(&list[i])
		}
	}
	return list, store.Explain(err)
}

func (q *Queries) unstored() (overlay func(*domain.Session)) {
	if q.Unstored == nil {
		return nil
	}
	return q.Unstored()
}

// Counts returns the number of runs in each state.
func (q *Queries) Counts(ctx context.Context) (domain.Counts, error) {
	c, err := q.store.Counts(ctx)
	return c, store.Explain(err)
}

// Usage returns the usage of runs, and with by also per day, agent, conversation or model.
func (q *Queries) Usage(ctx context.Context, f domain.UsageFilter, by domain.UsageBy, now time.Time) (total domain.Usage, rows []domain.UsageRow, err error) {
	if total, err = q.store.Usage(ctx, f, now); err == nil && by != "" {
		rows, err = q.store.UsageBy(ctx, f, by, now)
	}
	return total, rows, store.Explain(err)
}

// Changes lists the files that a run changed.
func (q *Queries) Changes(ctx context.Context, id string) ([]domain.Change, error) {
	s, err := q.Session(ctx, id)
	if err != nil {
		return nil, err
	}
	list, err := q.store.Changes(ctx, s.Run.ID)
	return list, store.Explain(err)
}

// SessionOf returns the session of a row, such as an approval's or an item's.
func (q *Queries) SessionOf(ctx context.Context, run int64) (domain.Session, error) {
	if s, ok := q.Known(run); ok {
		return s, nil
	}
	return q.ByRun(ctx, run)
}

// RecentPaths returns the directories of threads, the last used first.
func (q *Queries) RecentPaths(ctx context.Context, limit int) ([]domain.RecentPath, error) {
	list, err := q.store.RecentPaths(ctx, limit)
	return list, store.Explain(err)
}

// Known returns a cached session, of which only the ids are current.
func (q *Queries) Known(run int64) (domain.Session, bool) { return q.recent.of(run) }

// Changed drops a cached session that the current transaction has changed.
func (q *Queries) Changed(t store.Tx, run int64) {
	t.AfterCommit(func() { q.recent.drop(run) })
}

// Committed updates cached sessions with committed events; see [store.Options].
func (q *Queries) Committed(events []domain.Event, now store.Reader) {
	for _, e := range events {
		if e.Run == 0 {
			continue
		}
		_, known := q.recent.of(e.Run)
		if known && e.Payload.Kind() != domain.EventRunState {
			continue
		}
		if s, err := now.Session(q.ctx, e.Run); err == nil {
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
