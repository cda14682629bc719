// Package restricted marks requests of clients that do not trust the workspace, and
// the runs that come of them.
//
// Such a client is an editor in a restricted mode. For its runs nothing that the
// project's file defines is run or heeded, even where the user has trusted that file
// elsewhere. A run keeps the mark: it may wait, and outlive its client.
package restricted

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

type key struct{}

// Context returns a context for a client that does not trust the workspace.
func Context(ctx context.Context) context.Context {
	return context.WithValue(ctx, key{}, true)
}

// Is reports whether ctx is one of [Context].
func Is(ctx context.Context) bool { return ctx.Value(key{}) != nil }

// Carry restricts a run that comes of ctx, where that is restricted.
func Carry(ctx context.Context, run *domain.Run) {
	run.Restricted = run.Restricted || Is(ctx)
}
