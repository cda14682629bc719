package hub

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/transcript"
	"github.com/duet-rpc/duet-rpc/internal/worktree"
)

// This file finds and opens worktrees.

// Worktrees are the git worktrees of a project; see [worktree.Repository].
type Worktrees interface {
	Create(ctx context.Context, name, base string, taken ...string) (worktree.Worktree, error)
	List(ctx context.Context) ([]worktree.Worktree, error)
	Prepare(
		ctx context.Context, w worktree.Worktree, patterns []string, setup func(context.Context) error,
	) (worktree.Copies, error)
	Renew(ctx context.Context, w worktree.Worktree) (bool, error)
	Changes(ctx context.Context, w worktree.Worktree, patch int) (worktree.Changes, error)
	Land(ctx context.Context, w worktree.Worktree, opts worktree.LandOptions) (worktree.Landed, error)
	Save(ctx context.Context, w worktree.Worktree, id string, by worktree.Author, landed string) (worktree.Saved, error)
	Losses(ctx context.Context, w worktree.Worktree) (worktree.Losses, error)
	Discard(ctx context.Context, w worktree.Worktree, opts worktree.DiscardOptions) (worktree.Discarded, error)
}

// Worktree returns the top of the worktree that a directory or file is in. The worktree may be gone.
func (h *Hub) Worktree(path string) (top string, found bool) {
	if h.opts.WorktreesDir == "" {
		return "", false
	}
	return worktree.Containing(h.opts.WorktreesDir, path)
}

// rootOf returns the directory that limits a session which works in dir: the top of its
// worktree, or the project's root.
func (h *Hub) rootOf(dir string) string {
	top, _ := h.Worktree(dir)
	return cmp.Or(top, h.opts.Root)
}

// checkWorktree returns an error if the session had a worktree that is gone.
func (h *Hub) checkWorktree(t store.Tx, session domain.Session) error {
	if !h.lostWorktree(session) {
		return nil
	}
	last, err := t.LastTurn(h.ctx, session.ID)
	if err != nil {
		return err
	}
	return domain.Errorf(domain.KindNoWorktree,
		"the worktree of this session is gone (%s): `duet-rpc prompt --fork %s TEXT` continues it in the project's directory",
		h.rootOf(session.CWD), last.Label())
}

// lostWorktree reports whether the session had a worktree that is gone.
func (h *Hub) lostWorktree(session domain.Session) bool {
	top, found := h.Worktree(session.CWD)
	if !found {
		return false
	}
	_, err := os.Lstat(top)
	return errors.Is(err, os.ErrNotExist)
}

// configuredWorktrees returns how worktrees are used and prepared. waits reports that a file configures
// more, and is not trusted.
func (h *Hub) configuredWorktrees(restricted bool) (w config.Worktrees, waits bool) {
	never := config.Worktrees{Use: config.WorktreeNever}
	if h.opts.WorktreesDir == "" {
		return never, false
	}
	now, err := h.opts.Configuration.Current(restricted)
	if now == nil {
		h.log.Warn("worktrees are not used as configured", "err", err)
		return never, false
	}
	return now.Worktrees, now.WorktreesWait
}

// sayInWorktree tells the readers of a session about its worktree, before a turn.
func (h *Hub) sayInWorktree(turn domain.Turn, text string) {
	err := h.write(h.ctx, func(t store.Tx) error {
		return h.transcript.Note(t, turn, transcript.NoteWorktree, text)
	})
	if err != nil && h.ctx.Err() == nil {
		h.log.Warn("a note about a worktree was not stored", "text", text, "err", err)
	}
}

// openWorktree returns the worktree with a top.
func (h *Hub) openWorktree(
	ctx context.Context, top string, trusts bool,
) (of Worktrees, w worktree.Worktree, err error) {
	if of, err = h.opts.Project.OpenWorktrees(ctx, trusts); err != nil {
		return of, w, WorktreeError(err)
	}
	list, err := of.List(ctx)
	if err != nil {
		return of, w, WorktreeError(err)
	}
	i := slices.IndexFunc(list, func(one worktree.Worktree) bool { return one.Name == filepath.Base(top) })
	switch {
	case i >= 0 && list[i].Top != top:
		return of, w, domain.Errorf(domain.KindNoWorktree,
			"the worktree was moved: `git worktree move %s %s` brings it back", list[i].Top, top)
	case i < 0:
		return of, w, domain.Errorf(domain.KindNoWorktree,
			"the worktree no longer exists (%s); git for-each-ref refs/duet/discarded lists the work that was kept",
			top)
	}
	return of, list[i], nil
}

// WorktreeError returns an error of package worktree for clients.
func WorktreeError(err error) error {
	var conflict *worktree.ConflictError
	var overlap *worktree.OverlapError
	var loss *worktree.LossError
	var busy *worktree.BusyError
	var known *domain.Error
	kind := domain.KindWorktree
	switch {
	case errors.As(err, &known):
		return err
	case errors.As(err, &conflict):
		kind = domain.KindConflict
	case errors.As(err, &overlap):
		kind = domain.KindOverlap
	case errors.As(err, &loss):
		kind = domain.KindLosses
	case errors.As(err, &busy):
		kind = domain.KindBadState
	case errors.Is(err, worktree.ErrGone):
		kind = domain.KindNoWorktree
	case errors.Is(err, context.Canceled):
		return err
	}
	return &domain.Error{Kind: kind, Message: err.Error(), Err: err}
}
