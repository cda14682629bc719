package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/query"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/transcript"
	"github.com/duet-rpc/duet-rpc/internal/worktree"
)

// This file lands, discards and removes the worktrees of sessions.

// LandSpec says how the worktree of a session is landed.
type LandSpec struct {
	Turn    string // any id of the session
	Into    string // the branch; "": the one that was checked out when the worktree was made
	Method  worktree.Method
	Message string // of the commit; "": a plain one
}

// Land brings the changes in the worktree of a session to a branch. It changes nothing if it fails.
//
// The error is a *domain.Error: KindBadState while a session works in the worktree or another
// git operation is in progress, KindNoWorktree, KindConflict and KindOverlap with the paths in
// Paths, or KindWorktree.
func (h *Hub) Land(ctx context.Context, spec LandSpec) (worktree.Landed, error) {
	w, err := h.findWorktree(ctx, spec.Turn)
	if err != nil {
		return worktree.Landed{}, err
	}
	if cmp.Or(spec.Into, w.Into) == "" && spec.Method != worktree.Patch {
		return worktree.Landed{}, domain.Invalid("into",
			"the branch to land on, since none was checked out when the worktree was made", "none")
	}
	landed, err := w.of.Land(ctx, w.Worktree,
		worktree.LandOptions{Method: spec.Method, Message: spec.Message, Into: spec.Into, Session: w.turn.Session.UUID})
	if err != nil {
		return landed, WorktreeError(err)
	}
	if len(landed.Files)+len(landed.Commits) == 0 {
		return landed, nil
	}
	text := fmt.Sprintf("Landed %s on %s: %s, %s.", w.Branch, landed.Into, counted(len(landed.Commits), "commit"),
		counted(len(landed.Files), "file"))
	if spec.Method == worktree.Patch {
		text = fmt.Sprintf("Landed %s without a commit: %s changed in %s.",
			w.Branch, counted(len(landed.Files), "file"), h.opts.Root)
	}
	if n := landed.Unfiltered.Count; n > 0 {
		text += fmt.Sprintf(" Committed without the filter that .gitattributes names: %s.", counted(n, "file"))
	}
	return landed, h.noteWorktree(ctx, w.turn.Session.ID, text)
}

// A SavedWorktree is the result of [Hub.SaveWorktree].
type SavedWorktree struct {
	worktree.Saved
	Name string // of the worktree
}

// SaveWorktree makes a commit of the files in the worktree of a session, for a fetch by another machine: see
// [worktree.Repository.Save]. The error is as that of [Hub.Land].
func (h *Hub) SaveWorktree(ctx context.Context, id string, by worktree.Author, landed string) (s SavedWorktree, err error) {
	w, err := h.findWorktree(ctx, id)
	if err != nil {
		return s, err
	}
	s.Name = w.Name
	s.Saved, err = w.of.Save(ctx, w.Worktree, w.turn.Session.UUID, by, landed)
	if err != nil {
		return s, WorktreeError(err)
	}
	return s, nil
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// noteWorktree says in the transcript what was done with its worktree.
func (h *Hub) noteWorktree(ctx context.Context, session int64, text string) error {
	return h.write(ctx, func(t store.Tx) error {
		last, err := t.LastTurn(ctx, session)
		if errors.Is(err, store.ErrNotFound) {
			return nil // a session of drafts has no transcript
		}
		if err != nil {
			return err
		}
		return h.transcript.Note(t, last, transcript.NoteWorktree, text)
	})
}

// A DiscardedWorktree is the result of [Hub.DiscardWorktree].
type DiscardedWorktree struct {
	worktree.Discarded
	CleanupError string // of the configured command; ""
}

// DiscardWorktree deletes the worktree of a session, and its branch. Without force, the error is
// a *domain.Error of KindLosses with a *[worktree.LossError] if work would be lost. With force that
// work is kept in a ref first.
func (h *Hub) DiscardWorktree(ctx context.Context, id string, force bool) (DiscardedWorktree, error) {
	w, err := h.findWorktree(ctx, id)
	if err != nil {
		return DiscardedWorktree{}, err
	}
	done, err := h.discard(ctx, w, force)
	if err != nil {
		return done, WorktreeError(err)
	}
	text := fmt.Sprintf("The worktree of %s was discarded.", w.Branch)
	if done.CleanupError != "" {
		text += " Its cleanup failed: " + done.CleanupError
	}
	if done.Ref != "" {
		text += fmt.Sprintf(" Its work is kept: git branch NAME %s brings it back.", done.Ref)
	}
	return done, h.noteWorktree(ctx, w.turn.Session.ID, text)
}

// discard deletes a worktree, with the checkpoints of its directories. A prompt that comes meanwhile
// waits, and then finds no worktree: the cleanup command may take long.
func (h *Hub) discard(ctx context.Context, w worktreeOf, force bool) (done DiscardedWorktree, err error) {
	top, _ := h.Worktree(w.turn.Session.CWD)
	prepared, of := false, h.prepared.of(top)
	select {
	case prepared = <-of:
	case <-ctx.Done():
		return done, ctx.Err()
	}
	defer func() { of <- prepared }()
	if err := h.checkIdle(ctx, top); err != nil {
		return done, err
	}
	if !force {
		losses, err := w.of.Losses(ctx, w.Worktree)
		if err != nil {
			return done, err
		}
		if losses.Any() {
			return done, &worktree.LossError{Losses: losses}
		}
	}
	sessions, err := h.sessionsIn(ctx, top)
	if err != nil {
		return done, err
	}
	for _, session := range append(sessions, w.turn.Session) { // the session may be deleted already
		h.checkpoints.forget(ctx, session.CWD)
	}
	opts := worktree.DiscardOptions{Force: force, Session: w.turn.Session.UUID}
	configured, _ := h.configuredWorktrees(clientenv.IsRestricted(ctx))
	if _, err := os.Stat(w.Dir); err == nil && configured.Cleanup != nil {
		opts.Cleanup = func(ctx context.Context) {
			if err := h.runInWorktree(ctx, configured.Cleanup, w.Dir, configured.Timeout); err != nil {
				done.CleanupError = err.Error()
				h.log.Warn("the cleanup of a worktree failed", "dir", w.Top, "err", err)
			}
		}
	}
	done.Discarded, err = w.of.Discard(ctx, w.Worktree, opts)
	if err == nil {
		prepared = false
		h.prepared.forget(top)
	}
	return done, err
}

// A removedWorktree is the worktree of a session that is deleted.
type removedWorktree struct {
	top string // "": there is none
	worktreeOf
}

// worktreeToRemove returns the worktree that is deleted with a session. Its error is of
// KindLosses if work would be lost. A worktree that another session uses, or that git cannot
// open, has no name; it stays.
func (h *Hub) worktreeToRemove(ctx context.Context, id string) (r removedWorktree, err error) {
	n, err := h.store.FindSession(ctx, id)
	if err != nil || h.opts.WorktreesDir == "" {
		return r, nil // removeSession reports an unknown id
	}
	session, err := h.store.Session(ctx, n)
	if err != nil {
		return r, stored(err)
	}
	top, found := h.Worktree(session.CWD)
	if !found || h.lostWorktree(session) {
		return r, nil
	}
	r.top = top
	sessions, err := h.sessionsIn(ctx, top)
	if err != nil || slices.ContainsFunc(sessions, func(other domain.Session) bool { return other.ID != session.ID }) {
		return r, err
	}
	var losses worktree.Losses
	if r.worktreeOf, err = h.findWorktree(ctx, id); err == nil {
		losses, err = r.of.Losses(ctx, r.Worktree)
	}
	number := r.turn.Session.ID
	var known *domain.Error
	switch {
	case errors.As(err, &known) && known.Kind == domain.KindBadState:
		return r, err
	case err != nil:
		h.log.Warn("the worktree of a deleted session stays", "dir", top, "err", err)
		r.Name = ""
	case losses.Any():
		return r, &domain.Error{Kind: domain.KindLosses, Err: &worktree.LossError{Losses: losses}, Message: fmt.Sprintf(
			"%s has work that is not landed: run `duet-rpc land %d` or `duet-rpc discard %d` first",
			r.Branch, number, number)}
	}
	return r, nil
}

// removeWorktree deletes the worktree of a deleted session unless work would be lost, and reports
// whether it is gone.
func (h *Hub) removeWorktree(ctx context.Context, r removedWorktree) bool {
	if r.Name == "" {
		return false
	}
	_, err := h.discard(context.WithoutCancel(ctx), r.worktreeOf, false)
	if err != nil {
		h.log.Warn("the worktree of a deleted session stays", "dir", r.top, "err", err)
	}
	return err == nil
}

// sessionsIn returns the sessions that work in a worktree: a fork shares it.
func (h *Hub) sessionsIn(ctx context.Context, top string) (list []domain.Session, err error) {
	err = h.everyLeaf(ctx, func(s domain.TurnInSession) {
		if other, _ := h.Worktree(s.Session.CWD); other == top {
			list = append(list, s.Session)
		}
	})
	return list, err
}

// everyLeaf calls a function with the last turn of each session.
func (h *Hub) everyLeaf(ctx context.Context, call func(domain.TurnInSession)) error {
	for f := (domain.TurnFilter{Leaves: true}); ; {
		turns, err := h.store.TurnsInSessions(ctx, f)
		if err != nil || len(turns) == 0 {
			return stored(err)
		}
		for _, s := range turns {
			call(s)
		}
		f.Before = turns[len(turns)-1].Turn.ID
	}
}

// A worktreeOf is a worktree and one of its sessions.
type worktreeOf struct {
	worktree.Worktree
	of   Worktrees
	turn domain.TurnInSession
}

// findWorktree returns the worktree of the session with a turn. No session may work in it.
func (h *Hub) findWorktree(ctx context.Context, id string) (w worktreeOf, err error) {
	turn, err := query.Find(ctx, h.store, id)
	if err == nil {
		w.turn, err = h.query.ByTurn(ctx, turn.ID)
	}
	if err != nil {
		return w, stored(err)
	}
	top, found := h.Worktree(w.turn.Session.CWD)
	if !found {
		return w, domain.Errorf(domain.KindNoWorktree, "%s has no worktree: its agent works in %s",
			turn.Label(), w.turn.Session.CWD)
	}
	if err := h.checkIdle(ctx, top); err != nil {
		return w, err
	}
	w.of, w.Worktree, err = h.openWorktree(ctx, top, !clientenv.IsRestricted(ctx))
	return w, err
}

// checkIdle returns an error if a session works in a worktree, or waits to.
func (h *Hub) checkIdle(ctx context.Context, top string) error {
	turns, err := h.store.TurnsIn(ctx, domain.Queued, domain.Starting, domain.Running, domain.WaitingInput,
		domain.Interrupting)
	if err != nil {
		return stored(err)
	}
	for _, turn := range turns {
		session, err := h.store.Session(ctx, turn.Session)
		if err != nil {
			return stored(err)
		}
		if other, _ := h.Worktree(session.CWD); other == top {
			return domain.Errorf(domain.KindBadState,
				"%s is %s and works in the worktree: wait for its end or interrupt it", turn.Label(),
				turn.State.Words())
		}
	}
	return nil
}
