package main

import (
	"maps"
	"math"
	"slices"
)

// A figure is a measured quantity. Figures are compared by address.
type figure struct {
	name          string
	unit          string
	lowerIsBetter bool
}

// Cost figures are better when lower, rates when higher.
func cost(name, unit string) *figure { return &figure{name, unit, true} }
func rate(name, unit string) *figure { return &figure{name, unit, false} }

// Units. MB are 10^6 bytes; a throughput in MB/s counts the requests' bytes,
// not those of the replies.
const (
	milliseconds      = "ms"
	microseconds      = "µs"
	thousandPerSecond = "k/s"
	megabytesASecond  = "MB/s"
	megabytes         = "MB"
	// secondsPerMillion is CPU seconds for a million messages, which is also
	// CPU microseconds for one.
	secondsPerMillion = "s/M"
)

var firstReply = cost("start → first reply", milliseconds)

// pingPongFigures are the figures of one transport.
type pingPongFigures struct{ p10, p50, p99, cpu *figure }

func newPingPongFigures(over string) pingPongFigures {
	name := "ping-pong, " + over
	return pingPongFigures{
		p10: cost(name+", p10", microseconds),
		p50: cost(name+", p50", microseconds),
		p99: cost(name+", p99", microseconds),
		cpu: cost(name+", CPU", secondsPerMillion),
	}
}

func (p pingPongFigures) all() []*figure { return []*figure{p.p10, p.p50, p.p99, p.cpu} }

// firstWordFigures are the times from a prompt to the first word of its answer.
type firstWordFigures struct{ direct, duet, overhead, toAgent, toClient, without *figure }

func newFirstWordFigures(prompt string) firstWordFigures {
	name := prompt + " → first word"
	return firstWordFigures{
		direct:   cost(name+", bare client", milliseconds),
		duet:     cost(name+", duet-rpc", milliseconds),
		overhead: cost(name+", what duet-rpc adds", milliseconds),
		toAgent:  cost(name+", duet-rpc, of which prompt → agent", milliseconds),
		toClient: cost(name+", duet-rpc, of which agent → editor", milliseconds),
		without:  cost(name+", duet-rpc without checkpoints", milliseconds),
	}
}

func (f firstWordFigures) all() []*figure {
	return []*figure{f.direct, f.duet, f.overhead, f.toAgent, f.toClient, f.without}
}

var (
	warmPromptWord  = newFirstWordFigures("prompt of a warm agent")
	firstPromptWord = newFirstWordFigures("first prompt of a session")

	pingPongPipe       = newPingPongFigures("pipe")
	pingPongSocketPair = newPingPongFigures("socketpair")

	inFlight64       = rate("64 in flight", thousandPerSecond)
	inFlight64CPU    = cost("64 in flight, CPU", secondsPerMillion)
	inFlight1024     = rate("1,024 in flight", thousandPerSecond)
	inFlight1024CPU  = cost("1,024 in flight, CPU", secondsPerMillion)
	megabyteEcho     = rate("1 MB echo", megabytesASecond)
	nearMaximumEcho  = rate("9.5 MB echo", megabytesASecond)
	notifications    = rate("200,000 notifications", thousandPerSecond)
	notificationsCPU = cost("200,000 notifications, CPU", secondsPerMillion)

	freshMemory = cost("memory, idle and fresh", megabytes)
	peakMemory  = cost("memory, peak with 9.5 MB frames", megabytes)
	idleMemory  = cost("memory, idle 3 s after those", megabytes)

	eventP50      = cost("agent's tool call → editor, 2,000/s, p50", milliseconds)
	eventP99      = cost("agent's tool call → editor, 2,000/s, p99", milliseconds)
	deltaP50      = cost("agent's first words of a message → editor, 30/s, p50", milliseconds)
	deltaP99      = cost("agent's first words of a message → editor, 30/s, p99", milliseconds)
	commitP50     = cost("agent's chunk → committed, 2,000/s, p50", milliseconds)
	commitP99     = cost("agent's chunk → committed, 2,000/s, p99", milliseconds)
	chunkRate     = rate("agent's chunks → log and editor", thousandPerSecond)
	chunkCPU      = cost("agent's chunks → log and editor, CPU of the hub", secondsPerMillion)
	acpDirectP50  = cost("agent's tool call → ACP client, 2,000/s, directly, p50", milliseconds)
	acpDirectP99  = cost("agent's tool call → ACP client, 2,000/s, directly, p99", milliseconds)
	acpDuetP50    = cost("agent's tool call → duet-rpc acp → ACP client, 2,000/s, p50", milliseconds)
	acpDuetP99    = cost("agent's tool call → duet-rpc acp → ACP client, 2,000/s, p99", milliseconds)
	acpDirectRate = rate("agent's 10,000 chunks → ACP client, directly", thousandPerSecond)
	acpDuetRate   = rate("agent's 10,000 chunks → duet-rpc acp → ACP client", thousandPerSecond)
	hostDirectP50 = cost("request → daemon, p50", milliseconds)
	hostDirectP99 = cost("request → daemon, p99", milliseconds)
	hostOverP50   = cost("request → daemon with --host over pipes, p50", milliseconds)
	hostOverP99   = cost("request → daemon with --host over pipes, p99", milliseconds)
	hostAddsP99   = cost("request → daemon, what --host adds, p99", milliseconds)
	hubFresh      = cost("memory, hub opened, idle", megabytes)
	hubIdle       = cost("memory, hub idle 3 s after 10,000 events", megabytes)
	hubDeaf       = cost("memory, 10,000 events, an editor that does not read", megabytes)
)

// A measurement is the result of one or more cells of the same server.
type measurement map[*figure]float64

// results are the measurements of all rounds: results[round][server name].
type results []map[string]measurement

func newResults(rounds int) results {
	all := make(results, rounds)
	for i := range all {
		all[i] = map[string]measurement{}
	}
	return all
}

func (r results) add(round int, server string, m measurement) {
	if r[round][server] == nil {
		r[round][server] = measurement{}
	}
	maps.Copy(r[round][server], m)
}

// of returns the figure of a server in every round that has it.
func (r results) of(server string, f *figure) []float64 {
	var values []float64
	for _, round := range r {
		if v, ok := round[server][f]; ok {
			values = append(values, v)
		}
	}
	return values
}

// advantages returns, for each round that has both figures, the factor by which one server is better
// than another.
func (r results) advantages(of, over string, f *figure) []float64 {
	var ratios []float64
	for _, round := range r {
		mine, ok := round[of][f]
		theirs, both := round[over][f]
		if !ok || !both || mine <= 0 || theirs <= 0 {
			continue
		}
		if f.lowerIsBetter {
			mine, theirs = theirs, mine
		}
		ratios = append(ratios, mine/theirs)
	}
	return ratios
}

// median of no values is NaN.
func median(values []float64) float64 {
	n := len(values)
	if n == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
