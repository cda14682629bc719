package approval

import (
	"cmp"
	"slices"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// mode is the permission mode that a call is judged by (docs/protocol.md, "Modes").
// It is the one that the agent says it is in, as far as people have asked for it: an
// agent that leaves plan mode may change files, if it is allowed to, and one that
// enters it may not; but that edits, or all tools, pass unasked is for people alone
// to say. A mode that is Duet's own and none of the agent's holds whatever the agent
// is in.
func (in situation) mode() string {
	asked, is := catalog.ModeName(in.Run.Mode), catalog.ModeName(in.Run.AgentMode)
	switch {
	case is == "" || is == asked || is == catalog.ModePlan:
		return cmp.Or(is, asked)
	case !slices.ContainsFunc(in.AgentModes, func(id string) bool { return catalog.ModeName(id) == asked }):
		return asked
	case asked == catalog.ModeBypass && is == catalog.ModeAcceptEdits:
		return is
	}
	return catalog.ModeDefault
}
