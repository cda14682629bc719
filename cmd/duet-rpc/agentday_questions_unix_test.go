//go:build unix && clients

package main_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

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

// transcript is the whole conversation of a session.
func (c *client) transcript(session string) string {
	c.t.Helper()
	var all strings.Builder
	for _, e := range c.items(session) {
		all.WriteString(e.Content + "\n")
	}
	return all.String()
}

// refusals are who did not let tool calls of a session run, and why.
func (c *client) refusals(session string) (list []string) {
	c.t.Helper()
	for _, e := range c.items(session) {
		if e.Type == "tool_result" && e.By != "" {
			list = append(list, e.By+": "+e.Why)
		}
	}
	return list
}

// begins opens a site of the agent, in which a conversation begins with a prompt.
func (a dayAgent) begins(t *testing.T, prompt string) (*agentSite, *client, launched) {
	s := a.site(t)
	c := s.open()
	return s, c, c.launch(prompt, s.agent)
}

// touchesUnderRule is a site whose user has a rule of an effect for the command that the
// agent wants to run.
func (a dayAgent) touchesUnderRule(t *testing.T, effect string) (*agentSite, *client, launched) {
	s := a.site(t)
	s.rules = fmt.Sprintf("[[rules]]\neffect = %q\ntool = \"Bash\"\ncommand = \"touch *\"\n", effect)
	s.configure()
	c := s.open()
	return s, c, c.launch("run: touch made", s.agent)
}

// neverAsked requires that no question was asked so far.
func (c *client) neverAsked() {
	c.t.Helper()
	for _, e := range c.seen() {
		require.NotEqual(c.t, "new_approval", e.Type, "%s", e.Raw)
	}
}

// asked counts the questions of a session so far.
func (c *client) asked(session string) (n int) {
	c.t.Helper()
	for _, e := range c.seen() {
		if e.Type == "new_approval" && e.Data.SessionID == session {
			n++
		}
	}
	return n
}

func playDenial(t *testing.T, a dayAgent) string {
	s, c, l := a.begins(t, "run: touch made")
	question := s.asksToRun(c, l.SessionID)
	var begun struct {
		SessionID string `json:"told_session_id"`
	}
	c.call("sendDecision", object{"approval_id": question.Data.ApprovalID, "decision": "deny", "comment": "say: another name, please", "tell": true}, &begun)
	c.awaitEnd(l.SessionID)
	const ended = "The denial ended the turn"
	assert.False(t, s.exists("made"))
	assert.Empty(t, c.pending())
	goesOn := "The tool said: "
	if a.denialEnds {
		assert.NotContains(t, c.conversation(l.SessionID), goesOn)
		assert.Contains(t, c.transcript(l.SessionID), cmp.Or(a.denialSays, ended))
	} else {
		assert.NotContains(t, c.transcript(l.SessionID), ended)
		assert.Contains(t, c.conversation(l.SessionID), goesOn)
	}
	for _, call := range c.refusals(l.SessionID) {
		assert.Equal(t, "user: say: another name, please", call)
	}
	// The reason is the next prompt, as it was wanted.
	require.NotEmpty(t, begun.SessionID)
	c.completes(launched{SessionID: begun.SessionID})
	assert.Contains(t, c.transcript(begun.SessionID), "and I did not give it: say: another name, please")
	l.SessionID = begun.SessionID
	// It is there for the next prompt.
	l = c.next(l, "say: hello")
	c.completes(l)
	assert.Contains(t, c.conversation(l.SessionID), "hello")
	s.close(c)
	if a.denialEnds {
		return "yes: its turn ends, which is said; it learns the reason with its next prompt"
	}
	return "yes: its turn goes on; it learns the reason with its next prompt"
}

// playRule has a rule of the user that denies what the agent would run.
func playRule(t *testing.T, a dayAgent) string {
	s, c, l := a.touchesUnderRule(t, "deny")
	c.awaitEnd(l.SessionID)
	assert.False(t, s.exists("made"))
	c.neverAsked()
	for _, call := range c.toolCalls(l.SessionID) { // some do not tell of one that they do not run
		assert.Equal(t, []string{"Bash", "failed"}, []string{call.Tool, call.Status})
	}
	refusals := c.refusals(l.SessionID)
	require.NotEmpty(t, refusals)
	for _, why := range refusals {
		assert.Regexp(t, `^rule=user: .*config.toml, line \d+: deny tool "Bash", command "touch \*"$`, why)
	}
	s.close(c)
	return "yes"
}

// playAllowRule has a rule of the user that allows what the agent would run.
func playAllowRule(t *testing.T, a dayAgent) string {
	s, c, l := a.touchesUnderRule(t, "allow")
	c.completes(l)
	assert.True(t, s.exists("made"))
	c.neverAsked()
	s.close(c)
	return "yes"
}

func playAlways(t *testing.T, a dayAgent) string {
	s, c, l := a.begins(t, "run: touch made")
	question := s.asksToRun(c, l.SessionID)
	c.call("sendDecision", object{"approval_id": question.Data.ApprovalID, "decision": "approve", "scope": "session"}, nil)
	c.completes(l)
	assert.True(t, s.exists("made"))

	l = c.next(l, "run: touch made")
	c.completes(l)
	for _, e := range c.seen() {
		require.False(t, e.Type == "new_approval" && e.Data.SessionID == l.SessionID, "it was asked again: %s", e.Raw)
	}
	l = c.next(l, "run: rm made") // that was not meant
	c.awaitQuestion(l.SessionID)
	c.call("interruptSession", object{"session_id": l.SessionID}, nil)
	require.Equal(t, "interrupted", c.awaitEnd(l.SessionID).Data.State)
	assert.True(t, s.exists("made"))
	s.close(c)
	return "yes"
}

// A question outlives the hub; its answer counts when the agent asks it again.
func playKill(t *testing.T, a dayAgent) string {
	s, c, l := a.begins(t, "run: touch made")
	question := s.asksToRun(c, l.SessionID)
	s.awaitRecord(`"touch made`) // the call, not the prompt
	c.crash()
	s.requireNobody("after a kill")

	c = s.open()
	require.True(t, c.pending()[question.Data.ApprovalID].Stale)
	c.call("sendDecision", object{"approval_id": question.Data.ApprovalID, "decision": "approve"}, nil)
	end := c.await("the end of the session that goes on", func(e event) bool {
		return e.Type == "session_status_changed" && e.Data.ThreadID == l.ThreadID && e.Data.SessionID != l.SessionID && ended(e.Data.State)
	})
	assert.Equal(t, "completed", end.Data.State, "%s", end.Raw)
	assert.True(t, s.exists("made"))
	for _, e := range c.seen() {
		require.False(t, e.Type == "new_approval" && e.Data.SessionID == end.Data.SessionID, "it was asked again: %s", e.Raw)
	}
	prompts := s.model.Prompts()
	if a.forgets {
		prompts = append(prompts, prompts[0])[:2] // it may know of the first one, or not
	}
	assert.Equal(t, []string{"run: touch made", "run: touch made"}, prompts, "the agent may have lost it, so it is sent again")
	s.close(c)
	return "yes"
}

// playSubAgent has a sub-agent run a command.
func playSubAgent(t *testing.T, a dayAgent) string {
	s, c, l := a.begins(t, "delegate: run: touch made")
	s.goesOn = true // it may take up what the sub-agent has done
	if a.sub == "" {
		question := s.asksToRun(c, l.SessionID)
		c.call("sendDecision", object{"approval_id": question.Data.ApprovalID, "decision": "approve"}, nil)
		c.completes(l)
		assert.True(t, s.exists("made"))
		assert.Equal(t, 1, c.asked(l.SessionID), "one command, one question")
		parents := make(map[string]string) // of tools, by their names
		ids := make(map[string]string)
		for _, e := range c.items(l.SessionID) {
			if e.Type == "tool_call" {
				parents[e.Tool], ids[e.Tool] = e.Parent, e.ID
			}
		}
		require.Len(t, parents, 2)
		if a.subFlat {
			assert.Empty(t, parents["Bash"])
			s.close(c)
			return "yes: asked; it does not say that a sub-agent does it"
		}
		for tool, id := range ids {
			if tool != "Bash" {
				assert.Equal(t, map[string]string{tool: "", "Bash": id}, parents)
			}
		}
		s.close(c)
		return "yes: it is shown below the sub-agent"
	}
	if a.subHangs {
		require.Eventually(t, func() bool { return slices.Equal(s.model.Prompts(), []string{"run: touch made"}) }, watchdog/3, pollEvery,
			"the sub-agent does not begin")
		c.awaitSilence(l, func(s silence) bool { return s.Tool != "" }) // which is reported at least
		c.call("interruptSession", object{"session_id": l.SessionID}, nil)
		require.Equal(t, "interrupted", c.awaitEnd(l.SessionID).Data.State)
	} else {
		c.completes(l)
		assert.Contains(t, c.conversation(l.SessionID), a.subSays)
	}
	assert.False(t, s.exists("made"))
	c.neverAsked()
	s.close(c)
	return "no: " + a.sub
}
