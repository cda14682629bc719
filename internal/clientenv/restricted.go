package clientenv

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// This file marks requests of clients that do not trust the workspace, and
// the runs that come of them.
//
// Such a client is an editor in a restricted mode. For its runs nothing that the
// project's file defines is run or heeded, even where the user has trusted that file
// elsewhere. A run keeps the mark: it may wait, and outlive its client.

type restrictedKey struct{}

// Restrict returns a context for a client that does not trust the workspace.
func Restrict(ctx context.Context) context.Context {
	return context.WithValue(ctx, restrictedKey{}, true)
}

// IsRestricted reports whether ctx is one of [Restrict].
func IsRestricted(ctx context.Context) bool { return ctx.Value(restrictedKey{}) != nil }

// Carry restricts a run that comes of ctx, where that is restricted.
func Carry(ctx context.Context, run *domain.Run) {
	run.Restricted = run.Restricted || IsRestricted(ctx)
}
