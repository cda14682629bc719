//go:build unix

package supervisor

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// waiting returns the sessions with an idle agent, the longest idle first.
func waiting(s *Supervisor) (sessions []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range s.idle {
		sessions = append(sessions, i.of.session)
	}
	return sessions
}

// requireWaiting requires that exactly these are idle, once nothing runs.
func requireWaiting(t *testing.T, s *Supervisor, want ...string) {
	t.Helper()
	synctest.Wait()
	require.Equal(t, want, waiting(s), "those that wait")
}

// used returns the executor of a session that had a prompt.
func used(t *testing.T, s *Supervisor, session string) (pid string) {
	t.Helper()
	l := acquire(t, s, acp(session))
	defer l.Release()
	return prompt(t, l, "pid")
}

func TestIdleExecutorEnds(t *testing.T) {
	inBubble(t, func(*Options) {}, func(t *testing.T, s *Supervisor, m *memory) {
		pid := used(t, s, "a")
		time.Sleep(idleAfter - 1)
		l := acquire(t, s, acp("a"))
		assert.Equal(t, pid, prompt(t, l, "pid"), "it is still there")
		time.Sleep(10 * idleAfter)
		requireCount(t, s, 1, "it is in use")
		l.Release()
		time.Sleep(idleAfter - 1)
		requireWaiting(t, s, "a")
		time.Sleep(time.Nanosecond)
		requireWaiting(t, s)
		requireCount(t, s, 1, "without an agent it waits for another session")
		time.Sleep(idleAfter - 1)
		requireCount(t, s, 1, "as long")
		time.Sleep(time.Nanosecond)
		requireCount(t, s, 0, "and no longer")
		assert.False(t, m.has(pid))
		assert.NotEqual(t, pid, used(t, s, "a"))
	})
}

func TestLongestIdleAgentIsEndedFirst(t *testing.T) {
	inBubble(t, func(o *Options) { o.MostIdle, o.Most = 2, 10 }, func(t *testing.T, s *Supervisor, _ *memory) {
		for _, session := range []string{"a", "b", "c", "d"} {
			used(t, s, session)
		}
		requireWaiting(t, s, "c", "d")
		used(t, s, "c")
		used(t, s, "e")
		requireWaiting(t, s, "c", "e")
		assert.LessOrEqual(t, s.Count(), 4, "an executor without agents is used again")
	})
}

func TestSpareExecutorIsReused(t *testing.T) {
	inBubble(t, func(o *Options) { o.MostIdle = 0 }, func(t *testing.T, s *Supervisor, _ *memory) {
		pid := used(t, s, "a")
		requireWaiting(t, s)
		time.Sleep(idleAfter / 2)
		assert.Equal(t, pid, used(t, s, "b"))
		time.Sleep(idleAfter - 1)
		requireCount(t, s, 1, "it waits for another")
		time.Sleep(time.Nanosecond)
		requireCount(t, s, 0, "it ends in its own time")
	})
}

// Agents that share an executor are ended individually.
func TestAgentsOfOneExecutorEndIndividually(t *testing.T) {
	inBubble(t, func(o *Options) { o.MostIdle, o.Most = 2, 2 }, func(t *testing.T, s *Supervisor, _ *memory) {
		works := acquire(t, s, acp("long"))
		for _, session := range []string{"a", "b", "c"} {
			used(t, s, session)
			time.Sleep(time.Second)
		}
		requireWaiting(t, s, "b", "c")
		time.Sleep(idleAfter - 2*time.Second)
		requireWaiting(t, s, "c")
		time.Sleep(time.Second)
		requireWaiting(t, s)
		requireCount(t, s, 1, "the other one has something to do")
		assert.NotEmpty(t, prompt(t, works, "pid"), "it is left alone")
		works.Release()
		time.Sleep(2 * idleAfter)
		requireCount(t, s, 0, "it ends in its own time")
	})
}

// An agent with its own program in a terminal does not count as idle.
func TestAgentWithRunningProgramIsKept(t *testing.T) {
	inBubble(t, func(o *Options) { o.MostIdle = 1 }, func(t *testing.T, s *Supervisor, m *memory) {
		for _, session := range []string{"a works", "b works", "c"} {
			used(t, s, session)
		}
		time.Sleep(3 * idleAfter)
		requireWaiting(t, s, "a works", "b works")
		requireCount(t, s, 2, "the one of c is not needed any more")
		time.Sleep(100 * idleAfter)
		requireWaiting(t, s, "a works", "b works")
		requireCount(t, s, 2, "what they run runs on")
		used(t, s, "a works")
		requireWaiting(t, s, "b works", "a works")
		m.programsEnded.Store(true)
		time.Sleep(idleAfter)
		requireWaiting(t, s)
	})
}

// A prompt that comes while an agent is ending finds a place.
func TestPromptDuringEndOfAgent(t *testing.T) {
	inBubble(t, func(o *Options) { o.MostIdle, o.Most = 0, 2 }, func(t *testing.T, s *Supervisor, _ *memory) {
		for range 50 {
			used(t, s, "a")
			used(t, s, "b")
		}
		requireWaiting(t, s)
		requireCount(t, s, 1, "all had a place in it")
	})
}
