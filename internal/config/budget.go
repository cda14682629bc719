package config

import (
	"fmt"
	"time"
)

// This file is the section [budget] of the configuration: how much runs may
// use before they are ended.

// BudgetLimits are how much may be used. What is nil is not limited.
type BudgetLimits struct {
	Turns   *int           // rounds of tool calls
	Time    *time.Duration // that agents work; waiting for a person is none
	Tokens  *int           // read and written, as agents tell them
	Cost    *float64       // in US dollars, as agents tell it
	Repeats *int           // of a run alone: the same tool call one after the other
}

// A Budget is how much a run, a conversation and a day may use.
type Budget struct{ Run, Thread, Day BudgetLimits }

// UnattendedRepeats is how often a run that nobody has asked for may make the same tool
// call, where neither the configuration nor its conversation says it. A run that a person
// began is watched by that person, and some do the same for good reasons, such as waiting
// for a job to end.
const UnattendedRepeats = 50

const (
	mostTurns  = 1_000_000
	mostTokens = 1_000_000_000_000
	mostCost   = 1_000_000
	leastTime  = time.Second
	mostTime   = 168 * time.Hour
)

// DecodeBudget reads [budget.run], [budget.thread] and [budget.day], and notes what is wrong.
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

// Settings are the limits that are set, in a fixed order.
func (b Budget) Settings() []Setting {
	var out []Setting
	b.each(Budget{}, func(key string, value any, _ bool) { out = append(out, Setting{key, value}) })
	return out
}

// Raised are those limits of b that are higher than in below: whoever set below has to
// agree.
func (b Budget) Raised(below Budget) []Setting {
	var out []Setting
	b.each(below, func(key string, value any, raises bool) {
		if raises {
			out = append(out, Setting{key, value})
		}
	})
	return out
}

// each calls f with each limit that is set, and whether it is higher than the one of below.
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

// Over is below with the limits of b in their place. Unless raise is set, those that
// are higher are left out.
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
