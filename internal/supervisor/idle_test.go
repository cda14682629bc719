//go:build unix

package supervisor

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// waiting are the conversations that have an agent and nothing to do, the one
// that waits longest first.
func waiting(s *Supervisor) (threads []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range s.idle {
		threads = append(threads, i.of.thread)
	}
	return threads
}

func requireWaiting(t *testing.T, s *Supervisor, want ...string) {
	t.Helper()
	require.Eventually(t, func() bool { return slices.Equal(want, waiting(s)) }, within, time.Millisecond, "those that wait")
}

// used is a conversation that had a prompt.
func used(t *testing.T, s *Supervisor, thread string) {
	t.Helper()
	l := acquire(t, s, acp(thread))
	prompt(t, l, "pid")
	l.Release()
}

func TestTheAgentThatWaitsLongestIsEndedFirst(t *testing.T) {
	s := newSupervisor(t, func(o *Options) { o.MostIdle, o.Most = 2, 10 })
	for _, thread := range []string{"a", "b", "c", "d"} {
		used(t, s, thread)
	}
	requireWaiting(t, s, "c", "d")
	used(t, s, "c")
	used(t, s, "e")
	requireWaiting(t, s, "c", "e")
	assert.LessOrEqual(t, s.Count(), 4, "an executor without agents is used again")
}

func TestAnExecutorWithoutAgentsIsUsedAgain(t *testing.T) {
	s := newSupervisor(t, func(o *Options) { o.MostIdle, o.IdleAfter = 0, 200*time.Millisecond })
	l := acquire(t, s, acp("a"))
	pid := prompt(t, l, "pid")
	l.Release()
	requireWaiting(t, s)
	l = acquire(t, s, acp("b"))
	assert.Equal(t, pid, prompt(t, l, "pid"))
	l.Release()
	require.Eventually(t, func() bool { return s.Count() == 0 }, within, time.Millisecond, "it ends in its own time")
}

// Agents that share an executor are ended each for itself.
func TestAgentsOfOneExecutorAreEndedEachForItself(t *testing.T) {
	s := newSupervisor(t, func(o *Options) { o.MostIdle, o.Most, o.IdleAfter = 2, 2, 100*time.Millisecond })
	works := acquire(t, s, acp("long"))
	for _, thread := range []string{"a", "b", "c"} {
		used(t, s, thread)
	}
	requireWaiting(t, s, "b", "c")
	requireWaiting(t, s) // in their own time
	assert.Equal(t, 1, s.Count())
	assert.NotEmpty(t, prompt(t, works, "pid"), "the other one is left alone")
	works.Release()
	require.Eventually(t, func() bool { return s.Count() == 0 }, within, time.Millisecond)
}

// An agent with a program of its own in a terminal is no idle one.
func TestAnAgentWhoseProgramsRunIsKept(t *testing.T) {
	s := newSupervisor(t, func(o *Options) { o.MostIdle, o.IdleAfter = 1, 20*time.Millisecond })
	for _, thread := range []string{"a works", "b works", "c"} {
		used(t, s, thread)
	}
	requireWaiting(t, s, "a works", "b works")
	require.Eventually(t, func() bool { return s.Count() <= 2 }, within, time.Millisecond)
	assert.Never(t, func() bool { return s.Count() == 0 || len(waiting(s)) != 2 }, 200*time.Millisecond, 5*time.Millisecond, "what they run runs on")
	used(t, s, "a works")
	requireWaiting(t, s, "b works", "a works")
}

// A prompt that comes while an agent is being ended finds a place.
func TestAPromptMeetsTheEndOfItsAgent(t *testing.T) {
	s := newSupervisor(t, func(o *Options) { o.MostIdle, o.Most = 0, 2 })
	for range 50 {
		used(t, s, "a")
		used(t, s, "b")
	}
	requireWaiting(t, s)
	assert.Equal(t, 1, s.Count())
}
