package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The same where only the agent dies, or its executor: the hub lives.
func TestAnAnswerOutlivesTheAgent(t *testing.T) {
	t.Parallel()
	binary, err := os.Executable()
	require.NoError(t, err)
	for name, who := range map[string]string{"agent": binary, "executor": " executor"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newRecordedSite(t)
			c := s.start()
			c.t = t
			c.subscribe()
			again := 0
			for i, how := range []string{"plainly", "slowly"} {
				for j, delay := range killDelays {
					thing := fmt.Sprintf("thing-%d-%d", i, j)
					s.onlyOne(c)
					_, question := s.ask(c, how, thing)
					victim := s.find(t, who)
					s.approve(c, thing, question.Data.ApprovalID)
					time.Sleep(delay) // machine: any moment will do
					kill(t, victim)
					if s.requireCarriedOut(c, thing) {
						again++
					}
					c.quiet()
					s.requireTold(c, question.Data.ApprovalID)
				}
			}
			t.Logf("%d of %d were asked again", again, 2*len(killDelays))
			c.leave()
		})
	}
}

// onlyOne ends executors and agents, so that there is one of each afterwards.
func (s *recordedSite) onlyOne(c *client) {
	s.t.Helper()
	hub := hubOf(s.t, c)
	for _, r := range s.running() {
		if r.pid != c.cmd.Process.Pid && r.pid != hub {
			kill(s.t, r)
		}
	}
	require.Eventually(s.t, func() bool { return len(s.processes()) == 2 }, time.Minute, pollEvery)
}

// An agent that is resumed with an answer, and ends at once, uses up nothing.
func TestAnAnswerOutlivesTheAgentThatIsResumedWithIt(t *testing.T) {
	t.Parallel()
	s := newRecordedSite(t)
	leave := filepath.Join(s.home, leaveFile)
	c := s.start()
	_, question := s.ask(subscribed(c), "plainly", "it")
	c.crash()
	require.NoError(t, os.WriteFile(leave, nil, 0o600))

	c = subscribed(s.start())
	id := question.Data.ApprovalID
	for range 3 {
		s.approve(c, "it", id)
		var open shownApproval
		require.Eventually(t, func() bool {
			var there bool
			open, there = c.questionOf("it")
			return there && open.Reopens == id
		}, time.Minute, pollEvery, "no question is asked again")
		assert.Contains(t, open.Reopened, "approved before")
		assert.Zero(t, s.done("it"))
		id = open.ID
	}
	c.leave()

	require.NoError(t, os.Remove(leave))
	c = subscribed(s.start())
	assert.Contains(t, c.pending(), id)
	s.requireCarriedOut(c, "it")
	assert.Equal(t, 1, s.done("it"))
	c.leave()
}

func subscribed(c *client) *client {
	c.subscribe()
	return c
}
