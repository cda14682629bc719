package acp

import (
	"slices"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// copilotAsks reports whether Copilot asks in a mode: in "agent", unless its option allow_all is on.
// The ids of its modes are URLs. codex has a mode with the plain id "agent" that does not ask.
func copilotAsks(now catalog.Session, id string) bool {
	all := slices.IndexFunc(now.Options, func(o catalog.Option) bool { return o.ID == "allow_all" })
	return catalog.ModeName(id) == "agent" && id != "agent" && (all < 0 || now.Options[all].Current != "on")
}
