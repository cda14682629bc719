package hub

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/e2e"
)

// An approval survives the death of its agent or executor: the agent does the approved thing, or
// Duet asks again.
func TestAnAnswerOutlivesTheAgent(t *testing.T) {
	t.Parallel()
	binary, err := os.Executable()
	require.NoError(t, err)
	for name, who := range map[string]string{"agent": binary, "executor": " executor"} {
		t.Run(name, func(t *testing.T) {
			s := newRecordedSite(e2e.Parallel(t))
			c := s.Start()
			c.T = t
			c.Subscribe()
			again := 0
			for i, how := range []string{"plainly", "slowly"} {
				for j, delay := range killDelays {
					thing := fmt.Sprintf("thing-%d-%d", i, j)
					s.onlyOne(c)
					_, question := s.ask(c, how, thing)
					victim := s.Find(t, who)
					s.approve(c, thing, question.Data.ApprovalID)
					time.Sleep(delay) // machine: any moment will do
					e2e.Kill(t, victim)
					if s.requireCarriedOut(c, thing) {
						again++
					}
					awaitQuiet(c)
					s.requireTold(c, question.Data.ApprovalID)
				}
			}
			t.Logf("Duet asked %d of %d questions again", again, 2*len(killDelays))
			c.Leave()
		})
	}
}

// onlyOne kills all executors and agents, so that the next turn starts one of each.
func (s *recordedSite) onlyOne(c *e2e.Client) {
	s.T.Helper()
	hub := e2e.HubOf(s.T, c)
	for _, r := range s.Running() {
		if r.PID != c.Cmd.Process.Pid && r.PID != hub {
			e2e.Kill(s.T, r)
		}
	}
	require.Eventually(s.T, func() bool { return len(s.Processes()) == 2 }, time.Minute, e2e.PollEvery)
}

// An agent that resumes with an approval and exits at once does not use it up: Duet asks again.
func TestAnAnswerOutlivesTheAgentThatIsResumedWithIt(t *testing.T) {
	s := newRecordedSite(e2e.Parallel(t))
	leave := filepath.Join(s.Home, e2e.LeaveFile)
	c := s.Open()
	_, question := s.ask(c, "plainly", "it")
	c.Crash()
	require.NoError(t, os.WriteFile(leave, nil, 0o600))

	c = s.Open()
	id := question.Data.ApprovalID
	for range 3 {
		s.approve(c, "it", id)
		var open e2e.ShownApproval
		require.Eventually(t, func() bool {
			var there bool
			open, there = questionOf(c, "it")
			return there && open.Reopens == id
		}, time.Minute, e2e.PollEvery, "Duet does not ask again")
		assert.Contains(t, open.Reopened, "allowed before")
		assert.Zero(t, s.done("it"))
		id = open.ID
	}
	c.Leave()

	require.NoError(t, os.Remove(leave))
	c = s.Open()
	assert.Contains(t, c.Pending(), id)
	s.requireCarriedOut(c, "it")
	assert.Equal(t, 1, s.done("it"))
	c.Leave()
}
