package acp

import (
	"encoding/json"
	"testing"

	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/stretchr/testify/assert"
)

// Events that prove that an agent goes on from an answer, and events that do not.
func TestEventsThatProveDelivery(t *testing.T) {
	yes := acp.PermissionResponse{Outcome: acp.PermissionOutcome{Outcome: acp.Selected, OptionID: "yes"}}
	body, err := json.Marshal(yes)
	assert.NoError(t, err)
	line := append(append([]byte(`{"jsonrpc":"2.0","id":1,"result":`), body...), "}\n"...)
	answer := func(g *deliveries) {
		g.answered("approval", "call", yes)
		g.questionClosed("call")
		g.written(line)
	}
	ask := func(g *deliveries) {
		g.toolCallUpdated("call", "pending")
		g.questionAsked("call")
	}
	for name, c := range map[string]struct {
		before func(*deliveries)
		then   func(*deliveries) []string
		taken  bool
	}{
		"it says something": {then: (*deliveries).agentActed, taken: true},
		"it said something while it waited": {
			before: func(g *deliveries) { ask(g); g.agentActed(); answer(g) }, then: (*deliveries).agentActed,
		},
		"it says something while another call runs": {
			before: func(g *deliveries) { g.toolCallUpdated("other", "in_progress"); ask(g); answer(g) }, then: (*deliveries).agentActed,
		},
		"it says something after another call has ended": {
			before: func(g *deliveries) {
				g.toolCallUpdated("other", "in_progress")
				g.toolCallUpdated("other", "completed")
				ask(g)
				answer(g)
			}, then: (*deliveries).agentActed, taken: true,
		},
		"it says something while another question waits": {
			before: func(g *deliveries) { g.questionAsked("other"); ask(g); answer(g) }, then: (*deliveries).agentActed,
		},
		"the answer is not written": {
			before: func(g *deliveries) { ask(g); g.answered("approval", "call", yes); g.questionClosed("call") }, then: (*deliveries).turnEnded,
		},
		"something else is written": {
			before: func(g *deliveries) {
				ask(g)
				g.answered("approval", "call", yes)
				g.questionClosed("call")
				g.written([]byte(`{"jsonrpc":"2.0","id":1,"result":null}`))
			}, then: (*deliveries).agentActed,
		},
		"its body is in an id": {
			before: func(g *deliveries) {
				ask(g)
				g.answered("approval", "call", yes)
				g.questionClosed("call")
				g.written([]byte(`{"jsonrpc":"2.0","id":{"result":` + string(body) + `},"result":null}`))
			}, then: (*deliveries).agentActed,
		},
		"its call runs":              {then: func(g *deliveries) []string { return g.toolCallUpdated("call", "in_progress") }, taken: true},
		"its call is done":           {then: func(g *deliveries) []string { return g.toolCallUpdated("call", "completed") }, taken: true},
		"its call failed":            {then: func(g *deliveries) []string { return g.toolCallUpdated("call", "failed") }, taken: true},
		"its call waits still":       {then: func(g *deliveries) []string { return g.toolCallUpdated("call", "pending") }},
		"its call has another title": {then: func(g *deliveries) []string { return g.toolCallUpdated("call", "") }},
		"another call begins":        {then: func(g *deliveries) []string { return g.toolCallUpdated("other", "pending") }, taken: true},
		"another call that runs goes on": {
			before: func(g *deliveries) { g.toolCallUpdated("other", "in_progress"); ask(g); answer(g) },
			then:   func(g *deliveries) []string { return g.toolCallUpdated("other", "completed") },
		},
		"it asks something else": {then: func(g *deliveries) []string { return g.questionAsked("other") }, taken: true},
		"its turn ends":          {then: (*deliveries).turnEnded, taken: true},
	} {
		t.Run(name, func(t *testing.T) {
			var g deliveries
			if c.before == nil {
				c.before = func(g *deliveries) { ask(g); answer(g) }
			}
			c.before(&g)
			var want []string
			if c.taken {
				want = []string{"approval"}
			}
			assert.Equal(t, want, c.then(&g))
			if c.taken {
				assert.Empty(t, g.turnEnded(), "it is reported once")
			}
		})
	}
}
