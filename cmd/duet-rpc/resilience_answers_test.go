//go:build unix

package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A recordedSite is a site whose agent keeps a record of what it did with the
// answers that it got.
type recordedSite struct {
	*site
	approved map[string]int // how often what was asked was allowed, and the reply came
}

func newRecordedSite(t testing.TB) *recordedSite {
	s := &recordedSite{newSite(t), make(map[string]int)}
	binary, err := os.Executable()
	require.NoError(t, err)
	s.agents(fmt.Sprintf(`
[agents.recorder]
driver = "acp"
command = [%q]
env = { %s = %q }
`, binary, recordingAgent, s.home))
	return s
}

// done is how often the agent did a thing.
func (s *recordedSite) done(thing string) (n int) {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.home, recordFile))
	if !os.IsNotExist(err) {
		require.NoError(s.t, err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.TrimSpace(line) == thing {
			n++
		}
	}
	require.LessOrEqual(s.t, n, s.approved[thing], "%s was carried out more often than it was allowed", thing)
	return n
}

// ask launches the agent, and waits for its question.
func (s *recordedSite) ask(c *client, how, thing string) (launched, event) {
	l := c.launch(how+" "+thing, "recorder")
	return l, c.awaitQuestion(l.SessionID)
}

func (s *recordedSite) approve(c *client, thing, id string) {
	s.t.Helper()
	s.approved[thing]++ // first: it may be carried out before the reply
	c.approve(id)
}

// questionOf is the open question whether a thing may be done, if there is one.
func (c *client) questionOf(thing string) (shownApproval, bool) {
	for _, a := range c.pending() {
		if strings.Contains(string(a.ToolInput), fmt.Sprintf("%q", "do "+thing)) {
			return a, true
		}
	}
	return shownApproval{}, false
}

// requireCarriedOut requires that a thing that was allowed is carried out, or
// that its question is open again, and says so: then it is allowed once more,
// until it is carried out.
func (s *recordedSite) requireCarriedOut(c *client, thing string) (openedAgain bool) {
	s.t.Helper()
	var a shownApproval
	require.Eventually(s.t, func() bool {
		var open bool
		if a, open = c.questionOf(thing); open {
			openedAgain = true
			assert.NotEmpty(s.t, a.Reopened, "no reason is given for asking again")
			assert.NotEmpty(s.t, a.Reopens)
			assert.True(s.t, a.Stale)
			s.approve(c, thing, a.ID)
			return false
		}
		return s.done(thing) > 0
	}, time.Minute, 5*time.Millisecond, "%s was allowed; it was neither carried out nor asked again", thing)
	return openedAgain
}

// requireTold requires that the answer to a question was taken, or that it is
// said which question asks again.
func (s *recordedSite) requireTold(c *client, id string) {
	s.t.Helper()
	var r struct{ Approval shownApproval }
	c.call("getApproval", object{"approval_id": id}, &r)
	assert.Equal(s.t, "approved", r.Approval.Status)
	assert.NotEqual(s.t, r.Approval.TakenAt != "", r.Approval.Reopening != "", "%+v", r.Approval)
}

// killDelays are the times after which something dies: before, while and after an agent
// that acts at once has acted, which takes it a millisecond or two.
var killDelays = func() []time.Duration {
	if !soak {
		return []time.Duration{0, 2 * time.Millisecond}
	}
	return []time.Duration{
		0, 100 * time.Microsecond, 300 * time.Microsecond, time.Millisecond, 2 * time.Millisecond, 4 * time.Millisecond, 10 * time.Millisecond, 30 * time.Millisecond,
	}
}()

// quiet waits until nothing runs.
func (c *client) quiet() {
	c.t.Helper()
	require.Eventually(c.t, func() bool {
		var stats struct{ Running, Queued int }
		c.call("task.stats", object{}, &stats)
		return stats.Running == 0 && stats.Queued == 0
	}, time.Minute, 5*time.Millisecond)
}

// Whenever the program is killed after it has acknowledged an answer, what was
// allowed is carried out, or is asked again.
func TestAnAnswerOutlivesTheHub(t *testing.T) {
	t.Parallel()
	s := newRecordedSite(t)
	again := 0
	for i, how := range []string{"plainly", "slowly", "silently"} {
		for j, delay := range killDelays {
			thing := fmt.Sprintf("thing-%d-%d", i, j)
			c := s.open()
			_, question := s.ask(c, how, thing)
			s.approve(c, thing, question.Data.ApprovalID)
			time.Sleep(delay) // machine: any moment will do
			c.crash()

			c = s.start()
			if s.requireCarriedOut(c, thing) {
				again++
			}
			c.quiet()
			c.crash()
			c = s.start() // nothing is left to be done
			_, open := c.questionOf(thing)
			assert.False(t, open, "%s was carried out %d times", thing, s.done(thing))
			s.requireTold(c, question.Data.ApprovalID)
			c.leave()
		}
	}
	t.Logf("%d of %d were asked again", again, 3*len(killDelays))
}
