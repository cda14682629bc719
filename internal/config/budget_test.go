package config_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/config"
)

func TestABudgetIsRead(t *testing.T) {
	w := newWorld(t)
	w.write(w.user, "[budget.turn]\nrounds = 3\ntime = \"90s\"\ntokens = 5\ncost = 2\nrepeats = 9\n[budget.session]\ncost = 0.5\nturns = 7\n[budget.day]\ntime = \"2h\"\n")
	var budget []string
	for _, line := range texts(w.load().Values()) {
		if strings.HasPrefix(line, "budget.") {
			budget = append(budget, line)
		}
	}
	assert.ElementsMatch(t, []string{
		"budget.turn.rounds 3", `budget.turn.time "1m30s"`, "budget.turn.tokens 5", "budget.turn.cost 2", "budget.turn.repeats 9",
		"budget.session.cost 0.5", "budget.session.turns 7", `budget.day.time "2h"`,
	}, budget)
}

func TestWhatIsWrongInABudgetIsTold(t *testing.T) {
	for text, want := range map[string]string{
		"[budget.turn]\nrounds = 0":        ":2:10: rounds in [budget.turn]: expected a whole number from 1 to 1000000, found 0",
		"[budget.turn]\ncost = \"cheap\"":  ":2:8: cost in [budget.turn]: expected a number from 0.0001 to 1000000, found a string",
		"[budget.turn]\ncost = nan":        ":2:8: cost in [budget.turn]: expected a number from 0.0001 to 1000000, found NaN",
		"[budget.day]\nrepeats = 5":        `:2:1: unknown key "repeats" in [budget.day] (the keys are turns, time, tokens, cost)`,
		"[budget.session]\ntime = \"1ms\"": `:2:8: time in [budget.session]: expected a time from 1s to 168h, such as "90s" or "2h", found "1ms"`,
		"[budget]\nturn = 3":               ":2:8: turn in [budget]: expected a table, [budget.turn], found a whole number",
		"[budget.week]\ncost = 1":          `:1:9: unknown key "week" in [budget] (the keys are turn, session, day)`,
	} {
		w := newWorld(t)
		w.write(w.user, text)
		_, err := config.Load(w.sources())
		var wrong *config.Error
		require.ErrorAs(t, err, &wrong, text)
		if assert.Len(t, wrong.Problems, 1, text) {
			assert.Equal(t, w.user+want, wrong.Problems[0].String())
		}
	}
}

// A project's file may lower the user's limits and set missing ones; the rest needs the user's
// trust.
func TestAProjectLowersABudget(t *testing.T) {
	w := newWorld(t)
	w.write(w.user, "[budget.turn]\ncost = 2\nrounds = 10\n[budget.day]\ncost = 20\n")
	w.write(w.project, "[budget.turn]\ncost = 3\nrounds = 5\ntokens = 7\n[budget.day]\ncost = 20.0\n")
	inspected, err := config.Inspect(w.project, w.getenv)
	require.NoError(t, err)
	assert.Empty(t, inspected.Asks, "without the user's own file there is no limit to raise")
	careful := w.load().Budget
	assert.Equal(t, []float64{2, 5, 7, 20}, []float64{*careful.Turn.Cost, float64(*careful.Turn.Rounds), float64(*careful.Turn.Tokens), *careful.Day.Cost})
	assert.Contains(t, texts(w.load().Values()), "budget.turn.cost 3 waits")
	assert.InDelta(t, 3, *w.trusted().load().Budget.Turn.Cost, 0)
}
