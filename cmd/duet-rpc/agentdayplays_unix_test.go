//go:build unix && clients

package main_test

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/testkit"
	"github.com/duet-rpc/duet-rpc/testdata/agents/model"
)

// asksToRun waits for a session's question about a shell command.
func (s *agentSite) asksToRun(c *client, session string) event {
	s.t.Helper()
	question := c.awaitQuestion(session)
	require.Equal(s.t, "Bash", question.Data.ToolName, "%s", question.Raw)
	c.awaitState(session, "waiting_input")
	require.False(s.t, s.exists("made"))
	return question
}

// transcript returns the text of a session's whole conversation.
func (c *client) transcript(session string) string {
	c.t.Helper()
	var all strings.Builder
	for _, e := range c.items(session) {
		all.WriteString(e.Content + "\n")
	}
	return all.String()
}

// refusals returns the decider and the reason of each refused tool call of a session.
func (c *client) refusals(session string) (list []string) {
	c.t.Helper()
	for _, e := range c.items(session) {
		if e.Type == "tool_result" && e.By != "" {
			list = append(list, e.By+": "+e.Why)
		}
	}
	return list
}

// opens returns a site of the agent and its client.
func (a dayAgent) opens(t *testing.T) (*agentSite, *client) {
	s := a.site(t)
	return s, s.open()
}

// begins is opens with a launched session.
func (a dayAgent) begins(t *testing.T, prompt string) (*agentSite, *client, launched) {
	s, c := a.opens(t)
	return s, c, c.launch(prompt, s.agent)
}

// touchesUnderRule is begins with a user's rule for the agent's command. effect is allow or deny.
func (a dayAgent) touchesUnderRule(t *testing.T, effect string) (*agentSite, *client, launched) {
	s := a.site(t)
	s.rules = fmt.Sprintf("[[rules]]\neffect = %q\ntool = \"Bash\"\ncommand = \"touch *\"\n", effect)
	s.configure()
	c := s.open()
	return s, c, c.launch("run: touch made", s.agent)
}

// neverAsked requires that no session has asked a question so far.
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
	// With tell, the reason is the next prompt.
	require.NotEmpty(t, begun.SessionID)
	c.completes(launched{SessionID: begun.SessionID})
	assert.Contains(t, c.transcript(begun.SessionID), "and I did not give it: say: another name, please")
	l.SessionID = begun.SessionID
	// The agent takes another prompt.
	l = c.goesOn(l, "say: hello")
	assert.Contains(t, c.conversation(l.SessionID), "hello")
	s.close(c)
	if a.denialEnds {
		return "yes: its turn ends, which is said; it learns the reason with its next prompt"
	}
	return "yes: its turn goes on; it learns the reason with its next prompt"
}

// playRule has a user's rule deny the agent's command.
func playRule(t *testing.T, a dayAgent) string {
	s, c, l := a.touchesUnderRule(t, "deny")
	c.awaitEnd(l.SessionID)
	assert.False(t, s.exists("made"))
	c.neverAsked()
	for _, call := range c.toolCalls(l.SessionID) { // some agents do not report a refused call
		assert.Equal(t, []string{"Bash", "failed"}, []string{call.Tool, call.Status})
	}
	refusals := c.refusals(l.SessionID)
	require.NotEmpty(t, refusals)
	for _, why := range refusals {
		assert.Regexp(t, `^rule=user: .*config.toml, line \d+: deny tool "Bash", command "touch \*"$`, why)
	}
	return s.closed(c, "yes")
}

// playAllowRule has a user's rule allow the agent's command.
func playAllowRule(t *testing.T, a dayAgent) string {
	s, c, l := a.touchesUnderRule(t, "allow")
	c.completes(l)
	assert.True(t, s.exists("made"))
	c.neverAsked()
	return s.closed(c, "yes")
}

func playAlways(t *testing.T, a dayAgent) string {
	s, c, l := a.begins(t, "run: touch made")
	question := s.asksToRun(c, l.SessionID)
	c.call("sendDecision", object{"approval_id": question.Data.ApprovalID, "decision": "approve", "scope": "session"}, nil)
	c.completes(l)
	assert.True(t, s.exists("made"))

	l = c.goesOn(l, "run: touch made")
	for _, e := range c.seen() {
		require.False(t, e.Type == "new_approval" && e.Data.SessionID == l.SessionID, "the agent asked again: %s", e.Raw)
	}
	l = c.next(l, "run: rm made") // the decision does not cover this command
	c.awaitQuestion(l.SessionID)
	c.interrupt(l)
	assert.True(t, s.exists("made"))
	return s.closed(c, "yes")
}

// playKill kills the hub while a question is open. The question survives, and its answer applies
// when the agent asks again.
func playKill(t *testing.T, a dayAgent) string {
	s, c, l := a.begins(t, "run: touch made")
	question := s.asksToRun(c, l.SessionID)
	s.awaitRecord(`"touch made`) // the call, not the prompt
	c, _ = s.answeredAfterKill(c, l, question)
	assert.True(t, s.exists("made"))
	prompts := s.model.Prompts()
	if a.forgets {
		prompts = append(prompts, prompts[0])[:2] // the agent may have kept or lost the first prompt
	}
	assert.Equal(t, []string{"run: touch made", "run: touch made"}, prompts, "the hub sends the prompt again, since the agent may have lost it")
	return s.closed(c, "yes")
}

// answeredAfterKill kills the hub while a question is open, and approves it in the next one. It returns
// the next hub's client and the end of the continued session. The agent must not ask again.
func (s *agentSite) answeredAfterKill(c *client, l launched, question event) (next *client, end event) {
	s.t.Helper()
	c.crash()
	s.requireNobody("after a kill")
	next = s.open()
	require.True(s.t, next.pending()[question.Data.ApprovalID].Stale)
	next.approve(question.Data.ApprovalID)
	end = next.await("the end of the continued session", func(e event) bool {
		return e.Type == "session_status_changed" && e.Data.ThreadID == l.ThreadID && e.Data.SessionID != l.SessionID && ended(e.Data.State)
	})
	assert.Equal(s.t, "completed", end.Data.State, "%s", end.Raw)
	for _, e := range next.seen() {
		require.False(s.t, e.Type == "new_approval" && e.Data.SessionID == end.Data.SessionID, "the agent asked again: %s", e.Raw)
	}
	return next, end
}

// playDay is the whole path of a day, in a git worktree: a prompt, a question, a kill, an answer, the
// change, the landing.
func playDay(t *testing.T, a dayAgent) string {
	git := testkit.NeedTool(t, "git")
	s := a.site(t)
	s.rules = "[checkpoints]\nenabled = true\n"
	s.configure()
	c := s.open()
	for _, args := range [][]string{{"init", "-q"}, {"config", "user.name", "User"}, {"config", "user.email", "user@localhost"}, {"commit", "-q", "--allow-empty", "-m", "first"}} {
		out, err := exec.Command(git, append([]string{"-C", s.root}, args...)...).CombinedOutput()
		require.NoError(t, err, "git %q: %s", args, out)
	}
	l := c.begins("launchSession", object{"query": "run: echo made > made", "agent": s.agent, "worktree": true})
	question := s.asksToRun(c, l.SessionID)
	s.awaitRecord(`"echo made`) // the call, not the prompt
	c, end := s.answeredAfterKill(c, l, question)
	assert.False(t, s.exists("made"), "the agent works in the worktree")
	var changes struct {
		Snapshots []struct {
			Path string `json:"file_path"`
		}
	}
	c.call("getSessionSnapshots", object{"session_id": end.Data.SessionID}, &changes)
	require.Len(t, changes.Snapshots, 1, "the change of the command")
	assert.Equal(t, "made", filepath.Base(changes.Snapshots[0].Path))
	c.call("session.land", object{"session": end.Data.SessionID}, nil)
	assert.Equal(t, "made\n", readFile(t, filepath.Join(s.root, "made")))
	return s.closed(c, "yes")
}

// playSubAgent has a sub-agent run a command.
func playSubAgent(t *testing.T, a dayAgent) string {
	s, c, l := a.begins(t, "delegate: run: touch made")
	s.goesOn = true // the agent may start a turn with the sub-agent's result
	if a.sub == "" {
		question := s.asksToRun(c, l.SessionID)
		c.approve(question.Data.ApprovalID)
		c.completes(l)
		assert.True(t, s.exists("made"))
		assert.Equal(t, 1, c.asked(l.SessionID), "one command, one question")
		parents := make(map[string]string) // tool names to parents
		ids := make(map[string]string)
		for _, e := range c.items(l.SessionID) {
			if e.Type == "tool_call" {
				parents[e.Tool], ids[e.Tool] = e.Parent, e.ID
			}
		}
		require.Len(t, parents, 2)
		if a.subFlat {
			assert.Empty(t, parents["Bash"])
			return s.closed(c, "yes: asked; it does not say that a sub-agent does it")
		}
		for tool, id := range ids {
			if tool != "Bash" {
				assert.Equal(t, map[string]string{tool: "", "Bash": id}, parents)
			}
		}
		return s.closed(c, "yes: it is shown below the sub-agent")
	}
	if a.subHangs {
		require.Eventually(t, func() bool { return slices.Equal(s.model.Prompts(), []string{"run: touch made"}) }, watchdog/3, pollEvery,
			"the sub-agent did not start")
		c.awaitSilence(l, func(s silence) bool { return s.Tool != "" }) // the hub reports the silence
		c.interrupt(l)
	} else {
		c.completes(l)
		assert.Contains(t, c.conversation(l.SessionID), a.subSays)
	}
	assert.False(t, s.exists("made"))
	c.neverAsked()
	return s.closed(c, "no: "+a.sub)
}

// playTodos has the agent write a list of tasks, which becomes the session's plan.
func playTodos(t *testing.T, a dayAgent) string {
	s, c, l := a.begins(t, "todo: look around")
	isPlan := func(e event) bool { return e.Type == "plan" && e.Data.SessionID == l.SessionID }
	if a.todoless != "" {
		c.awaitEnd(l.SessionID)
		assert.False(t, slices.ContainsFunc(c.seen(), isPlan))
		assert.Contains(t, c.conversation(l.SessionID), "There is no tool for that.")
		return s.closed(c, "no: "+a.todoless)
	}
	plan := c.await("a plan", isPlan)
	var reported struct {
		Entries []struct{ Content, Status string }
	}
	require.NoError(t, json.Unmarshal(plan.Raw, &reported))
	require.Len(t, reported.Entries, 1)
	assert.Equal(t, "look around", reported.Entries[0].Content)
	assert.Contains(t, []string{"pending", "in_progress"}, reported.Entries[0].Status) // pending, if the agent reports its progress later
	c.completes(l)
	assert.Contains(t, c.conversation(l.SessionID), "The tool said: ")
	return s.closed(c, "yes: it is the session's plan")
}

// playBackground has an agent run a command in the background. The end of that command starts an
// agent-initiated turn with another command.
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

// playBackgroundKill is playBackground with a kill of the hub while the question is open.
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
	c.approve(question.Data.ApprovalID)
	if a.holds || a.mute { // the agent receives its prompt again, or its first question had no input
		again := c.await("the question of the continued session", func(e event) bool {
			return e.Type == "new_approval" && e.Seq > question.Seq && e.Data.SessionID != own
		})
		want := "sleep 3"
		if a.mute {
			want = "touch made"
		}
		assert.Contains(t, string(again.Data.ToolInput), want)
		c.approve(again.Data.ApprovalID)
	}
	end := c.await("the end of the continued session", func(e event) bool {
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

// goesOn has an agent run a command in the background. It returns the agent's question after the
// end of that command, and the session own of the question. question is nil for an agent without
// background commands.
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
		c.approve(first.Data.ApprovalID)
		own = l.SessionID
		asked = c.await("a question after the end of the command", func(e event) bool {
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

// playGoal gives the agent a goal. The agent starts turns by itself until an interruption.
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
		next := c.begins("continueSession", object{"session_id": own, "query": "say: something else"})
		c.completes(next)
		// The agent may have begun another turn just before the interrupt reached it.
		if goesOn = len(c.ownTurns()) > turns; goesOn {
			own = c.awaitOwnTurn(len(c.ownTurns()))
			c.call("interruptSession", object{"session_id": own}, nil)
			c.awaitEnd(own)
		}
	}
	assert.False(t, goesOn, "the agent continues its goal after the interruption")
	return s.closed(c, "yes: each turn is a session, and interrupting one ends the goal")
}

// playSteer sends a steered message during the agent's turn.
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

// takesSteering reports whether a steered message reaches the agent within its turn.
func (a dayAgent) takesSteering(t *testing.T, s *agentSite) bool {
	c := s.open()
	l := c.launch("talk:", s.agent)
	c.awaitText(l)
	var begun struct {
		launched
		Delivered string `json:"delivered"`
	}
	c.call("continueSession", object{"session_id": l.SessionID, "query": "say: heard", "deliver": "steer"}, &begun)
	if begun.Delivered == "queued" {
		c.interrupt(l)
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

// playTimeout has a run exceed its time limit. The agent waits for its model, or for a sub-agent
// whose question it does not pass on.
func playTimeout(t *testing.T, a dayAgent) string {
	s, c := a.opens(t)
	prompt := "hang:"
	if a.subHangs {
		prompt = "delegate: run: touch made"
	}
	l := c.begins("launchSession", object{"query": prompt, "agent": s.agent, "timeout_ms": 12000})
	end := c.endsAs(l.SessionID, "timed_out", "TIMEOUT")
	assert.Contains(t, end.Data.Error, "it took longer than it may")
	assert.Equal(t, "timed_out", c.session(l.SessionID).State)
	assert.False(t, s.exists("made"))
	return s.closed(c, "yes: it ends with the reason")
}

// playPlan approves the agent's plan, and then its edit.
func playPlan(t *testing.T, a dayAgent) string {
	s, c := a.opens(t)
	var l launched
	prompt := "plan: made"
	if a.absolute {
		prompt = "plan: " + filepath.Join(s.root, "made")
	}
	c.call("launchSession", object{"query": prompt, "agent": s.agent, "permission_mode": "plan"}, &l)
	if a.leaves == nil {
		end := c.awaitEnd(l.SessionID)
		assert.Equal(t, "completed", end.Data.State, "%s", end.Raw)
		assert.Contains(t, c.conversation(l.SessionID), "There is no tool for that.")
		assert.False(t, s.exists("made"))
		return s.closed(c, "no: "+a.planless)
	}
	exit := c.awaitQuestionOrEnd(l)
	require.Equal(t, "new_approval", exit.Type, "%s", c.conversation(l.SessionID))
	var asked struct {
		Options []struct {
			ID   string `json:"option_id"`
			Name string `json:"name"`
			Kind string `json:"kind"`
		}
	}
	require.NoError(t, json.Unmarshal(exit.Raw, &asked))
	var names []string
	var chosen string
	for _, o := range asked.Options {
		names = append(names, o.Name)
		if o.Kind == "allow_once" {
			chosen = o.ID
		}
	}
	assert.Equal(t, a.leaves, names)
	var shown struct {
		Plan string          `json:"plan"`
		Rule json.RawMessage `json:"rule_preview"`
	}
	require.NoError(t, json.Unmarshal(exit.Raw, &shown))
	assert.Contains(t, shown.Plan, "1. Write the file.", "the question has the plan as text")
	assert.Empty(t, shown.Rule)
	assert.ErrorContains(t, c.try("sendDecision", object{"approval_id": exit.Data.ApprovalID, "decision": "approve", "scope": "session"}, nil), "a plan is agreed to for itself")
	c.call("sendDecision", object{"approval_id": exit.Data.ApprovalID, "decision": "approve", "option": chosen}, nil)

	edit := c.await("a question about the file", func(e event) bool {
		return e.Type == "new_approval" && e.Data.SessionID == l.SessionID && e.Data.ApprovalID != exit.Data.ApprovalID
	})
	assert.Contains(t, []string{"Write", "Edit"}, edit.Data.ToolName)
	assert.False(t, s.exists("made"))
	c.approve(edit.Data.ApprovalID)
	c.completes(l)
	text := readFile(t, filepath.Join(s.root, "made"))
	assert.Equal(t, model.Written, text)
	s.close(c)
	if !a.telling {
		return "yes: its question names the plan's file, of which the plan is read"
	}
	return "yes"
}

// playUnknownModel requests a model that no agent has.
func playUnknownModel(t *testing.T, a dayAgent) string {
	s, c := a.opens(t)
	l := c.begins("launchSession", object{"query": "say: hello", "agent": s.agent, "model": "no-such-model"})
	if a.modelless {
		c.completes(l)
		c.await("the warning", func(e event) bool {
			return e.Type == "task_error" && e.Data.SessionID == l.SessionID && strings.Contains(string(e.Raw), "does not report its models")
		})
		return s.closed(c, "no: with a provider of one's own it names no models to choose from; Duet warns of that")
	}
	end := c.awaitEnd(l.SessionID)
	assert.Equal(t, "failed", end.Data.State, "%s", end.Raw)
	requireParts(t, end.Data.Error, "no-such-model", a.model)
	assert.Empty(t, s.model.Prompts())

	// The hub now knows the agent's models and refuses the request itself.
	refused := c.refused("launchSession", object{"query": "say: hello", "agent": s.agent, "model": "no-such-model"})
	assert.Contains(t, string(refused.Data), a.model)
	return s.closed(c, "yes: refused, with a list of what it has")
}

// awaitCommand waits for the agent's report of a slash command, which may follow its turn. It
// requires that getSessionState returns the command.
func (c *client) awaitCommand(l launched, name string) {
	c.t.Helper()
	has := func(s reportedSession) bool {
		return slices.ContainsFunc(s.Commands, func(c struct{ Name string }) bool { return c.Name == name })
	}
	c.await("the command "+name, func(e event) bool {
		var reported reportedSession
		return e.Type == "agent_session" && e.Data.SessionID == l.SessionID && json.Unmarshal(e.Raw, &reported) == nil && has(reported)
	})
	kept := c.session(l.SessionID).Agent
	assert.True(c.t, has(kept), "%v", kept.Commands)
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
	c.awaitCommand(l, a.command)
	s.close(c)
	if a.commandless != "" {
		return "yes: its own commands; " + a.commandless
	}
	return "yes"
}

// onePoint is a PNG image of one pixel, in base64.
const onePoint = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// playImage sends a prompt with an image.
func playImage(t *testing.T, a dayAgent) string {
	s, c := a.opens(t)
	l := c.begins("launchSession", object{"query": "say: seen", "agent": s.agent, "content": []object{{"type": "image", "mimeType": "image/png", "data": onePoint}}})
	c.completes(l)
	assert.Contains(t, c.conversation(l.SessionID), "seen")
	images := s.model.Images()
	require.Len(t, images, 1)
	point, err := png.Decode(bytes.NewReader(images[0]))
	require.NoError(t, err, "%q", images[0])
	assert.Equal(t, image.Rect(0, 0, 1, 1), point.Bounds())
	return s.closed(c, "yes")
}

func playInterrupt(t *testing.T, a dayAgent) string {
	s, c, l := a.begins(t, "talk:")
	c.awaitText(l)
	c.interrupt(l)
	select {
	case <-s.model.HungUp:
	case <-time.After(watchdog / 3):
		require.Fail(t, "the agent keeps its connection to the model")
	}
	assert.Contains(t, c.conversation(l.SessionID), "and on ")
	l = c.next(l, "say: hello") // the agent takes another prompt
	c.completes(l)
	if a.forgets {
		require.Equal(t, []string{"say: hello"}, s.model.Prompts())
		return s.closed(c, "yes: it forgets what it was asked")
	}
	require.Equal(t, []string{"talk:", "say: hello"}, s.model.Prompts())
	return s.closed(c, "yes")
}

func playTooMuch(t *testing.T, a dayAgent) string {
	s, c, l := a.begins(t, "fail: 429 1")
	c.completes(l)
	assert.Contains(t, c.conversation(l.SessionID), "at last")
	return s.closed(c, "yes: it tries again")
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
		return s.closed(c, "no: it asks its API without a key; Duet shows the answer")
	}
	assert.Equal(t, "AGENT_AUTH_REQUIRED", end.Data.ErrorCode)
	ways := c.session(end.Data.SessionID).AuthMethods
	s.close(c)
	if len(ways) == 0 {
		return "yes: an error at once; it names no way to sign in"
	}
	return "yes: an error at once, with its ways to sign in"
}

// A silence is the data of an agent_silent event.
type silence struct {
	Note  string `json:"note"`
	Tool  string `json:"tool_id"`
	Ended bool   `json:"ended"`
}

// awaitSilence waits for an agent_silent event of a session that fits and marks no end of a
// silence.
func (c *client) awaitSilence(l launched, fits func(silence) bool) {
	c.t.Helper()
	c.await("the agent's silence", func(e event) bool {
		var reported silence
		return e.Type == "agent_silent" && e.Data.SessionID == l.SessionID && json.Unmarshal(e.Raw, &reported) == nil && !reported.Ended && fits(reported)
	})
}

// isSilent reports whether the state of a session has a start of a silence.
func (c *client) isSilent(l launched) bool {
	c.t.Helper()
	return c.session(l.SessionID).SilentSince != nil
}

// playOutage has the API fail for minutes, while the agent retries. Duet shows the silence and the
// agent's output. The user can interrupt the agent, which takes another prompt later.
func playOutage(t *testing.T, a dayAgent) string {
	s, c, l := a.begins(t, "fail: 500")
	if a.retells != "" {
		c.await("the agent's text about a retry", func(e event) bool {
			return e.Type == "message_delta" && e.Data.SessionID == l.SessionID && strings.Contains(string(e.Raw), a.retells)
		})
		c.interrupt(l)
		return s.closed(c, "yes: it says of each try that it tries again")
	}
	c.awaitSilence(l, func(s silence) bool {
		return !strings.HasPrefix(s.Note, "it is starting") && (s.Note != "" || !a.mutters)
	})
	// The agent may send an update with each retry, and is silent again afterwards.
	require.Eventually(t, func() bool { return c.isSilent(l) }, watchdog/3, pollEvery)
	if a.withholds {
		for _, e := range c.seen() {
			require.NotContains(t, string(e.Raw), "Retrying with backoff")
		}
	}
	c.interrupt(l)
	assert.False(t, c.isSilent(l))
	l = c.goesOn(l, "say: hello")
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

// alone has the site's agent answer a prompt without Duet, and returns the agent's session id.
func (s *agentSite) alone(command []string, prompt string) (native string) {
	s.t.Helper()
	env := []string{"LANG=C.UTF-8", "TERM=dumb", "TMPDIR=" + s.t.TempDir()}
	for _, entry := range s.launch().env {
		name, _, _ := strings.Cut(entry, "=")
		if name == "PATH" || name == "HOME" || strings.HasPrefix(name, "XDG_") || name == "ANTHROPIC_BASE_URL" || strings.HasPrefix(name, "OPENAI_") {
			env = append(env, entry)
		}
	}
	for name, value := range s.variables {
		env = append(env, name+"="+value)
	}
	for _, name := range []string{"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "KEY_FROM_DUET", "KIMI_MODEL_API_KEY", "COPILOT_PROVIDER_API_KEY"} {
		env = append(env, name+"="+s.model.Key)
	}
	cmd := exec.CommandContext(s.t.Context(), "/usr/bin/env", command...)
	cmd.Env, cmd.Dir, cmd.Stderr = env, s.root, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	require.NoError(s.t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(s.t, err)
	require.NoError(s.t, cmd.Start())
	lines := bufio.NewReaderSize(out, 1<<20)
	ids := 0
	call := func(method string, params object, result any) {
		s.t.Helper()
		ids++
		_, err := in.Write(append(mustMarshal(object{"jsonrpc": "2.0", "id": ids, "method": method, "params": params}), '\n'))
		require.NoError(s.t, err)
		for {
			line, err := lines.ReadBytes('\n')
			require.NoError(s.t, err, "%s to the agent alone", method)
			var m struct {
				ID     any             `json:"id"`
				Method string          `json:"method"`
				Result json.RawMessage `json:"result"`
				Error  json.RawMessage `json:"error"`
			}
			if json.Unmarshal(line, &m) != nil || m.Method != "" || m.ID != float64(ids) {
				continue
			}
			require.Empty(s.t, string(m.Error), "%s to the agent alone", method)
			if result != nil {
				require.NoError(s.t, json.Unmarshal(m.Result, result))
			}
			return
		}
	}
	call("initialize", object{"protocolVersion": 1, "clientInfo": object{"name": "alone", "version": "1"}, "clientCapabilities": object{}}, nil)
	var session struct {
		ID string `json:"sessionId"`
	}
	call("session/new", object{"cwd": s.root, "mcpServers": []any{}}, &session)
	call("session/prompt", object{"sessionId": session.ID, "prompt": []object{{"type": "text", "text": prompt}}}, nil)
	s.awaitRecord(`"` + strings.TrimPrefix(prompt, "say: ") + `"`) // the answer; the prompt has a prefix
	require.NoError(s.t, in.Close())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	select { // the agent may still write its records
	case <-ended:
	case <-time.After(watchdog / 6):
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // some agents have child processes
	<-ended
	return session.ID
}

// playAdopted adopts a session that the agent began without Duet, and continues it.
func playAdopted(t *testing.T, a dayAgent) string {
	s := a.site(t)
	native := s.alone(a.start, "say: begun alone")
	c := s.open()
	if a.unlisted {
		require.ErrorContains(t, c.try("agent.sessions", object{"agent": s.agent}, nil), "session/list")
		require.ErrorContains(t, c.try("session.adopt", object{"agent": s.agent, "native_session_id": native, "working_dir": t.TempDir()}, nil), "only in the directory in which it began: name that directory with working_dir or --dir")
	} else {
		var list nativeListed
		c.call("agent.sessions", object{"agent": s.agent, "working_dir": s.root}, &list)
		require.True(t, slices.ContainsFunc(list.Sessions, func(one nativeListedSession) bool {
			return one.ID == native && one.Dir == s.root && one.SessionID == "" && one.Updated != ""
		}), "%+v", list)
	}
	adopted := c.adopt(s.agent, native)
	assert.True(t, adopted.Adopted)
	assert.True(t, adopted.History)
	reported := c.reported(adopted.SessionID)
	require.GreaterOrEqual(t, len(reported), 2)
	assert.Equal(t, []string{"message user say: begun alone", "message assistant begun alone"}, reported[len(reported)-2:])
	if a.unlisted { // the agent deletes a loaded session at its next start
		assert.Contains(t, adopted.Note, "deletes a loaded session")
		next := c.goesOn(adopted.launched, "say: gone on")
		assert.Contains(t, c.transcript(next.SessionID), "The agent had lost its session. A new session received the conversation so far: the messages and which tools were used")
		assert.Contains(t, c.transcript(next.SessionID), "gone on")
		return s.closed(c, "yes, by its id: it does not list them; Duet sends it the transcript, since it deletes what it has loaded when it is started again")
	}
	next := s.requireGoesOn(c, adopted.launched, "say: begun alone", "say: gone on")
	assert.Equal(t, native, c.usage(next.SessionID).Native)
	assert.Equal(t, "gone on", c.conversation(next.SessionID)[len("begun alone"):], "the conversation does not repeat the agent's replay")
	return s.closed(c, "yes")
}

// playRestarts ends the agent twice between the prompts of a conversation.
func playRestarts(t *testing.T, a dayAgent) string {
	s, c, l := a.begins(t, "say: one")
	c.completes(l)
	s.awaitRecord(`"one"`)
	prompts := []string{"say: one"}
	for _, word := range []string{"two", "three"} {
		s.close(c)
		c = s.open()
		prompts = append(prompts, "say: "+word)
		if a.deletes {
			l = c.goesOn(l, "say: "+word)
		} else {
			l = s.requireGoesOn(c, l, prompts...)
		}
		s.awaitRecord(`"` + word + `"`)
	}
	const lost = "The agent had lost its session"
	said := c.transcript(l.SessionID)
	s.close(c)
	if a.deletes { // after the first restart already, if it follows within the minute of the session's start
		assert.Contains(t, said, lost)
		return "no: it deletes a session that it has loaded when it is started again; Duet sends it the transcript, and the conversation says so"
	}
	assert.NotContains(t, said, lost)
	return "yes"
}

// playFork forks a conversation at its end.
func playFork(t *testing.T, a dayAgent) string {
	s, c, first := a.begins(t, "say: one")
	c.completes(first)
	s.awaitRecord(`"one"`)
	native := c.usage(first.SessionID).Native
	fork := c.begins("continueSession", object{"session_id": first.SessionID, "query": "say: two", "fork": true})
	c.completes(fork)
	own := c.await("the fork's own session", func(e event) bool {
		return e.Data.SessionID == fork.SessionID && strings.Contains(string(e.Raw), `"event_type":"native_session"`)
	})
	assert.NotEqual(t, native, c.usage(fork.SessionID).Native)
	forked := strings.Contains(string(own.Raw), `"forked":true`)
	assert.Equal(t, a.forks, forked, "%s", own.Raw)
	assert.Equal(t, "onetwo", c.conversation(fork.SessionID), "the conversation does not repeat the agent's replay")
	if forked {
		require.Equal(t, []string{"say: one", "say: two"}, s.model.Prompts())
	}
	// The original conversation continues as before.
	s.requireGoesOn(c, first, "say: one", "say: three")
	s.close(c)
	if forked {
		return "yes: its own session is forked"
	}
	return "yes: it gets the transcript; it cannot fork its own session"
}
