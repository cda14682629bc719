//go:build soak

package main_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// count is how many processes have a text in their command, and how much
// memory all processes of the site have, in MB.
func (s *site) count(text string) (n int, memory float64) {
	for _, r := range s.running() {
		if strings.Contains(r.command, text) {
			n++
		}
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.pid))
		for line := range strings.Lines(string(status)) {
			if kilobytes, ok := strings.CutPrefix(line, "RssAnon:"); ok {
				kb, _ := strconv.ParseFloat(strings.Fields(kilobytes)[0], 64)
				memory += kb / 1024
			}
		}
	}
	return n, memory
}

// However many conversations there were, a few agents are kept, and those whose
// agents were ended go on.
func TestFinishedConversationsKeepFewAgents(t *testing.T) {
	t.Parallel()
	const tasks = 150
	s := newSite(t)
	c := s.start()
	c.subscribe()
	_, before := s.count("")
	var all []launched
	for i := range tasks {
		all = append(all, c.launch(fmt.Sprint("quiet number ", i), ""))
	}
	for _, l := range all {
		assert.Equal(t, "completed", c.awaitEnd(l.SessionID).Data.State)
	}
	agents, memory := s.count("demo-agent")
	t.Logf("%d tasks: %d agents, %d processes, %.0f MB (%.0f before)", tasks, agents, len(s.processes()), memory, before)
	require.Eventually(t, func() bool { n, _ := s.count("demo-agent"); return n <= 3 }, time.Minute, pollEvery, "as many as max_runs")
	_, memory = s.count("")
	t.Logf("and then: %d processes, %.0f MB", len(s.processes()), memory)

	// The demo agent loads its session: it counts its turns in there.
	var next launched
	c.call("continueSession", object{"session_id": all[0].SessionID, "query": "edit"}, &next)
	assert.Equal(t, all[0].ThreadID, next.ThreadID)
	assert.Contains(t, c.awaitQuestion(next.SessionID).Data.ToolUseID, "call-2-", "the second turn of its session")
	assert.Equal(t, "completed", c.approveAll(next.SessionID).Data.State)
	c.leave()
}
