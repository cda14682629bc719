package hub

import (
	"context"
	"errors"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// This file deletes conversations.

// removalMemory is the state about conversations outside the store.
type removalMemory struct {
	// Runs drops the cached run when the transaction commits.
	Runs interface{ Changed(t store.Tx, run int64) }
	// Log drops its cache, so that it reads from the store again.
	Log interface{ Forget() }
}

// RemovedConversation reports what was deleted.
type RemovedConversation struct {
	Thread  string // its id
	Deleted int    // number of deleted runs
	Kept    int    // number of runs kept for forks

	Worktree string // the top of the conversation's worktree if it stays
}

// removalChange returns [removalConversation] as a store transaction; the result goes to r.
func removalChange(ctx context.Context, id string, memory removalMemory, r *RemovedConversation) func(store.Tx) error {
	return func(t store.Tx) (err error) {
		*r, err = removalConversation(ctx, t, id, memory)
		return err
	}
}

// removalConversation deletes the conversation that an id of any kind names, with everything that
// only it uses: items, questions, attachments, rules, earlier file contents, ids. The shared
// beginning of forks stays and is archived. The log keeps its numbers: entries of deleted runs are
// erased in place, and one event announces the deletion. A run that has not ended causes an error
// of domain.KindBadState; drafts are deleted.
func removalConversation(ctx context.Context, t store.Tx, id string, memory removalMemory) (RemovedConversation, error) {
	n, err := t.FindThread(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return RemovedConversation{}, domain.Errorf(domain.KindRunNotFound, "no run, session or task has the id %q", id)
	}
	if err != nil {
		return RemovedConversation{}, err
	}
	thread, err := t.Thread(ctx, n)
	if err != nil {
		return RemovedConversation{}, err
	}
	runs, err := t.RunsOfThread(ctx, n, 0)
	if err != nil {
		return RemovedConversation{}, err
	}
	forked, err := t.ForkedUpTo(ctx, n)
	if err != nil {
		return RemovedConversation{}, err
	}
	gone := domain.ThreadDeleted{ThreadUUID: thread.UUID}
	for _, run := range runs {
		switch {
		case run.ID <= forked:
			gone.Kept++
		case !run.State.Ended() && run.State != domain.Draft:
			return RemovedConversation{}, domain.Errorf(domain.KindBadState, "%s is %s: interrupt it before you delete its conversation", domain.TaskName(run.Task), run.State.Words())
		default:
			gone.Runs = append(gone.Runs, run.Ref())
			memory.Runs.Changed(t, run.ID)
		}
	}
	after := int64(0)
	if gone.Kept > 0 {
		after = forked
		thread.Archived = true
		if err := t.UpdateThread(thread); err != nil {
			return RemovedConversation{}, err
		}
	}
	if err := t.DeleteRuns(n, after); err != nil {
		return RemovedConversation{}, err
	}
	if _, err := t.Append(domain.Event{Thread: n, Payload: gone}); err != nil {
		return RemovedConversation{}, err
	}
	t.AfterCommit(memory.Log.Forget)
	return RemovedConversation{Thread: thread.UUID, Deleted: len(gone.Runs), Kept: gone.Kept}, nil
}
