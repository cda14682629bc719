//go:build unix

package main_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// asksToRun waits until a session asks whether it may run something.
func (s *agentSite) asksToRun(c *client, session string) event {
	s.t.Helper()
	question := c.awaitQuestion(session)
	require.Equal(s.t, "Bash", question.Data.ToolName, "%s", question.Raw)
	c.awaitState(session, "waiting_input")
	require.False(s.t, s.exists("made"))
	return question
}

// next continues a session.
func (c *client) next(from launched, query string) (l launched) {
	c.t.Helper()
	c.call("continueSession", object{"session_id": from.SessionID, "query": query}, &l)
	return l
}

// completes waits for the end of a session, which has to be a good one.
func (c *client) completes(l launched) {
	c.t.Helper()
	end := c.awaitEnd(l.SessionID)
	require.Equal(c.t, "completed", end.Data.State, "%s", end.Raw)
}

func playDenial(t *testing.T, a dayAgent) string {
	s := a.site(t)
	c := s.open()
	l := c.launch("run: touch made", s.agent)
	question := s.asksToRun(c, l.SessionID)
	c.call("sendDecision", object{"approval_id": question.Data.ApprovalID, "decision": "deny", "comment": "another name, please"}, nil)
	c.awaitEnd(l.SessionID)
	assert.False(t, s.exists("made"))
	assert.Empty(t, c.pending())
	goesOn := "The tool said: "
	if a.denialEnds {
		assert.NotContains(t, c.conversation(l.SessionID), goesOn)
	} else {
		assert.Contains(t, c.conversation(l.SessionID), goesOn)
	}
	// It is there for the next prompt.
	l = c.next(l, "say: hello")
	c.completes(l)
	assert.Contains(t, c.conversation(l.SessionID), "hello")
	s.close(c)
	if a.denialEnds {
		return "yes: its turn ends"
	}
	return "yes: its turn goes on"
}

func playSlashCommand(t *testing.T, a dayAgent) string {
	s := a.site(t)
	for _, dir := range []string{".claude/commands", ".opencode/command"} {
		s.put(s.root+"/"+dir+"/greet.md", "---\ndescription: Greets\n---\nsay: hello $ARGUMENTS\n")
	}
	s.put(s.root+"/.gemini/commands/greet.toml", "description = \"Greets\"\nprompt = \"say: hello {{args}}\"\n")
	c := s.open()
	l := c.launch(a.prompt, s.agent)
	c.completes(l)
	assert.Contains(t, c.conversation(l.SessionID), a.says)
	s.close(c)
	if a.commandless != "" {
		return "yes, its own; " + a.commandless
	}
	return "yes"
}

func playInterrupt(t *testing.T, a dayAgent) string {
	s := a.site(t)
	c := s.open()
	l := c.launch("talk:", s.agent)
	c.await("text", func(e event) bool { return e.Type == "message_delta" && e.Data.SessionID == l.SessionID })
	c.call("interruptSession", object{"session_id": l.SessionID}, nil)
	require.Equal(t, "interrupted", c.awaitEnd(l.SessionID).Data.State)
	select {
	case <-s.model.HungUp:
	case <-time.After(watchdog / 9):
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
