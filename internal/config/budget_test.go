package config_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/config"
)

func decode(t *testing.T, text string) (config.Budget, []config.Problem) {
	t.Helper()
	d := config.ParseDocument("f", "f", []byte(text), config.Bounds{Keys: 100, Values: 100, Parts: 9, Nesting: 9})
	table, ok := d.Table().Sub("budget")
	require.True(t, ok)
	return config.DecodeBudget(table), d.Problems
}

func TestABudgetIsRead(t *testing.T) {
	b, problems := decode(t, "[budget.run]\nturns = 3\ntime = \"90s\"\ntokens = 5\ncost = 2\nrepeats = 9\n[budget.thread]\ncost = 0.5\n[budget.day]\ntime = \"2h\"\n")
	assert.Empty(t, problems)
	var lines []string
	for _, s := range b.Settings() {
		lines = append(lines, fmt.Sprint(s.Key, " ", s.Value))
	}
	assert.Equal(t, []string{"budget.run.turns 3", "budget.run.time 1m30s", "budget.run.tokens 5", "budget.run.cost 2", "budget.run.repeats 9", "budget.thread.cost 0.5", "budget.day.time 2h"}, lines)
}

func TestWhatIsWrongInABudgetIsTold(t *testing.T) {
	for text, want := range map[string]string{
		"[budget.run]\nturns = 0":         "f:2:9: turns in [budget.run]: expected a whole number from 1 to 1000000, found 0",
		"[budget.run]\ncost = \"cheap\"":  "f:2:8: cost in [budget.run]: expected a number from 0.0001 to 1000000, found a string",
		"[budget.run]\ncost = nan":        "f:2:8: cost in [budget.run]: expected a number from 0.0001 to 1000000, found NaN",
		"[budget.day]\nrepeats = 5":       `f:2:1: unknown key "repeats" in [budget.day]`,
		"[budget.thread]\ntime = \"1ms\"": `f:2:8: time in [budget.thread]: expected a time from 1s to 168h, such as "90s" or "2h", found "1ms"`,
		"[budget]\nrun = 3":               "f:2:7: run in [budget]: expected a table, [budget.run], found a whole number",
		"[budget.week]\ncost = 1":         `f:1:9: unknown key "week" in [budget]`,
	} {
		_, problems := decode(t, text)
		if assert.Len(t, problems, 1, text) {
			assert.Equal(t, want, problems[0].String())
		}
	}
}

// A project's file may lower the user's limits and set missing ones; the rest needs the user's
// trust.
func TestAProjectLowersABudget(t *testing.T) {
	below, _ := decode(t, "[budget.run]\ncost = 2\nturns = 10\n[budget.day]\ncost = 20\n")
	above, _ := decode(t, "[budget.run]\ncost = 3\nturns = 5\ntokens = 7\n[budget.day]\ncost = 20.0\n")
	assert.Equal(t, []config.Setting{{Key: "budget.run.cost", Value: 3.0}}, above.Raised(below))
	careful := above.Over(below, false)
	assert.Equal(t, []float64{2, 5, 7, 20}, []float64{*careful.Run.Cost, float64(*careful.Run.Turns), float64(*careful.Run.Tokens), *careful.Day.Cost})
	assert.InDelta(t, 3, *above.Over(below, true).Run.Cost, 0)
}
