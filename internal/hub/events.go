package hub

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/approval"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/eventlog"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/store/health"
)

// Events is the log of what happens.
func (h *Hub) Events() *eventlog.Log { return h.events }

func (h *Hub) newEvents(ctx context.Context) *eventlog.Log {
	return eventlog.New(ctx, eventlog.Options{Runs: logged{h}, Questions: logged{h}, Damaged: h.health.Damaged, Issue: health.TextDamaged, Logger: h.log})
}

// committed is called by the store's writer after each commit.
func (h *Hub) committed(events []domain.Event) {
	h.query.Committed(events)
	h.events.Append(events)
}

// logged is what the log asks of the hub.
type logged struct{ hub *Hub }

// SessionOf implements eventlog.Runs.
func (l logged) SessionOf(ctx context.Context, run int64) (domain.Session, error) {
	return l.hub.query.SessionOf(ctx, run)
}

// Scope implements eventlog.Runs.
func (l logged) Scope(ctx context.Context, id string) (run, thread int64, err error) {
	s, err := l.hub.query.Session(ctx, id)
	if err != nil {
		return 0, 0, err
	}
	whole, err := l.hub.store.NamesThread(ctx, id)
	if err != nil {
		return 0, 0, stored(err)
	}
	if whole { // whatever runs it will have
		return 0, s.Thread.ID, nil
	}
	return s.Run.ID, 0, nil
}

// Pending implements eventlog.Questions.
func (l logged) Pending(ctx context.Context, run int64) ([]domain.Event, error) {
	pending, err := l.hub.store.PendingApprovals(ctx, run)
	var events []domain.Event
	unread := func(message string) {
		events = append(events, domain.Event{Payload: domain.LogDamaged{Message: message}})
	}
	if store.IsDamaged(err) {
		unread("not all questions that wait for an answer can be read")
	} else if err != nil {
		return nil, err
	}
	for _, a := range pending {
		run, err := l.hub.store.Run(ctx, a.Run)
		if store.IsDamaged(err) {
			unread("the session of a question that waits for an answer cannot be read")
			continue
		}
		if err != nil {
			return nil, err
		}
		thread, err := l.hub.store.Thread(ctx, a.Thread)
		if err != nil && !store.IsDamaged(err) { // then it has no preview of a rule
			return nil, err
		}
		e := run.Event(approval.Requested(a, thread.CWD))
		e.Time = a.Created
		events = append(events, e)
	}
	return events, nil
}

// A publisher tells subscribers of events that the log does not keep.
type publisher struct{ hub *Hub }

func (p publisher) Publish(e domain.Event) int {
	return p.hub.events.Publish(e)
}
