//go:build unix && clients

package main_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// playTodos has the agent note what is to be done, which is its plan.
func playTodos(t *testing.T, a dayAgent) string {
	s, c, l := a.begins(t, "todo: look around")
	isPlan := func(e event) bool { return e.Type == "plan" && e.Data.SessionID == l.SessionID }
	if a.todoless != "" {
		c.awaitEnd(l.SessionID)
		assert.False(t, slices.ContainsFunc(c.seen(), isPlan))
		assert.Contains(t, c.conversation(l.SessionID), "There is no tool for that.")
		s.close(c)
		return "no: " + a.todoless
	}
	plan := c.await("a plan", isPlan)
	var told struct {
		Entries []struct{ Content, Status string }
	}
	require.NoError(t, json.Unmarshal(plan.Raw, &told))
	require.Len(t, told.Entries, 1)
	assert.Equal(t, "look around", told.Entries[0].Content)
	assert.Contains(t, []string{"pending", "in_progress"}, told.Entries[0].Status) // the first where one is only begun later
	c.completes(l)
	assert.Contains(t, c.conversation(l.SessionID), "The tool said: ")
	s.close(c)
	return "yes: it is the session's plan"
}

// playTimeout has an agent wait, for its model or for a sub-agent that asks nobody,
// until its run may not take longer.
func playTimeout(t *testing.T, a dayAgent) string {
	s := a.site(t)
	c := s.open()
	prompt := "hang:"
	if a.subHangs {
		prompt = "delegate: run: touch made"
	}
	var l launched
	c.call("launchSession", object{"query": prompt, "agent": s.agent, "timeout_ms": 12000}, &l)
	end := c.awaitEnd(l.SessionID)
	assert.Equal(t, "timed_out", end.Data.State, "%s", end.Raw)
	assert.Equal(t, "TIMEOUT", end.Data.ErrorCode)
	assert.Contains(t, end.Data.Error, "it took longer than it may")
	assert.Equal(t, "timed_out", c.session(l.SessionID).State)
	assert.False(t, s.exists("made"))
	s.close(c)
	return "yes: told with the reason"
}
