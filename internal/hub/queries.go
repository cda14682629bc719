package hub

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/conversation"
	"github.com/duet-rpc/duet-rpc/internal/store"

	"github.com/duet-rpc/duet-rpc/internal/domain"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// errNoRun says that an id names nothing.
func errNoRun(id string) *domain.Error {
	return domain.Errorf(domain.KindRunNotFound, "no run, session or task has the id %q", id)
}

// find is the run that an id of any kind names, inside a change.
func (h *Hub) find(t store.Tx, id string) (domain.Run, error) {
	n, err := t.Find(h.ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return domain.Run{}, errNoRun(id)
	}
	if err != nil {
		return domain.Run{}, err
	}
	return t.Run(h.ctx, n)
}

// Session is the run that an id of any kind names: a session's, a run's, a
// task's, a thread's (its last run), or the caller's own.
func (h *Hub) Session(ctx context.Context, id string) (domain.Session, error) {
	n, err := h.store.Find(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return domain.Session{}, errNoRun(id)
	}
	if err != nil {
		return domain.Session{}, stored(err)
	}
	return h.session(ctx, n)
}

func (h *Hub) session(ctx context.Context, run int64) (domain.Session, error) {
	s, err := h.store.Session(ctx, run)
	return s, stored(err)
}

// SessionOfNative is the last run of the thread that has an agent's own
// session.
func (h *Hub) SessionOfNative(ctx context.Context, native string) (domain.Session, error) {
	thread, err := h.store.FindNative(ctx, native)
	if errors.Is(err, store.ErrNotFound) {
		return domain.Session{}, domain.Errorf(domain.KindRunNotFound, "no session of an agent has the id %q", native)
	}
	if err != nil {
		return domain.Session{}, stored(err)
	}
	last, err := h.store.LastRun(ctx, thread)
	if err != nil {
		return domain.Session{}, stored(err)
	}
	return h.session(ctx, last.ID)
}

// Sessions lists runs, the newest first.
func (h *Hub) Sessions(ctx context.Context, f domain.RunFilter) ([]domain.Session, error) {
	list, err := h.store.Sessions(ctx, f)
	return list, stored(err)
}

// Counts tells how many runs are in which state.
func (h *Hub) Counts(ctx context.Context) (domain.Counts, error) {
	c, err := h.store.Counts(ctx)
	return c, stored(err)
}

// Output is what the agent of one run said, without the runs before it.
func (h *Hub) Output(ctx context.Context, s domain.Session) (string, error) {
	items, err := h.items(ctx, s.Run.ID)
	if err != nil {
		return "", stored(err)
	}
	var texts []string
	for _, i := range items {
		if i.Kind == domain.ItemMessage && i.Role == "assistant" {
			texts = append(texts, i.Content)
		}
	}
	return strings.Join(texts, "\n\n"), nil
}

// Search finds items by words.
func (h *Hub) Search(ctx context.Context, words string, limit, offset int) ([]domain.Hit, error) {
	hits, err := h.store.Search(ctx, words, limit, offset)
	return hits, stored(err)
}

// Changes lists the files that a run changed.
func (h *Hub) Changes(ctx context.Context, id string) ([]domain.Change, error) {
	s, err := h.Session(ctx, id)
	if err != nil {
		return nil, err
	}
	list, err := h.store.Changes(ctx, s.Run.ID)
	return list, stored(err)
}

// SessionOf is the session of a row, such as an approval's or an item's.
func (h *Hub) SessionOf(ctx context.Context, run int64) (domain.Session, error) {
	if s, ok := h.known(run); ok {
		return s, nil
	}
	return h.session(ctx, run)
}

// RecentPaths are the directories of threads, the last used first.
func (h *Hub) RecentPaths(ctx context.Context, limit int) ([]domain.RecentPath, error) {
	list, err := h.store.RecentPaths(ctx, limit)
	return list, stored(err)
}

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
		run, err := h.find(t, p.TaskID)
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

// known is a session from memory, where only its ids matter.
func (h *Hub) known(run int64) (domain.Session, bool) { return h.sessions.of(run) }

// remember keeps a session in memory for its ids.
func (h *Hub) remember(s domain.Session) { h.sessions.keep(s) }

// forget drops what is in memory of a session that changes.
func (h *Hub) forget(t store.Tx, run int64) {
	t.AfterCommit(func() { h.sessions.drop(run) })
}
