package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/durable"
	"github.com/duet-rpc/duet-rpc/internal/git"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/worktree"
)

// This file gives new sessions their worktrees.

// wantsWorktree reports whether a new session gets a worktree. asked is false if it gets one
// because of the configuration.
func (h *Hub) wantsWorktree(ctx context.Context, spec LaunchSpec) (wants, asked bool, err error) {
	if spec.Worktree != nil {
		return *spec.Worktree, true, nil
	}
	configured, _ := h.configuredWorktrees(clientenv.IsRestricted(ctx))
	if spec.Chat || cmp.Or(configured.Use, config.WorktreeNever) == config.WorktreeNever {
		return false, false, nil
	}
	if _, in := h.Worktree(spec.CWD); in {
		return false, false, nil
	}
	if spec.SessionAlias != "" {
		_, err := h.store.FindSessionID(ctx, spec.SessionAlias)
		if !errors.Is(err, store.ErrNotFound) {
			return false, false, err // a session that exists
		}
	}
	return true, false, nil
}

// createWorktree creates a worktree for a new session that wants one, and sets its working
// directory. undo deletes the worktree again. Without one that only the configuration wants, without is the
// reason.
func (h *Hub) createWorktree(ctx context.Context, spec *LaunchSpec) (undo func(), without string, err error) {
	undo = func() {}
	wants, asked, err := h.wantsWorktree(ctx, *spec)
	if err != nil || !wants {
		return undo, "", err
	}
	if h.opts.WorktreesDir == "" {
		return undo, "", domain.Errorf(domain.KindWorktree, "this hub makes no worktrees")
	}
	dir, err := git.RealPath(spec.CWD)
	if err != nil {
		return undo, "", err
	}
	below, err := filepath.Rel(h.opts.Root, dir)
	if err != nil || !filepath.IsLocal(below) {
		if !asked {
			return undo, "its directory is not in the project", nil
		}
		return undo, "", domain.Invalid("working_dir",
			"a directory of the project, for a session with a worktree", fmt.Sprintf("%q", spec.CWD))
	}
	spec.wait()
	of, err := h.opts.Project.OpenWorktrees(ctx, !clientenv.IsRestricted(ctx))
	if err != nil {
		if !asked && errors.Is(err, worktree.ErrNoCommit) {
			return undo, err.Error(), nil
		}
		return undo, "", WorktreeError(err)
	}
	used, err := h.usedWorktreeNames(ctx)
	if err != nil {
		return undo, "", err
	}
	w, err := of.Create(ctx, worktreeName(*spec), spec.Base, used...)
	if err != nil {
		return undo, "", WorktreeError(err)
	}
	undo = func() {
		if _, err := of.Discard(context.WithoutCancel(ctx), w, worktree.DiscardOptions{}); err != nil {
			h.log.Warn("the worktree of a refused prompt was not deleted", "dir", w.Top, "err", err)
		}
	}
	cwd := filepath.Join(w.Dir, below)
	info, err := os.Stat(cwd)
	if durable.Unknown(err) {
		undo()
		return func() {}, "", WorktreeError(err)
	}
	if err != nil || !info.IsDir() {
		undo()
		if !asked {
			return func() {}, fmt.Sprintf("%q has no committed files", below), nil
		}
		return undo, "", domain.Invalid("working_dir",
			"a directory with committed files, for a session with a worktree", fmt.Sprintf("%q", below))
	}
	spec.CWD = cwd
	return undo, "", nil
}

// usedWorktreeNames returns the names of the worktrees that sessions have or had. A session
// knows its worktree by the directory alone, so no other one may get the name.
func (h *Hub) usedWorktreeNames(ctx context.Context) (names []string, err error) {
	paths, err := h.store.RecentPaths(ctx, math.MaxInt32)
	for _, p := range paths {
		if top, found := h.Worktree(p.Path); found {
			names = append(names, filepath.Base(top))
		}
	}
	return names, stored(err)
}

// nameWords is how many words of a prompt name a worktree.
const nameWords = 5

// worktreeName returns the title, or the first words of the prompt.
func worktreeName(spec LaunchSpec) string {
	words := strings.Fields(cmp.Or(spec.Title, domain.RequestOf(spec.Prompt)))
	words = words[:min(len(words), nameWords)]
	if spec.Settings.Attempts != "" {
		words = append(words, spec.Agent)
	}
	return strings.Join(words, " ")
}

func (h *Hub) createForTrigger(ctx context.Context, turn domain.Turn, session domain.Session) (domain.Session, error) {
	spec := LaunchSpec{CWD: session.CWD, Title: turn.Title, Prompt: turn.Prompt}
	undo, without, err := h.createWorktree(ctx, &spec)
	if err != nil || spec.CWD == session.CWD {
		if without != "" {
			h.sayInWorktree(turn, noWorktree(without))
		}
		return session, err
	}
	err = h.write(ctx, func(t store.Tx) error {
		now, err := t.Session(ctx, session.ID)
		if err != nil {
			return err
		}
		now.CWD = spec.CWD
		session = now
		return t.UpdateSession(now)
	})
	if err != nil {
		undo()
	}
	return session, err
}

func noWorktree(reason string) string { return "This session has no worktree: " + reason + "." }
