//go:build unix && clients

package agents

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

	"github.com/duet-rpc/duet-rpc/internal/e2e"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
	"github.com/duet-rpc/duet-rpc/testdata/agents/model"
)

// asksToRun waits for a session's question about a shell command.
func (s *agentSite) asksToRun(c *e2e.Client, session string) e2e.Event {
	s.T.Helper()
	question := c.AwaitQuestion(session)
	require.Equal(s.T, "Bash", question.Data.ToolName, "%s", question.Raw)
	c.AwaitState(session, "waiting_input")
	require.False(s.T, s.exists("made"))
	return question
}

// transcriptOf returns the text of a whole session.
func transcriptOf(c *e2e.Client, session string) string {
	c.T.Helper()
	var all strings.Builder
	for _, e := range c.Items(session) {
		all.WriteString(e.Content + "\n")
	}
	return all.String()
}

// refusals returns the decider and the reason of each refused tool call of a session.
func refusals(c *e2e.Client, session string) (list []string) {
	c.T.Helper()
	for _, e := range c.Items(session) {
		if e.Type == "tool_result" && e.By != "" {
			list = append(list, e.By+": "+e.Why)
		}
	}
	return list
}

// opens returns a site of the agent and its client.
func (a dayAgent) opens(t *testing.T) (*agentSite, *e2e.Client) {
	s := a.site(t)
	return s, s.Open()
}

// begins is opens with a launched session.
func (a dayAgent) begins(t *testing.T, prompt string) (*agentSite, *e2e.Client, e2e.Launched) {
	s, c := a.opens(t)
	return s, c, c.Launch(prompt, s.agent)
}

// touchesUnderRule is begins with a user's rule for the agent's command. effect is allow or deny.
func (a dayAgent) touchesUnderRule(t *testing.T, effect string) (*agentSite, *e2e.Client, e2e.Launched) {
	s := a.site(t)
	s.rules = fmt.Sprintf("[[rules]]\neffect = %q\ntool = \"Bash\"\ncommand = \"touch *\"\n", effect)
	s.configure()
	c := s.Open()
	return s, c, c.Launch("run: touch made", s.agent)
}

// neverAsked requires that no session has asked a question so far.
func neverAsked(c *e2e.Client) {
	c.T.Helper()
	for _, e := range c.Seen() {
		require.NotEqual(c.T, "new_approval", e.Type, "%s", e.Raw)
	}
}

// countQuestions counts the questions of a session so far.
func countQuestions(c *e2e.Client, session string) (n int) {
	c.T.Helper()
	for _, e := range c.Seen() {
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
	c.Call("sendDecision", object{"approval_id": question.Data.ApprovalID, "decision": "deny", "comment": "say: another name, please", "tell": true}, &begun)
	c.AwaitEnd(l.SessionID)
	const ended = "The denial ended the turn"
	assert.False(t, s.exists("made"))
	assert.Empty(t, c.Pending())
	goesOn := "The tool said: "
	if a.denialEnds {
		assert.NotContains(t, c.Said(l.SessionID), goesOn)
		assert.Contains(t, transcriptOf(c, l.SessionID), cmp.Or(a.denialSays, ended))
	} else {
		assert.NotContains(t, transcriptOf(c, l.SessionID), ended)
		assert.Contains(t, c.Said(l.SessionID), goesOn)
	}
	for _, call := range refusals(c, l.SessionID) {
		assert.Equal(t, "user: say: another name, please", call)
	}
	// With tell, the reason is the next prompt.
	require.NotEmpty(t, begun.SessionID)
	c.Completes(e2e.Launched{SessionID: begun.SessionID})
	assert.Contains(t, transcriptOf(c, begun.SessionID), "and I did not give it: say: another name, please")
	l.SessionID = begun.SessionID
	// The agent takes another prompt.
	l = c.GoesOn(l, "say: hello")
	assert.Contains(t, c.Said(l.SessionID), "hello")
	s.close(c)
	if a.denialEnds {
		return "yes: its turn ends, which is said; it learns the reason with its next prompt"
	}
	return "yes: its turn goes on; it learns the reason with its next prompt"
}

// playRule has a user's rule deny the agent's command.
func playRule(t *testing.T, a dayAgent) string {
	s, c, l := a.touchesUnderRule(t, "deny")
	c.AwaitEnd(l.SessionID)
	assert.False(t, s.exists("made"))
	neverAsked(c)
	for _, call := range toolCalls(c, l.SessionID) { // some agents do not report a refused call
		assert.Equal(t, []string{"Bash", "failed"}, []string{call.Tool, call.Status})
	}
	refusals := refusals(c, l.SessionID)
	require.NotEmpty(t, refusals)
	for _, why := range refusals {
		assert.Regexp(t, `^rule=user: .*config.toml, line \d+: deny tool "Bash", command "touch \*"$`, why)
	}
	return s.closed(c, "yes")
}

// playAllowRule has a user's rule allow the agent's command.
func playAllowRule(t *testing.T, a dayAgent) string {
	s, c, l := a.touchesUnderRule(t, "allow")
	c.Completes(l)
	assert.True(t, s.exists("made"))
	neverAsked(c)
	return s.closed(c, "yes")
}

func playAlways(t *testing.T, a dayAgent) string {
	s, c, l := a.begins(t, "run: touch made")
	question := s.asksToRun(c, l.SessionID)
	c.Call("sendDecision", object{"approval_id": question.Data.ApprovalID, "decision": "approve", "scope": "session"}, nil)
	c.Completes(l)
	assert.True(t, s.exists("made"))

	l = c.GoesOn(l, "run: touch made")
	for _, e := range c.Seen() {
		require.False(t, e.Type == "new_approval" && e.Data.SessionID == l.SessionID, "the agent asked again: %s", e.Raw)
	}
	l = c.Next(l, "run: rm made") // the decision does not cover this command
	c.AwaitQuestion(l.SessionID)
	c.Interrupt(l)
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
func (s *agentSite) answeredAfterKill(c *e2e.Client, l e2e.Launched, question e2e.Event) (next *e2e.Client, end e2e.Event) {
	s.T.Helper()
	c.Crash()
	s.RequireNobody("after a kill")
	next = s.Open()
	require.True(s.T, next.Pending()[question.Data.ApprovalID].Stale)
	next.Approve(question.Data.ApprovalID)
	end = next.Await("the end of the continued session", func(e e2e.Event) bool {
		return e.Type == "session_status_changed" && e.Data.ThreadID == l.ThreadID && e.Data.SessionID != l.SessionID && e2e.Ended(e.Data.State)
	})
	assert.Equal(s.T, "completed", end.Data.State, "%s", end.Raw)
	for _, e := range next.Seen() {
		require.False(s.T, e.Type == "new_approval" && e.Data.SessionID == end.Data.SessionID, "the agent asked again: %s", e.Raw)
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
	c := s.Open()
	for _, args := range [][]string{{"init", "-q"}, {"config", "user.name", "User"}, {"config", "user.email", "user@localhost"}, {"commit", "-q", "--allow-empty", "-m", "first"}} {
		out, err := exec.Command(git, append([]string{"-C", s.Root}, args...)...).CombinedOutput()
		require.NoError(t, err, "git %q: %s", args, out)
	}
	l := c.Begins("launchSession", object{"query": "run: echo made > made", "agent": s.agent, "worktree": true})
	question := s.asksToRun(c, l.SessionID)
	s.awaitRecord(`"echo made`) // the call, not the prompt
	c, end := s.answeredAfterKill(c, l, question)
	assert.False(t, s.exists("made"), "the agent works in the worktree")
	var changes struct {
		Snapshots []struct {
			Path string `json:"file_path"`
		}
	}
	c.Call("getSessionSnapshots", object{"session_id": end.Data.SessionID}, &changes)
	require.Len(t, changes.Snapshots, 1, "the change of the command")
	assert.Equal(t, "made", filepath.Base(changes.Snapshots[0].Path))
	c.Call("session.land", object{"session": end.Data.SessionID}, nil)
	assert.Equal(t, "made\n", e2e.ReadFile(t, filepath.Join(s.Root, "made")))
	return s.closed(c, "yes")
}

// playSubAgent has a sub-agent run a command.
func playSubAgent(t *testing.T, a dayAgent) string {
	s, c, l := a.begins(t, "delegate: run: touch made")
	s.goesOn = true // the agent may start a turn with the sub-agent's result
	if a.sub == "" {
		question := s.asksToRun(c, l.SessionID)
		c.Approve(question.Data.ApprovalID)
		c.Completes(l)
		assert.True(t, s.exists("made"))
		assert.Equal(t, 1, countQuestions(c, l.SessionID), "one command, one question")
		parents := make(map[string]string) // tool names to parents
		ids := make(map[string]string)
		for _, e := range c.Items(l.SessionID) {
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
		require.Eventually(t, func() bool { return slices.Equal(s.model.Prompts(), []string{"run: touch made"}) }, e2e.Watchdog/3, e2e.PollEvery,
			"the sub-agent did not start")
		awaitSilence(c, l, func(s silence) bool { return s.Tool != "" }) // the hub reports the silence
		c.Interrupt(l)
	} else {
		c.Completes(l)
		assert.Contains(t, c.Said(l.SessionID), a.subSays)
	}
	assert.False(t, s.exists("made"))
	neverAsked(c)
	return s.closed(c, "no: "+a.sub)
}

// playTodos has the agent write a list of tasks, which becomes the session's plan.
func playTodos(t *testing.T, a dayAgent) string {
	s, c, l := a.begins(t, "todo: look around")
	isPlan := func(e e2e.Event) bool { return e.Type == "plan" && e.Data.SessionID == l.SessionID }
	if a.todoless != "" {
		c.AwaitEnd(l.SessionID)
		assert.False(t, slices.ContainsFunc(c.Seen(), isPlan))
		assert.Contains(t, c.Said(l.SessionID), "There is no tool for that.")
		return s.closed(c, "no: "+a.todoless)
	}
	plan := c.Await("a plan", isPlan)
	var reported struct {
		Entries []struct{ Content, Status string }
	}
	require.NoError(t, json.Unmarshal(plan.Raw, &reported))
	require.Len(t, reported.Entries, 1)
	assert.Equal(t, "look around", reported.Entries[0].Content)
	assert.Contains(t, []string{"pending", "in_progress"}, reported.Entries[0].Status) // pending, if the agent reports its progress later
	c.Completes(l)
	assert.Contains(t, c.Said(l.SessionID), "The tool said: ")
	return s.closed(c, "yes: it is the session's plan")
}

// playBackground has an agent run a command in the background. The end of that command starts an
// agent-initiated turn with another command.
func playBackground(t *testing.T, a dayAgent) string {
	s, c, own, question := a.goesOn(t)
	if question == nil {
		return "no: " + a.foreground
	}
	assert.Equal(t, "completed", c.ApproveAll(own).Data.State)
	assert.True(t, s.exists("made"))
	if !a.mute {
		assert.Contains(t, c.Said(own), "The tool said: ")
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
	c.Crash()
	s.RequireNobody("after a kill")

	c = s.Open()
	require.True(t, c.Pending()[question.Data.ApprovalID].Stale)
	cut := c.Session(own)
	assert.Equal(t, "interrupted", cut.State)
	c.Approve(question.Data.ApprovalID)
	if a.holds || a.mute { // the agent receives its prompt again, or its first question had no input
		again := c.Await("the question of the continued session", func(e e2e.Event) bool {
			return e.Type == "new_approval" && e.Seq > question.Seq && e.Data.SessionID != own
		})
		want := "sleep 3"
		if a.mute {
			want = "touch made"
		}
		assert.Contains(t, string(again.Data.ToolInput), want)
		c.Approve(again.Data.ApprovalID)
	}
	end := c.Await("the end of the continued session", func(e e2e.Event) bool {
		return e.Type == "session_status_changed" && e.Data.ThreadID == cut.ThreadID && e.Seq > question.Seq && e.Data.SessionID != own && e2e.Ended(e.Data.State)
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
func (a dayAgent) goesOn(t *testing.T) (s *agentSite, c *e2e.Client, own string, question *e2e.Event) {
	s, c, l := a.begins(t, "background: sleep 3; echo over")
	s.goesOn = true
	if a.foreground != "" {
		c.Completes(l)
		assert.Contains(t, c.Said(l.SessionID), "There is no tool for that.")
		s.close(c)
		return s, c, "", nil
	}
	var asked e2e.Event
	if a.holds {
		first := c.AwaitQuestion(l.SessionID)
		c.Approve(first.Data.ApprovalID)
		own = l.SessionID
		asked = c.Await("a question after the end of the command", func(e e2e.Event) bool {
			return e.Type == "new_approval" && e.Data.SessionID == own && e.Data.ApprovalID != first.Data.ApprovalID
		})
	} else {
		assert.Equal(t, "completed", c.ApproveAll(l.SessionID).Data.State)
		own = c.AwaitOwnTurn(1)
		asked = c.AwaitQuestion(own)
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
	c.Completes(l)
	own := c.AwaitOwnTurn(2)
	c.Call("interruptSession", object{"session_id": own}, nil)
	end := c.AwaitEnd(own)
	assert.Contains(t, []string{"interrupted", "completed"}, end.Data.State)
	for end.Data.State == "completed" { // the agent was between two turns
		own = c.AwaitOwnTurn(len(ownTurns(c)) + 1)
		c.Call("interruptSession", object{"session_id": own}, nil)
		end = c.AwaitEnd(own)
	}
	assert.Contains(t, c.Said(own), "one step")
	goesOn := true
	for tries := 0; goesOn && tries < 5; tries++ {
		turns := len(ownTurns(c))
		next := c.Begins("continueSession", object{"session_id": own, "query": "say: something else"})
		c.Completes(next)
		// The agent may have begun another turn just before the interrupt reached it.
		if goesOn = len(ownTurns(c)) > turns; goesOn {
			own = c.AwaitOwnTurn(len(ownTurns(c)))
			c.Call("interruptSession", object{"session_id": own}, nil)
			c.AwaitEnd(own)
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
	c := s.Open()
	l := c.Launch("talk:", s.agent)
	c.AwaitText(l)
	var begun struct {
		e2e.Launched
		Delivered string `json:"delivered"`
	}
	c.Call("continueSession", object{"session_id": l.SessionID, "query": "say: heard", "deliver": "steer"}, &begun)
	if begun.Delivered == "queued" {
		c.Interrupt(l)
		c.Completes(begun.Launched)
		assert.Contains(t, c.Said(begun.SessionID), "heard")
		s.close(c)
		return false
	}
	assert.Equal(t, "injected", begun.Delivered)
	assert.Equal(t, l.SessionID, begun.SessionID)
	c.Completes(l)
	before, after, found := strings.Cut(transcriptOf(c, l.SessionID), "say: heard\n")
	assert.True(t, found)
	assert.Contains(t, before, "and on")
	assert.Contains(t, after, "heard")
	s.close(c)
	return true
}

// playTimeout has a turn exceed its time limit. The agent waits for its model, or for a sub-agent
// whose question it does not pass on.
func playTimeout(t *testing.T, a dayAgent) string {
	s, c := a.opens(t)
	prompt := "hang:"
	if a.subHangs {
		prompt = "delegate: run: touch made"
	}
	l := c.Begins("launchSession", object{"query": prompt, "agent": s.agent, "timeout_ms": 12000})
	end := c.EndsAs(l.SessionID, "timed_out", "TIMEOUT")
	assert.Contains(t, end.Data.Error, "it took longer than it may")
	assert.Equal(t, "timed_out", c.Session(l.SessionID).State)
	assert.False(t, s.exists("made"))
	return s.closed(c, "yes: it ends with the reason")
}

// playPlan approves the agent's plan, and then its edit.
func playPlan(t *testing.T, a dayAgent) string {
	s, c := a.opens(t)
	var l e2e.Launched
	prompt := "plan: made"
	if a.absolute {
		prompt = "plan: " + filepath.Join(s.Root, "made")
	}
	c.Call("launchSession", object{"query": prompt, "agent": s.agent, "permission_mode": "plan"}, &l)
	if a.leaves == nil {
		end := c.AwaitEnd(l.SessionID)
		assert.Equal(t, "completed", end.Data.State, "%s", end.Raw)
		assert.Contains(t, c.Said(l.SessionID), "There is no tool for that.")
		assert.False(t, s.exists("made"))
		return s.closed(c, "no: "+a.planless)
	}
	exit := c.AwaitQuestionOrEnd(l)
	require.Equal(t, "new_approval", exit.Type, "%s", c.Said(l.SessionID))
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
	assert.ErrorContains(t, c.Try("sendDecision", object{"approval_id": exit.Data.ApprovalID, "decision": "approve", "scope": "session"}, nil), "a plan is agreed to for itself")
	c.Call("sendDecision", object{"approval_id": exit.Data.ApprovalID, "decision": "approve", "option": chosen}, nil)

	edit := c.Await("a question about the file", func(e e2e.Event) bool {
		return e.Type == "new_approval" && e.Data.SessionID == l.SessionID && e.Data.ApprovalID != exit.Data.ApprovalID
	})
	assert.Contains(t, []string{"Write", "Edit"}, edit.Data.ToolName)
	assert.False(t, s.exists("made"))
	c.Approve(edit.Data.ApprovalID)
	c.Completes(l)
	text := e2e.ReadFile(t, filepath.Join(s.Root, "made"))
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
	l := c.Begins("launchSession", object{"query": "say: hello", "agent": s.agent, "model": "no-such-model"})
	if a.modelless {
		c.Completes(l)
		c.Await("the warning", func(e e2e.Event) bool {
			return e.Type == "task_error" && e.Data.SessionID == l.SessionID && strings.Contains(string(e.Raw), "does not report its models")
		})
		return s.closed(c, "no: with a provider of one's own it names no models to choose from; Duet warns of that")
	}
	end := c.AwaitEnd(l.SessionID)
	assert.Equal(t, "failed", end.Data.State, "%s", end.Raw)
	e2e.RequireParts(t, end.Data.Error, "no-such-model", a.model)
	assert.Empty(t, s.model.Prompts())

	// The hub now knows the agent's models and refuses the request itself.
	refused := c.Refused("launchSession", object{"query": "say: hello", "agent": s.agent, "model": "no-such-model"})
	assert.Contains(t, string(refused.Data), a.model)
	return s.closed(c, "yes: refused, with a list of what it has")
}

// awaitCommand waits for the agent's report of a slash command, which may follow its turn. It
// requires that getSessionState returns the command.
func awaitCommand(c *e2e.Client, l e2e.Launched, name string) {
	c.T.Helper()
	has := func(s e2e.ReportedSession) bool {
		return slices.ContainsFunc(s.Commands, func(c struct{ Name string }) bool { return c.Name == name })
	}
	c.Await("the command "+name, func(e e2e.Event) bool {
		var reported e2e.ReportedSession
		return e.Type == "agent_session" && e.Data.SessionID == l.SessionID && json.Unmarshal(e.Raw, &reported) == nil && has(reported)
	})
	kept := c.Session(l.SessionID).Agent
	assert.True(c.T, has(kept), "%v", kept.Commands)
}

func playSlashCommand(t *testing.T, a dayAgent) string {
	s := a.site(t)
	for _, dir := range []string{".claude/commands", ".opencode/command"} {
		s.put(s.Root+"/"+dir+"/greet.md", "---\ndescription: Greets\n---\nsay: hello $ARGUMENTS\n")
	}
	s.put(s.Root+"/.gemini/commands/greet.toml", "description = \"Greets\"\nprompt = \"say: hello {{args}}\"\n")
	c := s.Open()
	l := c.Launch(a.prompt, s.agent)
	c.Completes(l)
	assert.Contains(t, c.Said(l.SessionID), a.says)
	awaitCommand(c, l, a.command)
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
	l := c.Begins("launchSession", object{"query": "say: seen", "agent": s.agent, "content": []object{{"type": "image", "mimeType": "image/png", "data": onePoint}}})
	c.Completes(l)
	assert.Contains(t, c.Said(l.SessionID), "seen")
	images := s.model.Images()
	require.Len(t, images, 1)
	point, err := png.Decode(bytes.NewReader(images[0]))
	require.NoError(t, err, "%q", images[0])
	assert.Equal(t, image.Rect(0, 0, 1, 1), point.Bounds())
	return s.closed(c, "yes")
}

func playInterrupt(t *testing.T, a dayAgent) string {
	s, c, l := a.begins(t, "talk:")
	c.AwaitText(l)
	c.Interrupt(l)
	select {
	case <-s.model.HungUp:
	case <-time.After(e2e.Watchdog / 3):
		require.Fail(t, "the agent keeps its connection to the model")
	}
	assert.Contains(t, c.Said(l.SessionID), "and on ")
	l = c.Next(l, "say: hello") // the agent takes another prompt
	c.Completes(l)
	if a.forgets {
		require.Equal(t, []string{"say: hello"}, s.model.Prompts())
		return s.closed(c, "yes: it forgets what it was asked")
	}
	require.Equal(t, []string{"talk:", "say: hello"}, s.model.Prompts())
	return s.closed(c, "yes")
}

func playTooMuch(t *testing.T, a dayAgent) string {
	s, c, l := a.begins(t, "fail: 429 1")
	c.Completes(l)
	assert.Contains(t, c.Said(l.SessionID), "at last")
	return s.closed(c, "yes: it tries again")
}

func playSignIn(t *testing.T, a dayAgent) string {
	s := a.site(t)
	s.signOut()
	s.configure()
	c := s.Open()
	end := c.AwaitEnd(c.Launch("say: hello", s.agent).SessionID)
	assert.Equal(t, "failed", end.Data.State, "%s", end.Raw)
	assert.Regexp(t, a.unsigned, end.Data.Error)
	if a.keyless {
		assert.Equal(t, "AGENT_ERROR", end.Data.ErrorCode)
		return s.closed(c, "no: it asks its API without a key; Duet shows the answer")
	}
	assert.Equal(t, "AGENT_AUTH_REQUIRED", end.Data.ErrorCode)
	ways := c.Session(end.Data.SessionID).AuthMethods
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
func awaitSilence(c *e2e.Client, l e2e.Launched, fits func(silence) bool) {
	c.T.Helper()
	c.Await("the agent's silence", func(e e2e.Event) bool {
		var reported silence
		return e.Type == "agent_silent" && e.Data.SessionID == l.SessionID && json.Unmarshal(e.Raw, &reported) == nil && !reported.Ended && fits(reported)
	})
}

// isSilent reports whether the state of a session has a start of a silence.
func isSilent(c *e2e.Client, l e2e.Launched) bool {
	c.T.Helper()
	return c.Session(l.SessionID).SilentSince != nil
}

// playOutage has the API fail for minutes, while the agent retries. Duet shows the silence and the
// agent's output. The user can interrupt the agent, which takes another prompt later.
func playOutage(t *testing.T, a dayAgent) string {
	s, c, l := a.begins(t, "fail: 500")
	if a.retells != "" {
		c.Await("the agent's text about a retry", func(e e2e.Event) bool {
			return e.Type == "message_delta" && e.Data.SessionID == l.SessionID && strings.Contains(string(e.Raw), a.retells)
		})
		c.Interrupt(l)
		return s.closed(c, "yes: it says of each try that it tries again")
	}
	awaitSilence(c, l, func(s silence) bool {
		return !strings.HasPrefix(s.Note, "it is starting") && (s.Note != "" || !a.mutters)
	})
	// The agent may send an update with each retry, and is silent again afterwards.
	require.Eventually(t, func() bool { return isSilent(c, l) }, e2e.Watchdog/3, e2e.PollEvery)
	if a.withholds {
		for _, e := range c.Seen() {
			require.NotContains(t, string(e.Raw), "Retrying with backoff")
		}
	}
	c.Interrupt(l)
	assert.False(t, isSilent(c, l))
	l = c.GoesOn(l, "say: hello")
	assert.Contains(t, c.Said(l.SessionID), "hello")
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
	s.T.Helper()
	env := []string{"LANG=C.UTF-8", "TERM=dumb", "TMPDIR=" + s.T.TempDir()}
	for _, entry := range s.Launch().Env {
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
	cmd := exec.CommandContext(s.T.Context(), "/usr/bin/env", command...)
	cmd.Env, cmd.Dir, cmd.Stderr = env, s.Root, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	require.NoError(s.T, err)
	out, err := cmd.StdoutPipe()
	require.NoError(s.T, err)
	require.NoError(s.T, cmd.Start())
	lines := bufio.NewReaderSize(out, 1<<20)
	ids := 0
	call := func(method string, params object, result any) {
		s.T.Helper()
		ids++
		_, err := in.Write(append(e2e.MustMarshal(object{"jsonrpc": "2.0", "id": ids, "method": method, "params": params}), '\n'))
		require.NoError(s.T, err)
		for {
			line, err := lines.ReadBytes('\n')
			require.NoError(s.T, err, "%s to the agent alone", method)
			var m struct {
				ID     any             `json:"id"`
				Method string          `json:"method"`
				Result json.RawMessage `json:"result"`
				Error  json.RawMessage `json:"error"`
			}
			if json.Unmarshal(line, &m) != nil || m.Method != "" || m.ID != float64(ids) {
				continue
			}
			require.Empty(s.T, string(m.Error), "%s to the agent alone", method)
			if result != nil {
				require.NoError(s.T, json.Unmarshal(m.Result, result))
			}
			return
		}
	}
	call("initialize", object{"protocolVersion": 1, "clientInfo": object{"name": "alone", "version": "1"}, "clientCapabilities": object{}}, nil)
	var session struct {
		ID string `json:"sessionId"`
	}
	call("session/new", object{"cwd": s.Root, "mcpServers": []any{}}, &session)
	call("session/prompt", object{"sessionId": session.ID, "prompt": []object{{"type": "text", "text": prompt}}}, nil)
	s.awaitRecord(`"` + strings.TrimPrefix(prompt, "say: ") + `"`) // the answer; the prompt has a prefix
	require.NoError(s.T, in.Close())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	select { // the agent may still write its records
	case <-ended:
	case <-time.After(e2e.Watchdog / 6):
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // some agents have child processes
	<-ended
	return session.ID
}

// playAdopted adopts a session that the agent began without Duet, and continues it.
func playAdopted(t *testing.T, a dayAgent) string {
	s := a.site(t)
	native := s.alone(a.start, "say: begun alone")
	c := s.Open()
	if a.unlisted {
		require.ErrorContains(t, c.Try("agent.sessions", object{"agent": s.agent}, nil), "session/list")
		require.ErrorContains(t, c.Try("session.adopt", object{"agent": s.agent, "agent_session_id": native, "working_dir": t.TempDir()}, nil), "only in the directory in which it began: name that directory with working_dir or --dir")
	} else {
		var list nativeListed
		c.Call("agent.sessions", object{"agent": s.agent, "working_dir": s.Root}, &list)
		require.True(t, slices.ContainsFunc(list.Sessions, func(one nativeListedSession) bool {
			return one.ID == native && one.Dir == s.Root && one.SessionID == "" && one.Updated != ""
		}), "%+v", list)
	}
	adopted := adopt(c, s.agent, native)
	assert.True(t, adopted.Adopted)
	assert.True(t, adopted.History)
	reported := reportedItems(c, adopted.SessionID)
	require.GreaterOrEqual(t, len(reported), 2)
	assert.Equal(t, []string{"message user say: begun alone", "message assistant begun alone"}, reported[len(reported)-2:])
	if a.unlisted { // the agent deletes a loaded session at its next start
		assert.Contains(t, adopted.Note, "deletes a loaded session")
		next := c.GoesOn(adopted.Launched, "say: gone on")
		assert.Contains(t, transcriptOf(c, next.SessionID), "The agent had lost its session. A new one received the transcript so far: the messages and which tools were used")
		assert.Contains(t, transcriptOf(c, next.SessionID), "gone on")
		return s.closed(c, "yes, by its id: it does not list them; Duet sends it the transcript, since it deletes what it has loaded when it is started again")
	}
	next := s.requireGoesOn(c, adopted.Launched, "say: begun alone", "say: gone on")
	assert.Equal(t, native, usageOf(c, next.SessionID).Native)
	assert.Equal(t, "gone on", c.Said(next.SessionID)[len("begun alone"):], "the transcript does not repeat the agent's replay")
	return s.closed(c, "yes")
}

// playRestarts ends the agent twice between the prompts of a session.
func playRestarts(t *testing.T, a dayAgent) string {
	s, c, l := a.begins(t, "say: one")
	c.Completes(l)
	s.awaitRecord(`"one"`)
	prompts := []string{"say: one"}
	for _, word := range []string{"two", "three"} {
		s.close(c)
		c = s.Open()
		prompts = append(prompts, "say: "+word)
		if a.deletes {
			l = c.GoesOn(l, "say: "+word)
		} else {
			l = s.requireGoesOn(c, l, prompts...)
		}
		s.awaitRecord(`"` + word + `"`)
	}
	const lost = "The agent had lost its session"
	said := transcriptOf(c, l.SessionID)
	s.close(c)
	if a.deletes { // after the first restart already, if it follows within the minute of the session's start
		assert.Contains(t, said, lost)
		return "no: it deletes a session that it has loaded when it is started again; Duet sends it the transcript, and a note in the session says so"
	}
	assert.NotContains(t, said, lost)
	return "yes"
}

// playFork forks a session at its end.
func playFork(t *testing.T, a dayAgent) string {
	s, c, first := a.begins(t, "say: one")
	c.Completes(first)
	s.awaitRecord(`"one"`)
	native := usageOf(c, first.SessionID).Native
	fork := c.Begins("continueSession", object{"session_id": first.SessionID, "query": "say: two", "fork": true})
	c.Completes(fork)
	own := c.Await("the fork's own session", func(e e2e.Event) bool {
		return e.Data.SessionID == fork.SessionID && strings.Contains(string(e.Raw), `"event_type":"native_session"`)
	})
	assert.NotEqual(t, native, usageOf(c, fork.SessionID).Native)
	forked := strings.Contains(string(own.Raw), `"forked":true`)
	assert.Equal(t, a.forks, forked, "%s", own.Raw)
	assert.Equal(t, "onetwo", c.Said(fork.SessionID), "the transcript does not repeat the agent's replay")
	if forked {
		require.Equal(t, []string{"say: one", "say: two"}, s.model.Prompts())
	}
	// The original session continues as before.
	s.requireGoesOn(c, first, "say: one", "say: three")
	s.close(c)
	if forked {
		return "yes: its own session is forked"
	}
	return "yes: it gets the transcript; it cannot fork its own session"
}
