//go:build unix && soak

package main_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/socket"
)

// A crowdRun is the load under way.
type crowdRun struct {
	t       *testing.T
	callers []*caller

	mu       sync.Mutex     // guards the fields below
	sessions map[string]int // which caller's a session is
	tasks    map[string]int
	took     latencies // in this phase
	calls    int
}

// phase has each caller submit so many tasks.
func (r *crowdRun) phase(tasks int) latencies {
	r.took = nil
	var group sync.WaitGroup
	for i, c := range r.callers {
		group.Go(func() {
			for n := range tasks {
				if err := r.one(i, c, n); err != nil {
					assert.NoError(r.t, err, "client %d of family %d", i, c.family)
					return
				}
			}
		})
	}
	group.Wait()
	require.False(r.t, r.t.Failed())
	slices.Sort(r.took)
	return r.took
}

func (r *crowdRun) one(i int, c *caller, n int) error {
	asked := time.Now()
	session, task, quick, err := c.submit(fmt.Sprintf("client %d task %d", i, n))
	if err != nil {
		return err
	}
	submitted := time.Now()
	err = c.look(task, n)
	looked := time.Since(submitted)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls += 2
	r.took = append(r.took, looked)
	if quick {
		r.took = append(r.took, submitted.Sub(asked))
	}
	if quick { // else it is the caller's own name of the conversation
		if _, twice := r.sessions[session]; twice {
			err = errors.Join(err, fmt.Errorf("session %s was given twice", session))
		}
		r.sessions[session] = i
	}
	if _, twice := r.tasks[task]; twice {
		err = errors.Join(err, fmt.Errorf("task %s was given twice", task))
	}
	r.tasks[task] = i
	return err
}

// deaf is a client that asks for all there is, and on and on, until the hub
// takes no more of it, and never reads.
func deaf(t *testing.T, path string, framing func(string) string) (leave func()) {
	conn := connect(t, path)
	require.NoError(t, conn.SetReadBuffer(4<<10))
	ask := func(message string) error {
		if err := conn.SetWriteDeadline(time.Now().Add(deafPatience)); err != nil {
			return err
		}
		_, err := io.WriteString(conn, framing(message))
		return err
	}
	require.NoError(t, ask(`{"jsonrpc":"2.0","id":1,"method":"Subscribe","params":{"since":0}}`))
	require.NoError(t, ask(`{"jsonrpc":"2.0","id":2,"method":"task.stats"}`))
	for i := range deafCalls {
		if err := ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":"%d","method":"listMethods"}`, i)); err != nil {
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
			return func() { conn.Close() }
		}
	}
	require.Fail(t, "the hub keeps whatever a client that never reads asks for")
	return nil
}

// A crowd of clients of all families, beside some that never read, loses no
// reply and no event, and the hub's memory is bounded and comes back.
func TestCrowd(t *testing.T) {
	_, err := socket.RaiseFileLimit()
	require.NoError(t, err)
	l := loadOf()
	s := newSite(t)
	// A run is as short as it can be: what is loaded is the hub.
	s.agents("[agents.said]\ndriver = \"command\"\ncommand = [\"echo\", \"{prompt}\"]\nhistory = \"none\"\n")
	s.env = []string{"DUET_MAX_RUNS=8", "DUET_QUEUE_CAP=100000"}
	hub := s.foreground(l.within + l.patient)
	path := s.socketPath()
	before := hub.memory(t, "VmRSS")

	r := &crowdRun{t: t, sessions: make(map[string]int), tasks: make(map[string]int)}
	for i := range l.clients {
		r.callers = append(r.callers, newCaller(t, path, i, l))
	}
	began := time.Now()
	var without, beside latencies
	phases := []bool{false, true, true, false} // so that a slow drift counts for neither
	done := 0
	for i, isBeside := range phases {
		n := l.tasks*(i+1)/len(phases) - done
		done += n
		if !isBeside {
			without = append(without, r.phase(n)...)
			continue
		}
		leaveLines := deaf(t, path, func(m string) string { return m + "\n" })
		leaveFrames := deaf(t, path, framed)
		beside = append(beside, r.phase(n)...)
		leaveLines()
		leaveFrames()
	}
	submitted := time.Since(began)
	all := l.clients * l.tasks
	require.Len(t, r.tasks, all, "every run has a number of its own")

	// A client that receives states receives all of them once, in order.
	events, subscribers := 0, 0
	for i, c := range r.callers {
		switch {
		case c.heard != nil:
			subscribers++
			require.Eventually(t, func() bool {
				_, ended, wrong := c.heard.reported()
				return ended >= all || wrong != ""
			}, l.within, pollEvery, "client %d has not received all ends", i)
			n, ended, wrong := c.heard.reported()
			events += n
			require.Empty(t, wrong, "client %d", i)
			require.Equal(t, all, ended)
			for session := range r.sessions {
				require.Contains(t, c.heard.states, session, "client %d", i)
			}
		case c.family == taskCaller:
			require.Eventually(t, func() bool {
				c.mu.Lock()
				defer c.mu.Unlock()
				return len(c.ended) >= all
			}, l.within, pollEvery, "client %d has not received all tasks", i)
		}
	}
	require.Positive(t, subscribers)
	took := time.Since(began)
	assert.Less(t, took, l.within)
	var stats struct{ Total, Queued, Running, Completed int }
	require.NoError(t, r.callers[0].try("task.stats", object{}, &stats))
	assert.Equal(t, struct{ Total, Queued, Running, Completed int }{all, 0, 0, all}, stats)

	slices.Sort(without)
	slices.Sort(beside)
	total := latencies(slices.Sorted(slices.Values(append(slices.Clone(without), beside...))))
	peak := hub.memory(t, "VmHWM")
	for _, c := range r.callers {
		c.leave()
	}
	after := 0
	if !assert.Eventually(t, func() bool { after = hub.memory(t, "VmRSS"); return after <= l.rest }, watchdog/3, 50*time.Millisecond, "the memory does not come back") {
		t.Logf("it has %d MiB", after>>20)
	}
	assert.LessOrEqual(t, peak, l.peak)
	t.Logf("%d clients, %d runs, %d calls: submitted in %v, %.0f calls/s; all ended in %v, %.0f runs/s; %d events to %d subscribers",
		l.clients, all, r.calls, submitted.Round(time.Millisecond), float64(r.calls)/submitted.Seconds(), took.Round(time.Millisecond), float64(all)/took.Seconds(), events, subscribers)
	t.Logf("a call: p50 %v, p99 %v, worst %v", total.at(50), total.at(99), total.at(100))
	t.Logf("beside clients that never read: p50 %v, p99 %v; without: p50 %v, p99 %v; ratios %.2f and %.2f", beside.at(50), beside.at(99), without.at(50), without.at(99),
		ratio(beside.at(50), without.at(50)), ratio(beside.at(99), without.at(99)))
	t.Logf("memory: %d MiB at first, %d MiB at most, %d MiB afterwards", before>>20, peak>>20, after>>20)
	assert.Less(t, ratio(beside.at(50), without.at(50)), float64(deafRatio), "who does not read delays the others")
	assert.Less(t, strings.Count(hub.log.String(), "\n"), logLines, "the log is flooded:\n%s", hub.log)
	s.end(hub)
}
