package hub

import (
	"context"
	"fmt"
	"slices"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/query"
)

// Query answers what is asked about sessions and conversations.
func (h *Hub) Query() *query.Queries { return h.query }

// Issues lists what is wrong, and what to do, without waiting. It is empty if all is well.
func (h *Hub) Issues() []string {
	issues := h.health.Issues()
	if h.opts.Replaced == nil {
		return issues
	}
	if at := h.opts.Replaced(); !at.IsZero() {
		issues = append(issues, fmt.Sprintf("the project's directory is not the one from before %s, so rules, trust and answers from before do not count; `duet-rpc projects keep` lets them count again", at.Local().Format("2006-01-02 15:04")))
	}
	return issues
}

// Status tells what the hub is doing.
func (h *Hub) Status(ctx context.Context) (Status, error) {
	s := Status{Started: h.started, MaxRuns: h.opts.Limits.MaxRuns, Executors: h.executors.Count(), Issues: h.Issues(), Database: h.store.Path(), LastSeq: h.events.Last()}
	var err error
	if s.Counts, err = h.store.Counts(ctx); err != nil {
		return s, stored(err)
	}
	if s.Running, err = h.store.Sessions(ctx, domain.RunFilter{States: []domain.State{domain.Starting, domain.Running, domain.WaitingInput, domain.Interrupting}, Limit: 100}); err != nil {
		return s, stored(err)
	}
	if s.Queued, err = h.store.Sessions(ctx, domain.RunFilter{States: []domain.State{domain.Queued}, Limit: 100}); err != nil {
		return s, stored(err)
	}
	slices.SortStableFunc(s.Queued, func(a, b domain.Session) int {
		if a.Priority != b.Priority {
			return b.Priority - a.Priority
		}
		return int(a.Run.ID - b.Run.ID)
	})
	pending, err := h.store.PendingApprovals(ctx, 0)
	s.Pending = len(pending)
	return s, stored(err)
}
