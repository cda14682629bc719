package main

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// twoRounds has a round in which everything was slow, and one without a figure
// of the peer.
func twoRounds() results {
	r := newResults(3)
	r.add(0, duet, measurement{inFlight1024: 600, firstReply: 2})
	r.add(0, lspdev, measurement{inFlight1024: 100, firstReply: 3})
	r.add(1, duet, measurement{inFlight1024: 80, firstReply: 20})
	r.add(1, lspdev, measurement{inFlight1024: 10, firstReply: 40})
	r.add(2, duet, measurement{inFlight1024: 1, firstReply: 4})
	return r
}

func TestAdvantagesAreTakenWithinARound(t *testing.T) {
	r := twoRounds()
	if got := r.advantages(duet, lspdev, inFlight1024); !slices.Equal(got, []float64{6, 8}) {
		t.Errorf("throughput: %v", got)
	}
	if got := r.advantages(duet, lspdev, firstReply); !slices.Equal(got, []float64{1.5, 2}) {
		t.Errorf("time: %v", got)
	}
	if got := r.of(duet, firstReply); !slices.Equal(got, []float64{2, 20, 4}) {
		t.Errorf("values: %v", got)
	}
}

func TestMedian(t *testing.T) {
	if !math.IsNaN(median(nil)) || median([]float64{3, 1, 2}) != 2 || median([]float64{4, 1, 2, 3}) != 2.5 {
		t.Error("median")
	}
}

func TestTargets(t *testing.T) {
	r := twoRounds()
	for _, test := range []struct {
		target target
		met    bool
	}{
		{target{inFlight1024, times, 7, lspdev}, true},
		{target{inFlight1024, times, 7.1, lspdev}, false},
		{target{firstReply, faster, 1.75, lspdev}, false},
		{target{firstReply, faster, 1.74, lspdev}, true},
		{target{firstReply, share, 0.6, lspdev}, true},
		{target{firstReply, share, 0.5, lspdev}, false},
		{target{firstReply, nowhere, 4, ""}, true},
		{target{firstReply, nowhere, 3.9, ""}, false},
		{target{inFlight1024, atLeast, 80, ""}, true},
		{target{inFlight1024, atLeast, 81, ""}, false},
		{target{inFlight1024, times, 1, sourcegraph}, false}, // never measured
	} {
		if test.target.met(r) != test.met {
			t.Errorf("%v: %v, met: %t", test.target, test.target.measured(r), !test.met)
		}
	}
}

func TestReportTargets(t *testing.T) {
	var out strings.Builder
	misses := reportTargets(&out, twoRounds(), []*figure{firstReply, inFlight1024})
	want := `Targets:

- PASS start → first reply: at most 5 ms: 4.00 ms (rounds: 2.00 to 20.0)
- PASS 1,024 in flight: at least 6x lspdev: 7.00x (rounds: 6.00 to 8.00)
- MISS 1,024 in flight: at least 50x sourcegraph: no figure
`
	if misses != 1 || out.String() != want {
		t.Errorf("%d misses, got:\n%s", misses, &out)
	}
}

func TestWriteTable(t *testing.T) {
	var out strings.Builder
	writeTable(&out, twoRounds(), peers, []*figure{inFlight1024}, func(server string, _ *figure) bool { return server == lspdev })
	lines := strings.Split(out.String(), "\n")
	if want := "| 1,024 in flight | k/s | 80.0 | 55.0 † | – | – | – | 7.00 | – | – | – |"; lines[2] != want {
		t.Errorf("got %s", lines[2])
	}
	if strings.Count(lines[0], "|") != strings.Count(lines[1], "|") || strings.Count(lines[0], "|") != strings.Count(lines[2], "|") {
		t.Errorf("columns differ:\n%s", &out)
	}
}

func TestWriteOwn(t *testing.T) {
	var out strings.Builder
	writeOwn(&out, twoRounds(), []*figure{firstReply, neverMeasured}, false)
	lines := strings.Split(out.String(), "\n")
	if want := "| start → first reply | ms | 4.00 | 2.00 | 20.0 | 3 |"; lines[2] != want {
		t.Errorf("got %s", lines[2])
	}
	if want := "| never | ms | – | – | – | 0 |"; lines[3] != want {
		t.Errorf("got %s", lines[3])
	}
}

var neverMeasured = cost("never", milliseconds)

func TestWriteOwnBesideAnotherBuild(t *testing.T) {
	r := newResults(1)
	r.add(0, duet, measurement{firstReply: 4})
	r.add(0, before, measurement{firstReply: 5})
	var out strings.Builder
	writeOwn(&out, r, []*figure{firstReply}, true)
	if want := "| start → first reply | ms | 4.00 | 4.00 | 4.00 | 1 | 5.00 | 1.25 |"; !strings.Contains(out.String(), want) {
		t.Errorf("got %s", &out)
	}
}
