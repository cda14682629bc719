package handlers

import (
	"cmp"
	"context"
	"errors"
	"os"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/internal/worktree"
	"github.com/duet-rpc/duet-rpc/server"
)

// worktreeOf describes the worktree of a conversation without a git process, or returns nil.
func worktreeOf(h *hub.Hub, of domain.Thread) *protocol.WorktreeState {
	top, found := h.Worktree(of.CWD)
	if !found {
		return nil
	}
	_, err := os.Lstat(top)
	return &protocol.WorktreeState{Branch: worktree.BranchOf(top), Dir: top, Gone: errors.Is(err, os.ErrNotExist)}
}

func land(ctx context.Context, h *hub.Hub, p protocol.LandParams) (protocol.LandResult, error) {
	landed, err := h.Land(ctx, hub.LandSpec{Run: p.SessionID, Method: worktree.Method(cmp.Or(p.Method, "merge")), Into: p.Into, Message: p.Message})
	r := protocol.LandResult{Branch: landed.Into, Commits: append([]string{}, landed.Commits...), Files: append([]string{}, landed.Files...), Nested: landed.Nested}
	for encodedSize(r.Files) > room(ctx)/2 {
		r.Files = r.Files[:len(r.Files)/2]
		r.More = len(landed.Files) - len(r.Files)
	}
	return r, withPaths(err)
}

func discard(ctx context.Context, h *hub.Hub, p protocol.DiscardParams) (protocol.DiscardResult, error) {
	done, err := h.DiscardWorktree(ctx, p.SessionID, p.Force)
	return protocol.DiscardResult{Ref: done.Ref, BranchKept: done.BranchKept, Cleanup: done.CleanupError}, withLosses(err)
}

const pathsInError = 200

// withPaths adds the paths to the error of a landing.
func withPaths(err error) error {
	var conflict *worktree.ConflictError
	var overlap *worktree.OverlapError
	var paths []string
	switch {
	case errors.As(err, &conflict):
		for _, c := range conflict.Conflicts {
			paths = append(paths, c.Path)
		}
	case errors.As(err, &overlap):
		paths = overlap.Paths
	}
	shown := min(len(paths), pathsInError)
	return withData(err, protocol.WorktreeError{Paths: paths[:shown], More: len(paths) - shown})
}

// withLosses adds what would be lost to an error.
func withLosses(err error) error {
	var loss *worktree.LossError
	if !errors.As(err, &loss) {
		return err
	}
	l := loss.Losses
	return withData(err, protocol.WorktreeError{Losses: &protocol.Losses{
		Commits: listing(l.Commits), Uncommitted: listing(l.Uncommitted), Untracked: listing(l.Untracked), Nested: listing(l.Nested), Ignored: listing(l.Ignored),
	}})
}

func listing(l worktree.Listing) *protocol.Listing {
	if l.Count == 0 {
		return nil
	}
	return &protocol.Listing{Count: l.Count, First: l.First}
}

func withData(err error, data protocol.WorktreeError) error {
	var e *domain.Error
	if !errors.As(err, &e) || len(data.Paths) == 0 && data.Losses == nil {
		return err
	}
	data.Kind = e.Kind
	return answer{server.NewError(jsonrpc2.CodeInternalError, "Internal error: "+e.Message, data), e.Err}
}
