package clientenv

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// This file marks requests of clients that do not trust the workspace, and the runs that they
// launch.
//
// Such a client is an editor in a restricted mode. Its runs ignore everything that the project's
// file defines, even if the user has trusted that file elsewhere. A run keeps the mark: it may
// wait, and outlive its client.

type restrictedKey struct{}

// Restrict returns a context for a client that does not trust the workspace.
func Restrict(ctx context.Context) context.Context {
	return context.WithValue(ctx, restrictedKey{}, true)
}

// IsRestricted reports whether ctx comes from [Restrict].
func IsRestricted(ctx context.Context) bool { return ctx.Value(restrictedKey{}) != nil }

// Carry restricts a run if ctx is restricted.
func Carry(ctx context.Context, run *domain.Run) {
	run.Restricted = run.Restricted || IsRestricted(ctx)
}
