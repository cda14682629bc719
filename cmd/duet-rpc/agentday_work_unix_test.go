//go:build unix && clients

package main_test

import (
	"encoding/json"
	"slices"
	"strings"
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
	var reported struct {
		Entries []struct{ Content, Status string }
	}
	require.NoError(t, json.Unmarshal(plan.Raw, &reported))
	require.Len(t, reported.Entries, 1)
	assert.Equal(t, "look around", reported.Entries[0].Content)
	assert.Contains(t, []string{"pending", "in_progress"}, reported.Entries[0].Status) // the first where one is only reported later
	c.completes(l)
	assert.Contains(t, c.conversation(l.SessionID), "The tool said: ")
	s.close(c)
	return "yes: it is the session's plan"
}

// playBackground has an agent run a command in the background. When that has ended, after the
// turn, the agent goes on by itself, and wants to run another one.
func playBackground(t *testing.T, a dayAgent) string {
	s, c, own, question := a.goesOn(t)
	if question == nil {
		return "no: " + a.foreground
	}
	assert.Equal(t, "completed", c.approveAll(own).Data.State)
	assert.True(t, s.exists("made"))
	if !a.mute {
		assert.Contains(t, c.conversation(own), "The tool said: ")
	}
	s.close(c)
	switch {
	case a.holds:
		return "yes: its turn goes on until then; asked, and carried out"
	case a.mute:
		return "yes: asked, and carried out; of its own turn it sends the question alone"
	}
	return "yes: asked, and carried out"
}

// playBackgroundKill is playBackground where the hub is killed while the question is open.
func playBackgroundKill(t *testing.T, a dayAgent) string {
	s, c, own, question := a.goesOn(t)
	if question == nil {
		return "no: " + a.foreground
	}
	s.awaitRecord(`"touch made`)
	c.crash()
	s.requireNobody("after a kill")

	c = s.open()
	require.True(t, c.pending()[question.Data.ApprovalID].Stale)
	cut := c.session(own)
	assert.Equal(t, "interrupted", cut.State)
	c.call("sendDecision", object{"approval_id": question.Data.ApprovalID, "decision": "approve"}, nil)
	if a.holds || a.mute { // the agent gets its prompt again, or its first question had no input
		again := c.await("the question of the session that goes on", func(e event) bool {
			return e.Type == "new_approval" && e.Seq > question.Seq && e.Data.SessionID != own
		})
		want := "sleep 3"
		if a.mute {
			want = "touch made"
		}
		assert.Contains(t, string(again.Data.ToolInput), want)
		c.call("sendDecision", object{"approval_id": again.Data.ApprovalID, "decision": "approve"}, nil)
	}
	end := c.await("the end of the session that goes on", func(e event) bool {
		return e.Type == "session_status_changed" && e.Data.ThreadID == cut.ThreadID && e.Seq > question.Seq && e.Data.SessionID != own && ended(e.Data.State)
	})
	assert.Equal(t, "completed", end.Data.State, "%s", end.Raw)
	assert.True(t, s.exists("made"))
	s.close(c)
	if a.mute {
		return "yes: asked again, since its first question does not have the command alone"
	}
	return "yes"
}

// goesOn has an agent run a command in the background, and returns the question that it asks
// when it goes on by itself, in the session own; nil if it runs nothing in the background.
func (a dayAgent) goesOn(t *testing.T) (s *agentSite, c *client, own string, question *event) {
	s, c, l := a.begins(t, "background: sleep 3; echo over")
	s.goesOn = true
	if a.foreground != "" {
		c.completes(l)
		assert.Contains(t, c.conversation(l.SessionID), "There is no tool for that.")
		s.close(c)
		return s, c, "", nil
	}
	var asked event
	if a.holds {
		first := c.awaitQuestion(l.SessionID)
		c.call("sendDecision", object{"approval_id": first.Data.ApprovalID, "decision": "approve"}, nil)
		own = l.SessionID
		asked = c.await("a question when the command has ended", func(e event) bool {
			return e.Type == "new_approval" && e.Data.SessionID == own && e.Data.ApprovalID != first.Data.ApprovalID
		})
	} else {
		assert.Equal(t, "completed", c.approveAll(l.SessionID).Data.State)
		own = c.awaitOwnTurn(1)
		asked = c.awaitQuestion(own)
	}
	assert.Equal(t, "Bash", asked.Data.ToolName, "%s", asked.Raw)
	if a.mute {
		assert.Contains(t, string(asked.Raw), "Requesting approval to Running: touch made")
	} else {
		assert.Contains(t, string(asked.Data.ToolInput), "touch made")
	}
	assert.False(t, s.exists("made"))
	return s, c, own, &asked
}

// playGoal gives the agent a goal: it starts turn after turn by itself, until it is interrupted.
func playGoal(t *testing.T, a dayAgent) string {
	if a.goalless != "" {
		return "no: " + a.goalless
	}
	s, c, l := a.begins(t, "/goal say: one step")
	s.goesOn = true
	c.completes(l)
	own := c.awaitOwnTurn(2)
	c.call("interruptSession", object{"session_id": own}, nil)
	end := c.awaitEnd(own)
	assert.Contains(t, []string{"interrupted", "completed"}, end.Data.State)
	for end.Data.State == "completed" { // the agent was between two turns
		own = c.awaitOwnTurn(len(c.ownTurns()) + 1)
		c.call("interruptSession", object{"session_id": own}, nil)
		end = c.awaitEnd(own)
	}
	assert.Contains(t, c.conversation(own), "one step")
	goesOn := true
	for tries := 0; goesOn && tries < 5; tries++ {
		turns := len(c.ownTurns())
		var next launched
		c.call("continueSession", object{"session_id": own, "query": "say: something else"}, &next)
		c.completes(next)
		// The agent may have begun another turn just before the interrupt reached it.
		if goesOn = len(c.ownTurns()) > turns; goesOn {
			own = c.awaitOwnTurn(len(c.ownTurns()))
			c.call("interruptSession", object{"session_id": own}, nil)
			c.awaitEnd(own)
		}
	}
	assert.False(t, goesOn, "the goal was not given up")
	s.close(c)
	return "yes: each turn is a session, and interrupting one ends the goal"
}

// playSteer has a person say something while the agent talks.
func playSteer(t *testing.T, a dayAgent) string {
	if a.takesSteering(t, a.site(t)) {
		return "yes"
	}
	if a.folder != claudeFolder {
		return "no: it comes behind the turn"
	}
	s := a.site(t)
	s.more += "\nprotocol = 1"
	s.configure()
	assert.True(t, a.takesSteering(t, s))
	return "yes, with `protocol = 1`; in version 2 of the protocol it comes behind the turn"
}

// takesSteering reports whether what a person says while the agent talks reaches it in its turn.
func (a dayAgent) takesSteering(t *testing.T, s *agentSite) bool {
	c := s.open()
	l := c.launch("talk:", s.agent)
	c.await("text", func(e event) bool { return e.Type == "message_delta" && e.Data.SessionID == l.SessionID })
	var begun struct {
		launched
		Delivered string `json:"delivered"`
	}
	c.call("continueSession", object{"session_id": l.SessionID, "query": "say: heard", "deliver": "steer"}, &begun)
	if begun.Delivered == "queued" {
		c.call("interruptSession", object{"session_id": l.SessionID}, nil)
		assert.Equal(t, "interrupted", c.awaitEnd(l.SessionID).Data.State)
		c.completes(begun.launched)
		assert.Contains(t, c.conversation(begun.SessionID), "heard")
		s.close(c)
		return false
	}
	assert.Equal(t, "injected", begun.Delivered)
	assert.Equal(t, l.SessionID, begun.SessionID)
	c.completes(l)
	before, after, found := strings.Cut(c.transcript(l.SessionID), "say: heard\n")
	assert.True(t, found)
	assert.Contains(t, before, "and on")
	assert.Contains(t, after, "heard")
	s.close(c)
	return true
}

// playTimeout has an agent wait, for its model or for a sub-agent that asks no permission,
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
	return "yes: it ends with the reason"
}
