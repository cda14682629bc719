//go:build unix

package main_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func playInterrupt(t *testing.T, a dayAgent) string {
	s := a.site(t)
	c := s.open()
	l := c.launch("talk:", s.agent)
	c.await("text", func(e event) bool { return e.Type == "message_delta" && e.Data.SessionID == l.SessionID })
	c.call("interruptSession", object{"session_id": l.SessionID}, nil)
	require.Equal(t, "interrupted", c.awaitEnd(l.SessionID).Data.State)
	select {
	case <-s.model.HungUp:
	case <-time.After(watchdog / 3):
		require.Fail(t, "the agent still listens to its model")
	}
	assert.Contains(t, c.conversation(l.SessionID), "and on ")
	l = c.next(l, "say: hello") // it lives on, and knows of it
	c.completes(l)
	if a.forgets {
		require.Equal(t, []string{"say: hello"}, s.model.Prompts())
		s.close(c)
		return "yes: it forgets what it was asked"
	}
	require.Equal(t, []string{"talk:", "say: hello"}, s.model.Prompts())
	s.close(c)
	return "yes"
}

func playTooMuch(t *testing.T, a dayAgent) string {
	s := a.site(t)
	c := s.open()
	const prompt = "fail: 429 1"
	l := c.launch(prompt, s.agent)
	if a.givesUp {
		end := c.awaitEnd(l.SessionID)
		assert.Equal(t, "failed", end.Data.State, "%s", end.Raw)
		assert.Contains(t, end.Data.Error, "429 Too Many Requests")
		s.close(c)
		return "no: it gives up, which is told"
	}
	c.completes(l)
	assert.Contains(t, c.conversation(l.SessionID), "at last")
	s.close(c)
	return "yes: it tries again"
}

// playBroken has an API that never works again.
func playBroken(t *testing.T, a dayAgent) string {
	s := a.site(t)
	c := s.open()
	const prompt = "fail: 500"
	l := c.launch(prompt, s.agent)
	require.Eventually(t, func() bool { return s.model.Tries(prompt) > 1 }, watchdog/3, pollEvery, "it does not try again")
	c.call("interruptSession", object{"session_id": l.SessionID}, nil)
	require.Equal(t, "interrupted", c.awaitEnd(l.SessionID).Data.State)
	l = c.next(l, "say: hello")
	c.completes(l)
	assert.Contains(t, c.conversation(l.SessionID), "hello")
	s.close(c)
	return "yes: it tries again, until it is interrupted"
}

func playSignIn(t *testing.T, a dayAgent) string {
	s := a.site(t)
	s.signOut()
	s.configure()
	c := s.open()
	end := c.awaitEnd(c.launch("say: hello", s.agent).SessionID)
	assert.Equal(t, "failed", end.Data.State, "%s", end.Raw)
	assert.Regexp(t, a.unsigned, end.Data.Error)
	if a.keyless {
		assert.Equal(t, "AGENT_ERROR", end.Data.ErrorCode)
		s.close(c)
		return "no: it asks its API without a key; what that says is told"
	}
	assert.Equal(t, "AGENT_AUTH_REQUIRED", end.Data.ErrorCode)
	s.close(c)
	return "yes: told at once"
}
