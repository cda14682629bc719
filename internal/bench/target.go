package main

import (
	"fmt"
	"io"
	"math"
	"slices"
)

// A relation is how a target's bound is meant.
type relation int

const (
	faster  relation = iota // the advantage over the peer is above bound
	times                   // the advantage over the peer is at least bound
	share                   // the cost is at most bound times the peer's
	nowhere                 // the median itself is at most bound; no peer
	atLeast                 // the median itself is at least bound; no peer
)

// A target is a promise of duet-rpc about one figure.
type target struct {
	figure   *figure
	relation relation
	bound    float64
	peer     string
}

var targets = append([]target{
	{firstReply, nowhere, 5, ""},
	{pingPongPipe.p50, faster, 1, lspdev},
	{pingPongPipe.p50, share, 1.15, byteecho},
	{pingPongSocketPair.p50, faster, 1, lspdev},
	{pingPongSocketPair.p50, share, 1.15, byteecho},
	{inFlight1024, times, 6, lspdev},
	{inFlight1024, times, 50, sourcegraph},
	{inFlight1024CPU, share, 0.25, lspdev},
	{megabyteEcho, times, 1.1, lspdev},
	{nearMaximumEcho, times, 1.4, lspdev},
	{notifications, times, 2, lspdev},
	{freshMemory, nowhere, 25, ""},
	{peakMemory, nowhere, 60, ""},
	{idleMemory, nowhere, 30, ""},
	{eventP99, nowhere, 5, ""},
	{warmPromptWord.overhead, nowhere, 5, ""},
	{firstPromptWord.overhead, nowhere, 150, ""},
	{commitP99, nowhere, 5, ""},
	{chunkRate, atLeast, 20, ""},
	{hostAddsP99, nowhere, 2, ""},
	{hubFresh, nowhere, 25, ""},
	{hubIdle, nowhere, 25, ""},
}, listingTargets()...)

// measured returns, per round, the number that the bound is about.
func (t target) measured(r results) []float64 {
	if t.relation == nowhere || t.relation == atLeast {
		return r.of(duet, t.figure)
	}
	values := r.advantages(duet, t.peer, t.figure)
	if t.relation == share {
		for i := range values {
			values[i] = 1 / values[i]
		}
	}
	return values
}

// met is false where there is nothing to go by.
func (t target) met(r results) bool {
	value := median(t.measured(r))
	switch t.relation {
	case faster:
		return value > t.bound
	case times, atLeast:
		return value >= t.bound
	default:
		return value <= t.bound
	}
}

func (t target) String() string {
	switch t.relation {
	case faster:
		return fmt.Sprintf("%s: faster than %s", t.figure.name, t.peer)
	case times:
		return fmt.Sprintf("%s: at least %gx %s", t.figure.name, t.bound, t.peer)
	case atLeast:
		return fmt.Sprintf("%s: at least %g %s", t.figure.name, t.bound, t.figure.unit)
	case share:
		return fmt.Sprintf("%s: at most %gx of %s", t.figure.name, t.bound, t.peer)
	default:
		return fmt.Sprintf("%s: at most %g %s", t.figure.name, t.bound, t.figure.unit)
	}
}

// reportTargets writes a list with a line for every target whose figure was to be
// measured, with the range over the rounds, and returns the number of misses.
// A target whose cells failed is a miss.
func reportTargets(out io.Writer, r results, measured []*figure) (misses int) {
	fmt.Fprint(out, "Targets:\n\n")
	for _, t := range targets {
		if !slices.Contains(measured, t.figure) {
			continue
		}
		verdict := "PASS"
		if !t.met(r) {
			verdict = "MISS"
			misses++
		}
		values := t.measured(r)
		if len(values) == 0 {
			fmt.Fprintf(out, "- %s %v: no figure\n", verdict, t)
			continue
		}
		unit := "x"
		if t.relation == nowhere || t.relation == atLeast {
			unit = " " + t.figure.unit
		}
		fmt.Fprintf(out, "- %s %v: %s%s (rounds: %s to %s)\n", verdict, t, significant(median(values)), unit,
			significant(slices.Min(values)), significant(slices.Max(values)))
	}
	return misses
}

// significant writes three digits that matter, or all before the point.
func significant(v float64) string {
	switch {
	case math.IsNaN(v):
		return "–"
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	case v >= 1:
		return fmt.Sprintf("%.2f", v)
	default:
		return fmt.Sprintf("%.3f", v)
	}
}
