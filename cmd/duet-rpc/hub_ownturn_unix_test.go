//go:build unix

package main_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// awaitOwnTurn waits until an agent has gone on by itself, and returns the
// nth such session.
func (c *client) awaitOwnTurn(n int) (session string) {
	c.t.Helper()
	seen := make(map[string]bool)
	e := c.await("a session that an agent began", func(e event) bool {
		if e.Data.Subtype == "went_on" {
			seen[e.Data.SessionID] = true
		}
		return len(seen) == n
	})
	return e.Data.SessionID
}

// interruptOwnTurn interrupts a conversation in which its agent goes on turn after turn by itself,
// in the turn with a number or a later one, whose session it returns.
func (c *client) interruptOwnTurn(n int, l launched) (session string) {
	c.t.Helper()
	for c.awaitOwnTurn(n); c.try("interruptSession", object{"session_id": l.SessionID}, nil) != nil; n++ { // that turn has ended already
		c.awaitOwnTurn(n + 1)
	}
	return c.await("a turn is interrupted", func(e event) bool {
		return e.Type == "session_status_changed" && e.Data.State == "interrupted"
	}).Data.SessionID
}

// ownTurns are the sessions that agents have begun so far.
func (c *client) ownTurns() map[string]bool {
	sessions := make(map[string]bool)
	for _, e := range c.seen() {
		if e.Data.Subtype == "went_on" {
			sessions[e.Data.SessionID] = true
		}
	}
	return sessions
}

// What an agent says after its turn is a session of the same conversation, whole and in order.
func TestAnAgentThatGoesOnByItself(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.start()
	c.subscribe()
	l := c.launch("late:10000", "")
	own := c.awaitOwnTurn(1)
	assert.Equal(t, "completed", c.awaitEnd(own).Data.State)
	assert.Equal(t, "completed", c.session(l.SessionID).State)
	var want strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&want, "chunk %d ", i+1)
	}
	assert.True(t, strings.HasSuffix(c.conversation(own), "That is all. "+want.String()))

	// The conversation goes on from the session that a human has begun.
	var next launched
	c.call("continueSession", object{"session_id": l.SessionID, "query": "quiet"}, &next)
	assert.Equal(t, l.ThreadID, next.ThreadID)
	assert.Equal(t, "completed", c.awaitEnd(next.SessionID).Data.State)
	c.leave()
}

// Interrupting a session that has ended reaches what its agent does by itself since.
func TestInterruptingAnAgentThatGoesOnByItself(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.start()
	c.subscribe()
	l := c.launch("goal", "")
	own := c.interruptOwnTurn(2, l)
	turns := len(c.ownTurns())
	assert.Equal(t, "completed", c.session(l.SessionID).State)

	var next launched
	c.call("continueSession", object{"session_id": own, "query": "quiet slow"}, &next)
	assert.Equal(t, "completed", c.awaitEnd(next.SessionID).Data.State)
	assert.Equal(t, l.ThreadID, next.ThreadID)
	// The agent's earlier output may have come after the end, as a turn of its own.
	if !assert.LessOrEqual(t, len(c.ownTurns()), turns+1, "the goal was given up") {
		for session := range c.ownTurns() {
			t.Logf("%s, %s: %q", session, c.session(session).State, c.conversation(session))
		}
	}
	c.leave()
}

// A prompt that is sent while the agent works by itself waits until its question is answered. Then
// its run ends, and the agent works on in that of the prompt.
func TestAPromptForAnAgentThatGoesOnByItself(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.start()
	c.subscribe()
	l := c.launch("quiet background", "")
	own := c.awaitOwnTurn(1)
	c.awaitQuestion(own)
	var next launched
	c.call("continueSession", object{"session_id": l.SessionID, "query": "quiet"}, &next)
	assert.Equal(t, l.ThreadID, next.ThreadID)
	assert.Equal(t, "queued", c.session(next.SessionID).State)
	assert.Equal(t, "completed", c.approveAll(own).Data.State)
	assert.Equal(t, "completed", c.awaitEnd(next.SessionID).Data.State)
	assert.Contains(t, c.conversation(next.SessionID), "The background task has finished. I wrote demo.txt. Hello from the demo agent. You asked: quiet ")
	assert.Len(t, c.ownTurns(), 1)
	c.leave()
}
