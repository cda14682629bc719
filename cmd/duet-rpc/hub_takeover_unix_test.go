//go:build unix

package main_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// takeovers is how often the hub is killed in one project.
const takeovers = 5

// workingWithin is how long an editor whose hub was killed may be without one.
const workingWithin = 2 * time.Second

// When the daemon is killed, another takes its place at once, and no editor loses
// anything but what it was just asking.
func TestTakeover(t *testing.T) {
	t.Parallel()
	fast := fastProgram(t)
	takeOver(t, fast, takeovers, workingWithin)
}

// takeOver kills the hub of four editors' project again and again.
func takeOver(t *testing.T, binary string, times int, within time.Duration) {
	s := newSite(t)
	s.binary = binary
	s.args = []string{"--test-methods"}
	var editors []*client
	join := func() *client {
		c := s.open()
		editors = append(editors, c)
		return c
	}
	for range 3 {
		join()
	}
	var measured []time.Duration
	known := newLedger()
	for round := range times {
		hub := s.lockHolder()

		// Runs are under way: one that talks, one that asks, one that waits.
		talking := editors[0].launch(fmt.Sprintf("quiet stream:100000@400 round %d", round), "")
		asking := editors[1].launch(fmt.Sprintf("quiet permit:1 round %d", round), "")
		question := editors[2].awaitQuestion(asking.SessionID)
		editors[2].await("text", func(e event) bool {
			return e.Type == "message_delta" && e.Data.SessionID == talking.SessionID
		})
		behind := make([]int64, len(editors)) // the last number each has seen
		for i, c := range editors {
			c.await("text", func(e event) bool {
				return e.Type == "message_delta" && e.Data.SessionID == talking.SessionID
			})
			c.awaitQuestion(asking.SessionID)
			behind[i] = lastSeq(c.seen())
		}

		// Each editor has requests pending, and asks on as soon as it learns
		// that they are lost.
		var group sync.WaitGroup
		var mu sync.Mutex
		var killed *stopwatch // since then
		type outcome struct {
			lost  []error
			after time.Duration
			pid   int
			err   error
		}
		outcomes := make([]outcome, len(editors))
		pendings := func(c *client) []func() error {
			return []func() error{
				func() error { return c.try("test.sleep", object{"ms": 80_000}, nil) },
				func() error {
					return c.try("execute_prompt", object{"prompt": "quiet permit:1", "timeout_ms": 80_000}, nil)
				},
			}
		}
		for i, c := range editors {
			group.Go(func() {
				var both sync.WaitGroup
				lost := make([]error, 2)
				for j, ask := range pendings(c) {
					both.Go(func() { lost[j] = ask() })
				}
				both.Wait()
				var status struct{ PID int }
				err := errors.Join(c.try("task.stats", object{}, nil), c.try("daemon.status", object{}, &status))
				mu.Lock()
				defer mu.Unlock()
				outcomes[i] = outcome{lost, killed.had(), status.PID, err}
			})
		}
		// The hub has what they ask.
		require.Eventually(t, func() bool { return len(editors[0].pending()) >= 1+len(editors) }, watchdog/3, pollEvery, "the prompts do not come to ask")

		mu.Lock()
		killed = startStopwatch(t)
		mu.Unlock()
		s.crashHub()
		group.Wait()
		killed.ends()
		successor := s.lockHolder()
		var took []time.Duration
		for i, o := range outcomes {
			for _, err := range o.lost {
				var e *wireError
				require.ErrorAs(t, err, &e, "editor %d", i)
				assert.Equal(t, -32042, e.Code, "%v", e)
				assert.JSONEq(t, `{"kind":"hub_lost","retry":true}`, string(e.Data))
			}
			require.NoError(t, o.err, "editor %d", i)
			assert.Equal(t, successor, o.pid, "one process has the lock and answers all")
			assert.Less(t, o.after, within, "editor %d", i)
			took = append(took, o.after)
		}
		measured = append(measured, took...)
		require.NotEqual(t, hub, successor)
		lines := s.lines()
		assert.Equal(t, successor, hubOf(t, lines), "who has the lock listens")
		lines.conn.Close()

		// What ran is interrupted, what was asked is still asked; everybody is
		// sent both, and a new client receives the same.
		for _, c := range editors {
			end := c.awaitEnd(talking.SessionID)
			assert.Equal(t, "interrupted", end.Data.State)
			assert.Equal(t, "ORPHANED", end.Data.ErrorCode)
			require.True(t, c.pending()[question.Data.ApprovalID].Stale)
		}
		join()
		next := editors[1].launch("quiet", "")
		var last int64
		for _, c := range editors {
			end := c.awaitEnd(next.SessionID)
			assert.Equal(t, "completed", end.Data.State)
			last = end.Seq
		}
		fresh := editors[len(editors)-1].seen()
		want := lasting(fresh, last)
		texts := textsOf(fresh)
		for i, c := range editors[:3] {
			seen := c.seen()
			requireRising(t, seen)
			got := lasting(seen, last)
			for seq, reported := range want {
				if _, ok := got[seq]; !ok {
					assert.Fail(t, "an event is lost", "editor %d, which had seen %d, did not receive %d %s", i, behind[i], seq, reported)
				}
			}
			for seq, reported := range got {
				assert.Equal(t, want[seq], reported, "event %d of editor %d", seq, i)
			}
			for key, text := range textsOf(seen) {
				assert.Equal(t, texts[key], text, "the text %s of editor %d", key, i)
			}
		}
		known.take(t, fresh)
		answered := editors[round%len(editors)]
		answered.approve(question.Data.ApprovalID)
		for id := range answered.pending() {
			if id != question.Data.ApprovalID {
				answered.call("sendDecision", object{"approval_id": id, "decision": "deny", "comment": "no agent asks this now"}, nil)
			}
		}
		for _, c := range editors { // it goes on where it asked
			c.await("the question's answer", func(e event) bool {
				return e.Type == "approval_resolved" && e.Data.ApprovalID == question.Data.ApprovalID && e.Data.Decision == "approved"
			})
			c.await("what goes on", func(e event) bool {
				return e.Type == "session_status_changed" && e.Data.ThreadID == asking.ThreadID && e.Data.State == "completed"
			})
		}
		require.False(t, t.Failed(), "round %d", round)
		editors[0].leave()
		editors = editors[1:]
	}
	slices.Sort(measured)
	t.Logf("from the kill to an answer, for %d editors: median %v, worst %v", len(measured),
		measured[len(measured)/2].Round(time.Millisecond), measured[len(measured)-1].Round(time.Millisecond))

	for _, c := range editors {
		c.leave()
	}
	requireNoFile(t, s.socketPath())
}

// lastSeq is the highest number among events.
func lastSeq(events []event) (last int64) {
	for _, e := range events {
		last = max(last, e.Seq)
	}
	return last
}
