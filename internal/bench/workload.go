//go:build linux

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// A workload is what a cell does with a server of its own.
type workload struct {
	name    string // as -workloads takes it
	purpose string
	run     func(cell) (measurement, error)
	figures []*figure
	// oneWay: it sends messages that must not come back.
	oneWay bool
	// alone: it is about what only duet-rpc has.
	alone bool
	// rounds is how many rounds have it where all workloads are measured; 0: all.
	rounds int
}

var workloads = []workload{{
	name: "start", purpose: "spawn to first ping reply, median of several children",
	run: startToReply, figures: []*figure{firstReply},
}, {
	name: "pingpong", purpose: "small echoes one at a time over pipes",
	run: pingPongOver(pipes, pingPongPipe), figures: pingPongPipe.all(),
}, {
	name: "pingpong-socketpair", purpose: "the same over socket pairs",
	run: pingPongOver(socketPairs, pingPongSocketPair), figures: pingPongSocketPair.all(),
}, {
	name: "inflight64", purpose: "small echoes, 64 unanswered",
	run: pipelined(64, inFlight64, inFlight64CPU), figures: []*figure{inFlight64, inFlight64CPU},
}, {
	name: "inflight1024", purpose: "small echoes, 1,024 unanswered",
	run: pipelined(1024, inFlight1024, inFlight1024CPU), figures: []*figure{inFlight1024, inFlight1024CPU},
}, {
	name: "echo1m", purpose: "1 MB echoes one at a time",
	run: largeEchoes(megabyteParams, megabyteEcho), figures: []*figure{megabyteEcho},
}, {
	name: "echo9m", purpose: "9.5 MB echoes one at a time",
	run: largeEchoes(nearMaximumParams, nearMaximumEcho), figures: []*figure{nearMaximumEcho},
}, {
	name: "notifications", purpose: "200,000 notifications, then one request",
	run: notify, figures: []*figure{notifications, notificationsCPU}, oneWay: true,
}, {
	name: "memory", purpose: "resident memory before, during and 3 s after 9.5 MB echoes",
	run: residentMemory, figures: []*figure{freshMemory, peakMemory, idleMemory},
}, {
	name: "events", purpose: "an agent's tool calls to an editor, 2,000 a second",
	run: eventLatency, figures: []*figure{eventP50, eventP99}, alone: true, rounds: 3,
}, {
	name: "words", purpose: "the first words of an agent's messages to an editor, 30 messages a second",
	run: wordsLatency, figures: []*figure{deltaP50, deltaP99}, alone: true, rounds: 3,
}, {
	name: "firstword", purpose: "from a prompt to the first word of an agent that answers at once, directly and through duet-rpc, in turns",
	run: firstWords, figures: slices.Concat(warmPromptWord.all(), firstPromptWord.all()), alone: true, rounds: 3,
}, {
	name: "deltas", purpose: "an agent's chunks to the log, 2,000 a second",
	run: deltaLatency, figures: []*figure{commitP50, commitP99}, alone: true, rounds: 3,
}, {
	name: "flood", purpose: "an agent's chunks to the log and an editor, as fast as they are taken",
	run: chunkThroughput, figures: []*figure{chunkRate, chunkCPU}, alone: true, rounds: 3,
}, {
	name: "acp", purpose: "an agent's tool calls and chunks to an editor that speaks the agent's protocol, directly and through duet-rpc " +
		"acp, in turns",
	run: acpAdds, figures: []*figure{acpDirectP50, acpDuetP50, acpDirectP99, acpDuetP99, acpDirectRate, acpDuetRate}, alone: true, rounds: 3,
}, {
	name: "host", purpose: "requests to the daemon through an editor's process, directly and with --host, in turns",
	run: hostAdds, figures: []*figure{hostDirectP50, hostOverP50, hostDirectP99, hostOverP99, hostAddsP99}, alone: true, rounds: 3,
}, {
	name: "hub-memory", purpose: "resident memory of the hub",
	run: hubMemory, figures: []*figure{hubFresh, hubIdle, hubDeaf}, alone: true, rounds: 1,
}, {
	name: "lists", purpose: "list and get methods on 10,000 sessions with 1,000,000 events",
	run: listEverything, figures: listingFigures(), alone: true, rounds: 1,
}}

// selectWorkloads takes a comma list of names; empty means all of them.
func selectWorkloads(list string) ([]workload, error) {
	if list == "" {
		return workloads, nil
	}
	var selected []workload
	for name := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(workloads, func(w workload) bool { return w.name == name })
		if i < 0 {
			return nil, fmt.Errorf("no workload %q", name)
		}
		selected = append(selected, workloads[i])
	}
	return selected, nil
}

const (
	// blockFrames is how many distinct ids are in use: more than are ever in
	// flight, few enough that the frames stay in a second level cache.
	blockFrames = 4096
	// cellDuration is how long a cell measures a throughput, at scale 1.
	cellDuration = 600 * time.Millisecond
	// childLimit bounds the life of a child, at scale 1; one that lives longer hangs.
	childLimit = time.Minute

	starts           = 7
	pingPongs        = 20_000
	floodLength      = 200_000
	memoryFrames     = 6
	freshPause       = time.Second     // for what a server still does after its first reply
	idlePause        = 3 * time.Second // not scaled: the target names it
	pingPongWarmUp   = 2_000
	pipelinedWarmUp  = 20_000
	leastRepetitions = 3 // of anything, however small the scale
)

// A cell is one run of a workload against one server.
type cell struct {
	server *server
	scale  float64
	// keep is where a great database is kept from run to run; empty: nowhere.
	keep    string
	verbose bool
	// load, where it is set, collects how busy both sides were.
	load *load
	// lingered counts children that did not end with their stdin.
	lingered *int
}

// count scales a number of messages.
func (c cell) count(n int) int { return max(leastRepetitions, int(float64(n)*c.scale)) }

// countFor is how many units of work, each of the given duration, fill the
// time that a cell measures.
func (c cell) countFor(unit time.Duration) int { return c.count(int(cellDuration / max(1, unit))) }

// with runs work with a fresh child that has answered a ping.
func (c cell) with(t transport, work func(*child) error) error {
	child, err := start(c.server, t, time.Duration(float64(childLimit)*max(1, c.scale)))
	if err != nil {
		return err
	}
	if _, err = child.ask(pingRequest(), nil); err == nil {
		err = work(child)
	}
	if err != nil {
		err = child.explain(err)
	}
	if child.stop(err != nil) {
		*c.lingered++
	}
	return err
}

func startToReply(c cell) (measurement, error) {
	var times []float64
	for i := range 1 + c.count(starts) {
		err := c.with(pipes, func(child *child) error {
			if i > 0 { // the first one reads the program from the disk
				times = append(times, float64(time.Since(child.started).Nanoseconds())/1e6)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return measurement{firstReply: median(times)}, nil
}

// A dialogue is n small echo requests and the replies to expect.
type dialogue func(n int) (requests, replies script)

// learnEchoes finds out from one exchange how a server spells its replies.
func learnEchoes(c *child) (dialogue, error) {
	request := echoRequest(smallParams)
	reply, err := c.ask(request, smallParams)
	if err != nil {
		return nil, err
	}
	requests, replies := numbered(request, blockFrames), numbered(reply, blockFrames)
	return func(n int) (script, script) {
		return repeat(requests, len(request), n), repeat(replies, len(reply), n)
	}, nil
}

func pingPongOver(t transport, figures pingPongFigures) func(cell) (measurement, error) {
	return func(c cell) (m measurement, err error) {
		err = c.with(t, func(child *child) error {
			echoes, err := learnEchoes(child)
			if err != nil {
				return err
			}
			exchange := func(latencies []time.Duration) error {
				requests, replies := echoes(len(latencies))
				return child.pingPong(requests, replies, latencies)
			}
			if err := exchange(make([]time.Duration, pingPongWarmUp)); err != nil {
				return err
			}
			latencies := make([]time.Duration, c.count(pingPongs))
			watch := newStopwatch(child)
			if err := exchange(latencies); err != nil {
				return err
			}
			lap := watch.lap(c.load)
			slices.Sort(latencies)
			quantile := func(percent int) float64 {
				return float64(latencies[len(latencies)*percent/100].Nanoseconds()) / 1e3
			}
			m = measurement{
				figures.p10: quantile(10), figures.p50: quantile(50), figures.p99: quantile(99),
				figures.cpu: lap.cpuPerMillion(len(latencies)),
			}
			return nil
		})
		return m, err
	}
}

func pipelined(window int, throughput, cpu *figure) func(cell) (measurement, error) {
	return func(c cell) (m measurement, err error) {
		err = c.with(pipes, func(child *child) error {
			echoes, err := learnEchoes(child)
			if err != nil {
				return err
			}
			exchange := func(n int) error {
				requests, replies := echoes(n)
				return child.converse(requests, window, &expectation{script: replies})
			}
			begin := time.Now()
			if err := exchange(pipelinedWarmUp); err != nil {
				return err
			}
			n := c.countFor(time.Since(begin) / pipelinedWarmUp)
			watch := newStopwatch(child)
			if err := exchange(n); err != nil {
				return err
			}
			lap := watch.lap(c.load)
			m = measurement{throughput: lap.perSecond(n) / 1e3, cpu: lap.cpuPerMillion(n)}
			return nil
		})
		return m, err
	}
}

func largeEchoes(params func() []byte, throughput *figure) func(cell) (measurement, error) {
	return func(c cell) (m measurement, err error) {
		request := echoRequest(params())
		err = c.with(pipes, func(child *child) error {
			reply, err := child.ask(request, params())
			if err != nil {
				return err
			}
			exchange := func(n int) error {
				return child.converse(repeat(request, len(request), n), 1,
					&expectation{script: repeat(reply, len(reply), n)})
			}
			begin := time.Now()
			if err := exchange(1); err != nil {
				return err
			}
			n := c.countFor(time.Since(begin))
			watch := newStopwatch(child)
			if err := exchange(n); err != nil {
				return err
			}
			m = measurement{throughput: watch.lap(c.load).perSecond(n*len(request)) / 1e6}
			return nil
		})
		return m, err
	}
}

func notify(c cell) (m measurement, err error) {
	err = c.with(pipes, func(child *child) error {
		one, closing := echoNotification(smallParams), echoRequest(smallParams)
		reply, err := child.ask(closing, smallParams)
		if err != nil {
			return err
		}
		flood := func(n int) error {
			requests := repeat(one, len(one), n)
			requests.block = slices.Repeat(one, min(n, blockFrames))
			requests.tail = closing
			return child.converse(requests, 0, &expectation{script: script{tail: reply}})
		}
		n := c.count(floodLength)
		if err := flood(n / 10); err != nil {
			return err
		}
		floods := 0
		watch := newStopwatch(child)
		for floods == 0 || time.Since(watch.begin) < cellDuration {
			if err := flood(n); err != nil {
				return err
			}
			floods++
		}
		lap := watch.lap(c.load)
		m = measurement{notifications: lap.perSecond(n*floods) / 1e3, notificationsCPU: lap.cpuPerMillion(n * floods)}
		return nil
	})
	return m, err
}

func residentMemory(c cell) (m measurement, err error) {
	request := echoRequest(nearMaximumParams())
	err = c.with(pipes, func(child *child) error {
		time.Sleep(freshPause)
		fresh, err := child.memory("VmRSS")
		if err != nil {
			return err
		}
		reply, err := child.ask(request, nearMaximumParams())
		if err != nil {
			return err
		}
		n := c.count(memoryFrames)
		if err := child.converse(repeat(request, len(request), n), 1, &expectation{script: repeat(reply, len(reply), n)}); err != nil {
			return err
		}
		peak, err := child.memory("VmHWM")
		if err != nil {
			return err
		}
		time.Sleep(idlePause)
		idle, err := child.memory("VmRSS")
		m = measurement{freshMemory: fresh, peakMemory: peak, idleMemory: idle}
		return err
	})
	return m, err
}
