package hub

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/eventlog"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

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
