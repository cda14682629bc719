package config

import (
	"fmt"
	"time"
)

// This file is the section [budget] of the configuration: the limits at which a run ends.

// BudgetLimits are the limits of usage. A nil field is not limited.
type BudgetLimits struct {
	Turns   *int           // rounds of tool calls
	Time    *time.Duration // working time of agents, without the time that they wait for a person
	Tokens  *int           // input and output, as agents report them
	Cost    *float64       // in US dollars, as agents report it
	Repeats *int           // of a run only: identical tool calls in a row
}

// A Budget holds the limits of a run, a conversation and a day.
type Budget struct{ Run, Thread, Day BudgetLimits }

// UnattendedRepeats is how often an unattended run may repeat the same tool call, if neither the
// configuration nor its conversation sets a limit. A person watches the runs that they begin.
// Some runs repeat calls for good reasons, such as waiting for a job to end.
const UnattendedRepeats = 50

const (
	mostTurns  = 1_000_000
	mostTokens = 1_000_000_000_000
	mostCost   = 1_000_000
	leastTime  = time.Second
	mostTime   = 168 * time.Hour
)

// DecodeBudget reads [budget.run], [budget.thread] and [budget.day], and records the problems.
func DecodeBudget(t Table) Budget {
	t.Only([]string{"run", "thread", "day"})
	part := func(key string, keys ...string) (l BudgetLimits) {
		t, ok := t.Sub(key)
		if !ok {
			return l
		}
		t.Only(append(keys, "turns", "time", "tokens", "cost"))
		return BudgetLimits{
			Turns: t.Whole("turns", 1, mostTurns), Time: t.Duration("time", leastTime, mostTime), Tokens: t.Whole("tokens", 1, mostTokens),
			Cost: t.Number("cost", 0.0001, mostCost), Repeats: t.Whole("repeats", 2, mostTurns),
		}
	}
	return Budget{Run: part("run", "repeats"), Thread: part("thread"), Day: part("day")}
}

// A Setting is one limit: its key, and an int, a float64 or a duration as a string.
type Setting struct {
	Key   string
	Value any
}

// Settings returns the configured limits, in a fixed order.
func (b Budget) Settings() []Setting {
	var out []Setting
	b.each(Budget{}, func(key string, value any, _ bool) { out = append(out, Setting{key, value}) })
	return out
}

// Raised returns the limits of b that are higher than in below: the owner of below must agree to
// them.
func (b Budget) Raised(below Budget) []Setting {
	var out []Setting
	b.each(below, func(key string, value any, raises bool) {
		if raises {
			out = append(out, Setting{key, value})
		}
	})
	return out
}

// each calls f with each configured limit, and whether it is higher than that of below.
func (b Budget) each(below Budget, f func(key string, value any, raises bool)) {
	for _, part := range []struct {
		name      string
		is, below BudgetLimits
	}{{"run", b.Run, below.Run}, {"thread", b.Thread, below.Thread}, {"day", b.Day, below.Day}} {
		key := func(name string) string { return fmt.Sprintf("budget.%s.%s", part.name, name) }
		is, was := part.is, part.below
		if is.Turns != nil {
			f(key("turns"), *is.Turns, was.Turns != nil && *is.Turns > *was.Turns)
		}
		if is.Time != nil {
			f(key("time"), shortDuration(*is.Time), was.Time != nil && *is.Time > *was.Time)
		}
		if is.Tokens != nil {
			f(key("tokens"), *is.Tokens, was.Tokens != nil && *is.Tokens > *was.Tokens)
		}
		if is.Cost != nil {
			f(key("cost"), *is.Cost, was.Cost != nil && *is.Cost > *was.Cost)
		}
		if is.Repeats != nil {
			f(key("repeats"), *is.Repeats, was.Repeats != nil && *is.Repeats > *was.Repeats)
		}
	}
}

// Over returns below with the limits of b in their place. Unless raise is set, it omits higher
// limits.
func (b Budget) Over(below Budget, raise bool) Budget {
	return Budget{b.Run.over(below.Run, raise), b.Thread.over(below.Thread, raise), b.Day.over(below.Day, raise)}
}

func (l BudgetLimits) over(below BudgetLimits, raise bool) BudgetLimits {
	return BudgetLimits{
		Turns: lower(l.Turns, below.Turns, raise), Time: lower(l.Time, below.Time, raise), Tokens: lower(l.Tokens, below.Tokens, raise),
		Cost: lower(l.Cost, below.Cost, raise), Repeats: lower(l.Repeats, below.Repeats, raise),
	}
}

func lower[T int | time.Duration | float64](limit, below *T, raise bool) *T {
	if limit == nil || below != nil && *limit > *below && !raise {
		return below
	}
	return limit
}
