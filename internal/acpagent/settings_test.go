package acpagent

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

// The client sees the mode in force. Only a session that has not begun shows the requested one.
func TestClientSeesTheModeInForce(t *testing.T) {
	modes := []protocol.Mode{{ID: "default"}, {ID: "plan"}, {ID: "auto"}}
	for want, state := range map[string]protocol.Turn{
		"auto":    {Mode: "auto", RequestedMode: "plan", AgentMode: "auto", Modes: modes},
		"plan":    {RequestedMode: "plan", Modes: modes},
		"default": {Modes: modes},
	} {
		assert.Equal(t, want, new(session).viewOf(state, nil).modes.Current)
	}
}
