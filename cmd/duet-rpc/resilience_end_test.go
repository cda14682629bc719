//go:build unix

package main_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An editor that ends takes its agents with it; what they did and what they
// asked is there for the next one.
func TestEndOfInputInterruptsRuns(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.start()
	c.subscribe()
	asking := c.launch("permit:2", "")
	question := c.awaitQuestion(asking.SessionID)
	streaming := c.launch("stream:1000000@200", "")
	c.await("text", func(e event) bool { return e.Type == "message_delta" && e.Data.SessionID == streaming.SessionID })
	c.awaitState(asking.SessionID, "waiting_input")
	c.leave()
	s.requireNobody("after the end of input")

	c = s.start()
	c.subscribe()
	for _, l := range []launched{asking, streaming} {
		shown := c.session(l.SessionID)
		assert.Equal(t, "interrupted", shown.State)
		assert.Equal(t, "SHUTDOWN", shown.ErrorCode)
		assert.NotEmpty(t, shown.Error)
	}
	require.Contains(t, c.pending(), question.Data.ApprovalID)
	assert.True(t, c.pending()[question.Data.ApprovalID].Stale)
	var resumed launched
	c.call("continueSession", object{"session_id": asking.SessionID, "query": "continue"}, &resumed)
	assert.Equal(t, "completed", c.approveAll(resumed.SessionID).Data.State)
	assert.Empty(t, c.pending(), "a question that is asked again is asked once")
	c.leave()
}
