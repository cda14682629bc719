package hub

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/worktree"
)

// This file finishes and deletes what a killed hub left of worktrees.

// tidyWorktrees finishes what a killed hub has begun to do with worktrees, as a landing, and deletes the
// worktrees that no session uses: the killed hub may have created them. One with work stays. It is
// called before the first session begins, and does its work in the background.
func (h *Hub) tidyWorktrees() {
	if h.opts.WorktreesDir == "" {
		return
	}
	entries, _ := os.ReadDir(h.opts.WorktreesDir) // none if it does not exist
	unused := make(map[string]bool)
	for _, e := range entries {
		unused[e.Name()] = !strings.HasPrefix(e.Name(), ".")
	}
	isUnfinished := worktree.IsUnfinished(h.opts.WorktreesDir)
	if len(unused) == 0 && !isUnfinished {
		return
	}
	h.active.Go(func() {
		err := h.everyLeaf(h.ctx, func(s domain.TurnInSession) {
			if top, found := h.Worktree(s.Session.CWD); found {
				unused[filepath.Base(top)] = false
			}
		})
		if err != nil || !isUnfinished && !slices.Contains(slices.Collect(maps.Values(unused)), true) {
			return
		}
		of, err := h.opts.Project.OpenWorktrees(h.ctx, true) // finishes the work
		if err != nil {
			h.log.Warn("the worktrees cannot be tidied", "err", err)
			return
		}
		list, _ := of.List(h.ctx)
		for _, w := range list {
			if unused[w.Name] {
				_, err := of.Discard(h.ctx, w, worktree.DiscardOptions{})
				h.log.Info("a worktree without a session was deleted, unless it has work",
					"dir", w.Top, "err", err)
			}
		}
	})
}
