//go:build unix && clients

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
	s, c, l := a.begins(t, "talk:")
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
	s, c, l := a.begins(t, "fail: 429 1")
	c.completes(l)
	assert.Contains(t, c.conversation(l.SessionID), "at last")
	s.close(c)
	return "yes: it tries again"
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
		return "no: it asks its API without a key; Duet shows the answer"
	}
	assert.Equal(t, "AGENT_AUTH_REQUIRED", end.Data.ErrorCode)
	var state struct {
		Session struct {
			AuthMethods []struct{ ID string } `json:"auth_methods"`
		} `json:"session"`
	}
	c.call("getSessionState", object{"session_id": end.Data.SessionID}, &state)
	s.close(c)
	if len(state.Session.AuthMethods) == 0 {
		return "yes: an error at once; it names no way to sign in"
	}
	return "yes: an error at once, with its ways to sign in"
}

// A silence is the report about an agent that gives no sign of life.
type silence struct {
	Note  string `json:"note"`
	Tool  string `json:"tool_id"`
	Ended bool   `json:"ended"`
}

// awaitSilence waits for a silence of a session that fits, and has not ended.
func (c *client) awaitSilence(l launched, fits func(silence) bool) {
	c.t.Helper()
	c.await("the agent's silence", func(e event) bool {
		var reported silence
		return e.Type == "agent_silent" && e.Data.SessionID == l.SessionID && json.Unmarshal(e.Raw, &reported) == nil && !reported.Ended && fits(reported)
	})
}

// isSilent reports whether the state of a session has since when its agent is silent.
func (c *client) isSilent(l launched) bool {
	c.t.Helper()
	var state struct {
		Session struct {
			SilentSince *time.Time `json:"silent_since"`
		} `json:"session"`
	}
	c.call("getSessionState", object{"session_id": l.SessionID}, &state)
	return state.Session.SilentSince != nil
}

// playOutage has the API fail for minutes, while the agent tries again. Duet shows the silence
// and what the agent prints. The user can interrupt the agent, which works again later.
func playOutage(t *testing.T, a dayAgent) string {
	s, c, l := a.begins(t, "fail: 500")
	if a.retells != "" {
		c.await("what it says of a try", func(e event) bool {
			return e.Type == "message_delta" && e.Data.SessionID == l.SessionID && strings.Contains(string(e.Raw), a.retells)
		})
		c.call("interruptSession", object{"session_id": l.SessionID}, nil)
		require.Equal(t, "interrupted", c.awaitEnd(l.SessionID).Data.State)
		s.close(c)
		return "yes: it says of each try that it tries again"
	}
	c.awaitSilence(l, func(s silence) bool {
		return !strings.HasPrefix(s.Note, "it is starting") && (s.Note != "" || !a.mutters)
	})
	// It may give a sign of life meanwhile, as with each try, and is silent again.
	require.Eventually(t, func() bool { return c.isSilent(l) }, watchdog/3, pollEvery)
	if a.withholds {
		for _, e := range c.seen() {
			require.NotContains(t, string(e.Raw), "Retrying with backoff")
		}
	}
	c.call("interruptSession", object{"session_id": l.SessionID}, nil)
	require.Equal(t, "interrupted", c.awaitEnd(l.SessionID).Data.State)
	assert.False(t, c.isSilent(l))
	l = c.next(l, "say: hello")
	c.completes(l)
	assert.Contains(t, c.conversation(l.SessionID), "hello")
	s.close(c)
	if a.withholds {
		return "yes: Duet shows that it is silent; it prints its errors only when it ends"
	}
	if a.mutters {
		return "yes: Duet shows that it is silent, and the error that it reports"
	}
	return "yes: Duet shows that it is silent"
}
