package hub

import (
	"context"
	"errors"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// This file deletes sessions.

// removalMemory is the state about sessions outside the store.
type removalMemory struct {
	// Turns drops the cached turn when the transaction commits.
	Turns interface{ Changed(t store.Tx, turn int64) }
	// Log drops its cache, so that it reads from the store again.
	Log interface{ Forget() }
}

// RemovedSession reports what was deleted.
type RemovedSession struct {
	Session string // its id
	Deleted int    // number of deleted turns
	Kept    int    // number of turns kept for forks

	Worktree string // the top of the session's worktree if it stays
}

// removalChange returns [removeSession] as a store transaction; the result goes to r.
func removalChange(ctx context.Context, id string, memory removalMemory, r *RemovedSession) func(store.Tx) error {
	return func(t store.Tx) (err error) {
		*r, err = removeSession(ctx, t, id, memory)
		return err
	}
}

// removeSession deletes the session that an id of any kind names, with everything that
// only it uses: items, questions, attachments, rules, earlier file contents, ids. The shared
// beginning of forks stays and is archived. The log keeps its numbers: entries of deleted turns are
// erased in place, and one event announces the deletion. A turn that has not ended causes an error
// of domain.KindBadState; drafts are deleted.
func removeSession(
	ctx context.Context, t store.Tx, id string, memory removalMemory,
) (RemovedSession, error) {
	n, err := t.FindSession(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return RemovedSession{}, domain.Errorf(domain.KindTurnNotFound, "no session or turn has the id %q",
			id)
	}
	if err != nil {
		return RemovedSession{}, err
	}
	session, err := t.Session(ctx, n)
	if err != nil {
		return RemovedSession{}, err
	}
	turns, err := t.TurnsOfSession(ctx, n, 0)
	if err != nil {
		return RemovedSession{}, err
	}
	forked, err := t.ForkedUpTo(ctx, n)
	if err != nil {
		return RemovedSession{}, err
	}
	gone := domain.SessionDeleted{SessionUUID: session.UUID}
	for _, turn := range turns {
		switch {
		case turn.ID <= forked:
			gone.Kept++
		case !turn.State.Ended() && turn.State != domain.Draft:
			return RemovedSession{}, domain.Errorf(domain.KindBadState,
				"%s is %s: interrupt it before you delete its session", turn.Label(),
				turn.State.Words())
		default:
			gone.Turns = append(gone.Turns, turn.Ref())
			memory.Turns.Changed(t, turn.ID)
		}
	}
	after := int64(0)
	if gone.Kept > 0 {
		after = forked
		session.Archived = true
		if err := t.UpdateSession(session); err != nil {
			return RemovedSession{}, err
		}
	}
	if err := t.DeleteTurns(n, after); err != nil {
		return RemovedSession{}, err
	}
	if _, err := t.Append(domain.Event{Session: n, Payload: gone}); err != nil {
		return RemovedSession{}, err
	}
	t.AfterCommit(memory.Log.Forget)
	return RemovedSession{Session: session.UUID, Deleted: len(gone.Turns), Kept: gone.Kept}, nil
}
