package hub

import (
	"context"
	"slices"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/conversation"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/query"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// Query answers what is asked about sessions and conversations.
func (h *Hub) Query() *query.Queries { return h.query }

// CreateMessage puts a message of an executor into the conversation that its
// token is good for.
func (h *Hub) CreateMessage(ctx context.Context, p catalog.CreateMessageParams) (catalog.CreateMessageResult, error) {
	token, err := h.tokens.Find(p.SessionToken)
	if err != nil {
		return catalog.CreateMessageResult{}, err
	}
	h.intake.EndMessage(token.Run)
	p.Message.Content = h.keys.Of(token.Thread).JSON(p.Message.Content)
	return h.AddMessage(ctx, p)
}

// AddMessage is CreateMessage for clients of our own user, who need no token.
func (h *Hub) AddMessage(ctx context.Context, p catalog.CreateMessageParams) (catalog.CreateMessageResult, error) {
	if err := h.CheckTokenOf(ctx, p.SessionToken, p.TaskID); err != nil {
		return catalog.CreateMessageResult{}, err
	}
	if p.Message.Role != "user" && p.Message.Role != "assistant" {
		return catalog.CreateMessageResult{}, domain.Invalid("message.role", "a role", p.Message.Role, "user", "assistant")
	}
	var item domain.Item
	err := h.write(ctx, func(t store.Tx) error {
		run, err := find(h.ctx, t, p.TaskID)
		if err != nil {
			return err
		}
		item, err = h.conversation.Message(t, &run, p.Message.Role, conversation.TextOf(p.Message.Content), p.Message.Type)
		return err
	})
	if err != nil { // the change may still be under way, if ctx has ended
		return catalog.CreateMessageResult{}, err
	}
	return catalog.CreateMessageResult{MessageID: item.Key, CreatedAt: item.Created.UTC().Format(time.RFC3339Nano)}, nil
}

// Status tells what the hub is doing.
func (h *Hub) Status(ctx context.Context) (Status, error) {
	s := Status{Started: h.started, MaxRuns: h.opts.Limits.MaxRuns, Executors: h.executors.Count(), Issues: h.health.Issues(), Database: h.store.Path(), LastSeq: h.events.Last()}
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
