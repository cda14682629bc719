// Package restricted carries whether somebody who asks for work trusts the
// workspace: on the context of a request, and on the runs that come of it.
//
// An editor in a restricted mode does not. For what it launches nothing that the
// project's file defines is run or heeded, even where the user has trusted that
// file elsewhere.
package restricted

import (
	"context"
	"encoding/json"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

type key struct{}

// Context is a context of somebody who does not trust the workspace.
func Context(ctx context.Context) context.Context {
	return context.WithValue(ctx, key{}, true)
}

// Is reports whether ctx is one of [Context].
func Is(ctx context.Context) bool { return ctx.Value(key{}) != nil }

// member of a run's metadata is false where the run is restricted. It is kept
// with the run, which may wait, and outlive whoever launched it.
const member = "workspace_trusted"

// Mark marks a run, which is not kept yet, as one of somebody who does
// not trust the workspace.
func Mark(run *domain.Run) {
	var members map[string]json.RawMessage
	_ = json.Unmarshal(run.Metadata, &members) // absent, null, or an object
	if members == nil {
		members = make(map[string]json.RawMessage)
	}
	members[member] = json.RawMessage("false")
	run.Metadata, _ = json.Marshal(members) // it was read as JSON a moment ago
}

// Carry marks a run that comes of ctx, where that is restricted.
func Carry(ctx context.Context, run *domain.Run) {
	if Is(ctx) {
		Mark(run)
	}
}

// Marked reports whether a run is marked by [Mark].
func Marked(run domain.Run) bool {
	var members map[string]json.RawMessage
	return json.Unmarshal(run.Metadata, &members) == nil && string(members[member]) == "false"
}
