package executor

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
)

// What shows that an agent goes on from an answer, and what does not.
func TestWhatShowsThatAnAnswerIsTaken(t *testing.T) {
	yes := permissionAnswer{Outcome: permissionOutcome{Outcome: selected, OptionID: "yes"}}
	body, err := json.Marshal(yes)
	assert.NoError(t, err)
	line := append(append([]byte(`{"jsonrpc":"2.0","id":1,"result":`), body...), "}\n"...)
	answer := func(g *givenAnswers) {
		g.give("approval", "call", yes)
		g.asksNoMore("call")
		g.writes(line)
	}
	ask := func(g *givenAnswers) {
		g.calling("call", "pending")
		g.asks("call")
	}
	for name, c := range map[string]struct {
		before func(*givenAnswers)
		then   func(*givenAnswers) []string
		taken  bool
	}{
		"it says something": {then: (*givenAnswers).acts, taken: true},
		"it said something while it waited": {
			before: func(g *givenAnswers) { ask(g); g.acts(); answer(g) }, then: (*givenAnswers).acts,
		},
		"it says something while another call runs": {
			before: func(g *givenAnswers) { g.calling("other", "in_progress"); ask(g); answer(g) }, then: (*givenAnswers).acts,
		},
		"it says something after another call has ended": {
			before: func(g *givenAnswers) {
				g.calling("other", "in_progress")
				g.calling("other", "completed")
				ask(g)
				answer(g)
			}, then: (*givenAnswers).acts, taken: true,
		},
		"it says something while another question waits": {
			before: func(g *givenAnswers) { g.asks("other"); ask(g); answer(g) }, then: (*givenAnswers).acts,
		},
		"the answer is not written": {
			before: func(g *givenAnswers) { ask(g); g.give("approval", "call", yes); g.asksNoMore("call") }, then: (*givenAnswers).turnEnds,
		},
		"something else is written": {
			before: func(g *givenAnswers) {
				ask(g)
				g.give("approval", "call", yes)
				g.asksNoMore("call")
				g.writes([]byte(`{"jsonrpc":"2.0","id":1,"result":null}`))
			}, then: (*givenAnswers).acts,
		},
		"its call runs":              {then: func(g *givenAnswers) []string { return g.calling("call", "in_progress") }, taken: true},
		"its call is done":           {then: func(g *givenAnswers) []string { return g.calling("call", "completed") }, taken: true},
		"its call failed":            {then: func(g *givenAnswers) []string { return g.calling("call", "failed") }, taken: true},
		"its call waits still":       {then: func(g *givenAnswers) []string { return g.calling("call", "pending") }},
		"its call has another title": {then: func(g *givenAnswers) []string { return g.calling("call", "") }},
		"another call begins":        {then: func(g *givenAnswers) []string { return g.calling("other", "pending") }, taken: true},
		"another call that runs goes on": {
			before: func(g *givenAnswers) { g.calling("other", "in_progress"); ask(g); answer(g) },
			then:   func(g *givenAnswers) []string { return g.calling("other", "completed") },
		},
		"it asks something else": {then: func(g *givenAnswers) []string { return g.asks("other") }, taken: true},
		"its turn ends":          {then: (*givenAnswers).turnEnds, taken: true},
	} {
		t.Run(name, func(t *testing.T) {
			var g givenAnswers
			if c.before == nil {
				c.before = func(g *givenAnswers) { ask(g); answer(g) }
			}
			c.before(&g)
			var want []string
			if c.taken {
				want = []string{"approval"}
			}
			assert.Equal(t, want, c.then(&g))
			if c.taken {
				assert.Empty(t, g.turnEnds(), "it is told once")
			}
		})
	}
}
