//go:build unix

package main_test

import (
	"encoding/json"
	"strings"
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
	c.awaitSilence(l.SessionID, a.mutters)
	c.call("interruptSession", object{"session_id": l.SessionID}, nil)
	require.Equal(t, "interrupted", c.awaitEnd(l.SessionID).Data.State)
	assert.Nil(t, c.silentSince(l.SessionID))
	l = c.next(l, "say: hello")
	c.completes(l)
	assert.Contains(t, c.conversation(l.SessionID), "hello")
	s.close(c)
	return "yes: it tries again, until it is interrupted"
}

// awaitSilence waits until it is told that the agent of a session gives no sign of
// life, though it has its prompt; and what it prints, if it does.
func (c *client) awaitSilence(session string, mutters bool) {
	c.t.Helper()
	c.await("silence", func(e event) bool {
		var told struct {
			Note  string `json:"note"`
			Ended bool   `json:"ended"`
		}
		return e.Type == "agent_silent" && e.Data.SessionID == session && json.Unmarshal(e.Raw, &told) == nil &&
			!told.Ended && !strings.HasPrefix(told.Note, "it is starting") && (told.Note != "" || !mutters)
	})
	assert.NotNil(c.t, c.silentSince(session))
}

// silentSince is since when the agent of a session is silent; nil: it is not.
func (c *client) silentSince(session string) *time.Time {
	c.t.Helper()
	var r struct {
		Session struct {
			SilentSince *time.Time `json:"silent_since"`
		} `json:"session"`
	}
	c.call("getSessionState", object{"session_id": session}, &r)
	return r.Session.SilentSince
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
