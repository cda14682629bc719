//go:build unix

package agents

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	duet "github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/e2e"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// Both versions of the protocol look the same to the user.
func TestBothVersionsOfTheProtocol(t *testing.T) {
	t.Parallel()
	for version := 1; version <= 2; version++ {
		t.Run(fmt.Sprint("version ", version), func(t *testing.T) {
			s := e2e.NewSite(e2e.Parallel(t))
			agent := e2e.FastProgram(t)
			sent := filepath.Join(s.Home, "sent")
			s.Agents(fmt.Sprintf("[agents.recorded]\ndriver = \"acp\"\nenv = { DUET_DEMO_DELAY = \"0\", DUET_DEMO_STATE = %q }\ncommand = [\"sh\", \"-c\", %q]\n",
				filepath.Join(s.Home, "recorded"), fmt.Sprintf("'%s' demo-agent --protocol %d | tee '%s'", agent, version, sent)))
			c := s.Open()
			l := c.Launch("terminal", "recorded")
			c.Completes(l)
			assert.Contains(t, c.Said(l.SessionID), "The command is done. ")
			assert.Contains(t, toolResults(c, l.SessionID), "total ", "the output of ls")
			assert.Contains(t, e2e.PrintedIn(c.Seen()), "total ")

			l = c.Next(l, "ask")
			question := c.AwaitQuestion(l.SessionID)
			assert.Contains(t, string(question.Raw), "Which colour do you like?")
			c.Call("sendDecision", object{"approval_id": question.Data.ApprovalID, "decision": "respond", "comment": "green"}, nil)
			c.Completes(l)
			assert.Contains(t, c.Said(l.SessionID), "You answered: green. ")

			l = c.Next(l, "permit:1")
			question = c.AwaitQuestion(l.SessionID)
			var reported struct{ Delivered string }
			c.Call("continueSession", object{"session_id": l.SessionID, "query": "use the other file", "deliver": "steer"}, &reported)
			assert.Equal(t, "injected", reported.Delivered)
			c.Approve(question.Data.ApprovalID)
			c.Completes(l)
			assert.Contains(t, c.Said(l.SessionID), "You said meanwhile: use the other file ")

			l = c.Next(l, "background")
			own := c.AwaitOwnTurn(1)
			assert.Equal(t, "completed", c.ApproveAll(own).Data.State)
			assert.Contains(t, c.Said(own), "The background task has finished. I wrote demo.txt. ")
			assert.FileExists(t, filepath.Join(s.Root, "demo.txt"))
			assert.Contains(t, toolResults(c, l.SessionID), "The background task is over.")

			// The text after a turn becomes another turn of the session, complete and in
			// order.
			l = c.GoesOn(l, "late:10000")
			own = c.AwaitOwnTurn(2)
			assert.Equal(t, "completed", c.AwaitEnd(own).Data.State)
			assert.Equal(t, "completed", c.Session(l.SessionID).State)
			var want strings.Builder
			for i := range 10_000 {
				fmt.Fprintf(&want, "chunk %d ", i+1)
			}
			assert.True(t, strings.HasSuffix(c.Said(own), "That is all. "+want.String()))

			// The user continues the session from the turn that the user began.
			goal := c.Next(l, "goal")
			assert.Equal(t, l.ThreadID, goal.ThreadID)
			l = goal
			interruptOwnTurn(c, 4, l)
			l = c.GoesOn(l, "quiet")

			wire := e2e.ReadFile(t, sent)
			assert.Equal(t, 1, strings.Count(wire, fmt.Sprintf(`"protocolVersion":%d`, version)))
			assert.Equal(t, version == 2, strings.Contains(wire, `"state_update"`))
			c.Leave()
		})
	}
}

// toolResults returns the results of a session's tool calls.
func toolResults(c *e2e.Client, session string) (all string) {
	c.T.Helper()
	for _, e := range c.Items(session) {
		all += e.Result
	}
	return all
}

// interruptOwnTurn interrupts a session whose agent starts turn after turn. It interrupts turn
// n or a later one, and returns HumanLayer's id of that turn.
func interruptOwnTurn(c *e2e.Client, n int, l e2e.Launched) (session string) {
	c.T.Helper()
	for c.AwaitOwnTurn(n); c.Try("interruptSession", object{"session_id": l.SessionID}, nil) != nil; n++ { // turn n has already ended
		c.AwaitOwnTurn(n + 1)
	}
	return c.Await("a turn is interrupted", func(e e2e.Event) bool {
		return e.Type == "session_status_changed" && e.Data.State == "interrupted"
	}).Data.SessionID
}

// ownTurns returns the sessions of agent-initiated turns so far.
func ownTurns(c *e2e.Client) map[string]bool {
	sessions := make(map[string]bool)
	for _, e := range c.Seen() {
		if e.Data.Subtype == "went_on" {
			sessions[e.Data.SessionID] = true
		}
	}
	return sessions
}

// An interruption of an ended session stops the agent-initiated turns that followed it.
func TestInterruptingAnAgentThatGoesOnByItself(t *testing.T) {
	c := e2e.NewSite(e2e.Parallel(t)).Open()
	l := c.Launch("goal", "")
	own := interruptOwnTurn(c, 2, l)
	assert.Equal(t, "completed", c.Session(l.SessionID).State)

	next := c.Begins("continueSession", object{"session_id": own, "query": "quiet slow"})
	c.Completes(next)
	assert.Equal(t, l.ThreadID, next.ThreadID)
	// The hub has now read the agent's output from before the interruption, as agent-initiated
	// turns.
	turns := ownTurns(c)
	c.Completes(c.Begins("continueSession", object{"session_id": next.SessionID, "query": "quiet slow"}))
	assert.Equal(t, turns, ownTurns(c), "the agent continues its goal after the interruption")
	c.Leave()
}

// A prompt during an agent-initiated turn waits until the user answers the question of that turn.
// Then that turn ends, and the agent works on in the turn of the prompt.
func TestAPromptForAnAgentThatGoesOnByItself(t *testing.T) {
	c := e2e.NewSite(e2e.Parallel(t)).Open()
	l := c.Launch("quiet background", "")
	own := c.AwaitOwnTurn(1)
	c.AwaitQuestion(own)
	next := c.Next(l, "quiet")
	assert.Equal(t, l.ThreadID, next.ThreadID)
	assert.Equal(t, "queued", c.Session(next.SessionID).State)
	assert.Equal(t, "completed", c.ApproveAll(own).Data.State)
	c.Completes(next)
	assert.Contains(t, c.Said(next.SessionID), "The background task has finished. I wrote demo.txt. Hello from the demo agent. You asked: quiet ")
	assert.Len(t, ownTurns(c), 1)
	c.Leave()
}

// An unknown mode or model is an error that lists the agent's own. The agent's first start reports
// it. Later the hub refuses the request before a start.
func TestAnAgentsOwnModesAndModels(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	id := func(name, of string) object { return object{name: of, "name": of} }
	s.Played(
		e2e.PlayedStep{Opened: object{
			"modes":  object{"currentModeId": "ask", "availableModes": []any{id("id", "ask"), id("id", "code")}},
			"models": object{"currentModelId": "m-large", "availableModels": []any{id("modelId", "m-large"), id("modelId", "m-small")}},
		}},
		e2e.PlayedStep{Update: object{"sessionUpdate": "available_commands_update", "availableCommands": []any{
			object{"name": "review", "description": "Review it", "input": object{"hint": "what"}},
		}}},
		e2e.PlayedStep{Say: "done"},
	)
	_, err := s.Command("prompt", "--agent", "played", "--model", "gpt", "go")
	require.Error(t, err)
	e2e.RequireParts(t, err.Error(), `played: there is no model "gpt": the agent has m-large, m-small`, "SETTING_REFUSED")

	for flag, says := range map[string]string{
		"--model=gpt": `model: expected a model of the agent played, received "gpt"; choose one of m-large, m-small`,
		"--mode=yolo": `expected a mode of the agent played, or one of Duet's own, received "yolo"; choose one of ask, code, default, acceptEdits, bypassPermissions`,
		"--mode=plan": `received "plan"; choose one of ask, code`,
	} {
		_, err := s.Command("prompt", "--agent", "played", flag, "go")
		require.Error(t, err)
		assert.Contains(t, err.Error(), says)
	}
	said := s.Run("prompt", "--agent", "played", "--mode", "code", "--model", "m-small", "go")
	assert.Equal(t, "done\n", said)

	s.Daemon()
	shown := s.Run("session", "show", "2")
	for _, line := range []string{
		`(?m)^mode +code$`, `(?m)^modes +ask, code, default, acceptEdits, bypassPermissions$`, `(?m)^model +m-small$`, `(?m)^models +m-large, m-small$`, `(?m)^commands +/review$`,
	} {
		assert.Regexp(t, line, shown, "the next hub knows the settings")
	}
	listed := s.Run("session", "commands", "2")
	assert.Regexp(t, `(?m)^/review +what +Review it$`, listed)

	s.Run("prompt", "--continue", "2", "again")
	shown = s.Run("session", "show", "2.2")
	assert.Regexp(t, `(?m)^mode +code$`, shown, "the next session keeps the mode")
	s.Run("daemon", "stop")
}

// configureKeeping configures an agent that keeps its sessions in a directory, and returns the directory.
func configureKeeping(s *e2e.Site, abilities string, sessions ...e2e.KeptSession) (dir string) {
	s.T.Helper()
	self, err := os.Executable()
	require.NoError(s.T, err)
	dir = filepath.Join(s.Home, "kept")
	require.NoError(s.T, os.MkdirAll(dir, 0o700))
	for _, k := range sessions {
		k.Save(dir)
	}
	s.Agents(fmt.Sprintf("[agents.keeping]\ndriver = \"acp\"\ncommand = [%q]\nenv = { %s = %q, %s = %q }\n", self, e2e.KeepingVariable, dir, e2e.KeepingAbilities, abilities))
	return dir
}

// begunElsewhere returns a session that was begun without Duet: two prompts, with a thought, a plan and
// an edit.
func begunElsewhere(s *e2e.Site, id, title, updated string) e2e.KeptSession {
	update := func(u object) json.RawMessage { return e2e.MustMarshal(u) }
	return e2e.KeptSession{ID: id, Dir: s.Root, Title: title, Updated: updated, Told: []json.RawMessage{
		e2e.KeptText("user_message_chunk", "<context>of the agent</context>"),
		update(object{"sessionUpdate": "user_message_chunk", "messageId": "m", "content": object{"type": "text", "text": "Mend "}}),
		update(object{"sessionUpdate": "user_message_chunk", "messageId": "m", "content": object{"type": "text", "text": "it"}}),
		e2e.KeptText("agent_thought_chunk", "Hm."),
		update(object{"sessionUpdate": "plan", "entries": []object{{"content": "look", "priority": "high", "status": "completed"}}}),
		e2e.KeptText("agent_message_chunk", "I edit."),
		update(object{"sessionUpdate": "tool_call", "toolCallId": "e1", "title": "Edit a.txt", "kind": "edit", "status": "pending", "rawInput": object{"file_path": s.Root + "/a.txt"}}),
		update(object{
			"sessionUpdate": "tool_call_update", "toolCallId": "e1", "status": "completed",
			"content": []object{{"type": "diff", "path": s.Root + "/a.txt", "oldText": "old\n", "newText": "new\n"}},
		}),
		update(object{"sessionUpdate": "available_commands_update", "availableCommands": []object{}}),
		e2e.KeptText("agent_message_chunk", "Done."),
		e2e.KeptText("user_message_chunk", "Thanks"),
		e2e.KeptText("agent_message_chunk", "You are welcome."),
	}}
}

type nativeListedSession struct {
	ID        string `json:"agent_session_id"`
	Title     string `json:"title"`
	Updated   string `json:"updated_at"`
	Dir       string `json:"working_dir"`
	SessionID string `json:"turn_uuid"`
}

type nativeListed struct {
	Agent    string                `json:"agent"`
	Sessions []nativeListedSession `json:"sessions"`
	Next     string                `json:"next_cursor"`
}

type nativeAdopted struct {
	e2e.Launched
	TurnUUID    string `json:"turn_uuid"`
	SessionUUID string `json:"session_uuid"`
	State       string `json:"state"`
	Adopted     bool   `json:"adopted"`
	History     bool   `json:"history"`
	Note        string `json:"note"`
}

// adopt adopts a session that an agent keeps.
func adopt(c *e2e.Client, agent, native string) nativeAdopted {
	c.T.Helper()
	return adoptWith(c, object{"agent": agent, "agent_session_id": native})
}

func adoptWith(c *e2e.Client, params object) (a nativeAdopted) {
	c.T.Helper()
	c.Call("session.adopt", params, &a)
	a.SessionID, a.ThreadID = a.TurnUUID, a.SessionUUID
	return a
}

// reportedItems returns the type, role, text and tool of each item of a session.
func reportedItems(c *e2e.Client, session string) (list []string) {
	c.T.Helper()
	for _, e := range c.Items(session) {
		list = append(list, strings.TrimSpace(strings.Join([]string{e.Type, e.Role, e.Content, e.Tool}, " ")))
	}
	return list
}

// Duet lists a session that was begun without it, adopts the session with its history, and
// continues it in the agent's own session.
func TestASessionBegunElsewhereIsAdopted(t *testing.T) {
	t.Parallel()
	for name, abilities := range map[string]string{"resumed": "list load resume close delete", "loaded": "list load", "told late": "list load late"} {
		t.Run(name, func(t *testing.T) {
			s := e2e.NewSite(e2e.Parallel(t))
			dir := configureKeeping(s, abilities,
				begunElsewhere(s, "one", "Mending", "2026-01-02T03:04:05Z"), begunElsewhere(s, "two", "Other", "2026-01-03T03:04:05Z"),
				e2e.KeptSession{ID: "three", Dir: "/nowhere", Updated: "2026-01-01T03:04:05Z"})
			c := s.Open()

			var list nativeListed
			c.Call("agent.sessions", object{"agent": "keeping", "limit": 1}, &list)
			require.Len(t, list.Sessions, 1)
			assert.Equal(t, "two", list.Sessions[0].ID)
			var rest nativeListed
			c.Call("agent.sessions", object{"agent": "keeping", "cursor": list.Next}, &rest)
			require.Len(t, rest.Sessions, 2)
			assert.Equal(t, []string{"one", "three"}, []string{rest.Sessions[0].ID, rest.Sessions[1].ID})
			assert.Equal(t, "2026-01-02T03:04:05Z", rest.Sessions[0].Updated)
			assert.Empty(t, rest.Sessions[0].SessionID)
			assert.Empty(t, rest.Next)
			var here nativeListed
			c.Call("agent.sessions", object{"agent": "keeping", "working_dir": s.Root}, &here)
			assert.Len(t, here.Sessions, 2)

			a := adopt(c, "keeping", "one")
			assert.True(t, a.Adopted)
			assert.True(t, a.History)
			assert.Equal(t, "completed", a.State)
			end := c.AwaitEnd(a.SessionID)
			assert.Equal(t, "completed", end.Data.State, "%s", end.Raw)
			want := []string{
				"message user <context>of the agent</context>", "message user Mend it", "thinking assistant Hm.", "plan assistant - [x] look", "message assistant I edit.", "tool_call assistant  Edit", "tool_result user",
				"message assistant Done.", "message user Thanks", "message assistant You are welcome.",
			}
			reported := reportedItems(c, a.SessionID)
			assert.Equal(t, want, reported)
			diffs := false
			for _, e := range c.Seen() {
				assert.Equal(t, a.SessionID, e.Data.SessionID, "%s", e.Raw)
				diffs = diffs || e.Data.SessionID == a.SessionID && strings.Contains(string(e.Raw), `"old_text":"old\n"`)
			}
			assert.True(t, diffs, "an event has the diff")
			assert.Equal(t, "Mending", c.Session(a.SessionID).Title)
			assert.Equal(t, "Mend it", c.Session(a.SessionID).Query)

			// A second adoption changes nothing.
			again := adopt(c, "keeping", "one")
			assert.False(t, again.Adopted)
			assert.Equal(t, a.SessionID, again.SessionID)
			assert.Contains(t, again.Note, "was not changed: 1.1")
			assert.Equal(t, want, reportedItems(c, a.SessionID))
			c.Call("agent.sessions", object{"agent": "keeping", "working_dir": s.Root}, &here)
			assert.Equal(t, a.SessionID, here.Sessions[1].SessionID)

			next := c.GoesOn(a.Launched, "and now?")
			whole := append(append([]string{}, want...), "message user and now?", "message assistant after 4: and now?")
			assert.Equal(t, whole, reportedItems(c, next.SessionID), "the agent knows the history, and does not send it again")
			assert.Len(t, e2e.KeptIn(dir), 3, "the agent began no new session")
			c.Leave()
		})
	}
}

// countRequests counts the agent's requests that equal a line.
func countRequests(s *e2e.Site, dir, line string) (n int) {
	s.T.Helper()
	text := e2e.ReadFile(s.T, filepath.Join(dir, "log"))
	for one := range strings.Lines(text) {
		if strings.TrimSpace(one) == line {
			n++
		}
	}
	return n
}

// Duet adopts a session without its history if the agent offers only session/resume. It refuses an
// agent without session/load and session/resume, and stores nothing.
func TestWhatAnAgentCannotDoWithItsSessionsIsSaid(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	configureKeeping(s, "resume", begunElsewhere(s, "one", "", "2026-01-02T03:04:05Z"))
	c := s.Open()
	err := c.Try("agent.sessions", object{"agent": "keeping"}, nil)
	require.ErrorContains(t, err, "session/list")
	assert.ErrorContains(t, err, "not_offered")
	require.ErrorContains(t, c.Try("agent.forget", object{"agent": "keeping", "agent_session_id": "one"}, nil), "does not offer to delete")
	a := adoptWith(c, object{"agent": "keeping", "agent_session_id": "one", "title": "Mine"})
	assert.True(t, a.Adopted)
	assert.False(t, a.History)
	assert.Contains(t, a.Note, "can continue it")
	reported := reportedItems(c, a.SessionID)
	require.Len(t, reported, 1)
	assert.Contains(t, reported[0], "This session began elsewhere.")
	next := c.GoesOn(a.Launched, "on")
	assert.Contains(t, reportedItems(c, next.SessionID), "message assistant after 4: on")
	require.ErrorContains(t, c.Try("session.adopt", object{"agent": "keeping", "agent_session_id": "none"}, nil), "Resource not found")
	require.ErrorContains(t, c.Try("session.adopt", object{"agent": "keeping", "agent_session_id": "two", "working_dir": "/nowhere"}, nil), "a directory that exists")
	c.Leave()

	configureKeeping(s, "")
	c = s.Start()
	err = c.Try("session.adopt", object{"agent": "keeping", "agent_session_id": "two"}, nil)
	require.ErrorContains(t, err, "neither session/load nor session/resume")
	assert.ErrorContains(t, err, "not_offered")
	err = c.Try("session.adopt", object{"agent": "scripted", "agent_session_id": "two", "working_dir": "~"}, nil)
	require.Error(t, err)
	assert.Len(t, c.Sessions(), 2, "a refused adoption stores no session")
	c.Leave()
}

// Duet reports a missing directory before it sends session/load to the agent.
func TestAnAdoptedSessionNeedsItsDirectory(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	gone := begunElsewhere(s, "one", "Gone", "2026-01-02T03:04:05Z")
	gone.Dir = filepath.Join(s.Home, "gone")
	dir := configureKeeping(s, "list load", gone)
	c := s.Open()
	require.ErrorContains(t, c.Try("session.adopt", object{"agent": "keeping", "agent_session_id": "one"}, nil), "working_dir")
	assert.Zero(t, countRequests(s, dir, "session/load one"))
	a := adoptWith(c, object{"agent": "keeping", "agent_session_id": "one", "working_dir": s.Root})
	assert.True(t, a.Adopted)
	c.Leave()
}

// Duet deletes an agent's session, but not during a turn of it.
func TestAnAgentsSessionIsDeleted(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	dir := configureKeeping(s, "list load resume delete", begunElsewhere(s, "one", "Mending", "2026-01-02T03:04:05Z"))
	c := s.Open()
	a := adopt(c, "keeping", "one")
	busy := c.Next(a.Launched, "hold")
	c.AwaitState(busy.SessionID, "running")
	require.ErrorContains(t, c.Try("agent.forget", object{"agent": "keeping", "agent_session_id": "one"}, nil), "duet-rpc session interrupt 1.2")
	assert.Zero(t, countRequests(s, dir, "session/delete one"))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
	c.Completes(busy)
	c.Call("agent.forget", object{"agent": "keeping", "agent_session_id": "one"}, nil)
	assert.Empty(t, e2e.KeptIn(dir))
	require.ErrorContains(t, c.Try("agent.forget", object{"agent": "keeping", "agent_session_id": "one"}, nil), "Resource not found")
	c.Leave()

	// The session continues in a new one of the agent, which receives the transcript.
	c = s.Open()
	next := c.GoesOn(busy, "on")
	reported := reportedItems(c, next.SessionID)
	e2e.RequireParts(t, reported[len(reported)-1], "after 0: ", "You are welcome.")
	c.Leave()
}

// The agent forks its own session for a fork at the end of a session. A branch from an earlier
// point receives the transcript.
func TestAnAgentForksItsOwnSession(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	dir := configureKeeping(s, "load resume fork close")
	c := s.Open()
	first := c.Launch("first", "keeping")
	c.Completes(first)
	second := c.GoesOn(first, "second")
	require.Len(t, e2e.KeptIn(dir), 1)
	native := e2e.KeptIn(dir)[0].ID

	fork := c.Begins("continueSession", object{"session_id": second.SessionID, "query": "third", "fork": true})
	c.Completes(fork)
	assert.NotEqual(t, second.ThreadID, fork.ThreadID)
	assert.Equal(t, []string{"message user third", "message assistant after 2: third"}, reportedItems(c, fork.SessionID)[4:], "the fork knows the history, and does not receive it again")
	c.Await("the fork's own session", func(e e2e.Event) bool {
		return e.Data.SessionID == fork.SessionID && strings.Contains(string(e.Raw), `"event_type":"native_session"`) && strings.Contains(string(e.Raw), `"forked":true`)
	})
	assert.Equal(t, 1, countRequests(s, dir, "session/fork "+native))
	assert.Len(t, e2e.KeptIn(dir), 2)

	// A fork of the agent's session would know the later turns, too.
	early := c.GoesOn(first, "other")
	said := strings.Join(reportedItems(c, early.SessionID), "\n")
	assert.Contains(t, said, "after 0: ", "the new session receives the transcript")
	assert.Contains(t, said, "first")
	assert.NotContains(t, said, "second")
	assert.Equal(t, 1, countRequests(s, dir, "session/fork "+native))
	c.Leave()
}

// The hub closes the session of an idle agent before it ends the agent. The next prompt resumes the
// session.
func TestAnAgentClosesItsSessionBeforeItIsEnded(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	dir := configureKeeping(s, "resume close")
	s.Env = append(s.Env, "DUET_IDLE_AGENTS=0")
	c := s.Open()
	first := c.Launch("first", "keeping")
	c.Completes(first)
	native := e2e.KeptIn(dir)[0].ID
	require.Eventually(t, func() bool { return countRequests(s, dir, "session/close "+native) == 1 }, e2e.Watchdog/3, e2e.PollEvery, "the hub did not close the session")
	second := c.GoesOn(first, "second")
	assert.Contains(t, reportedItems(c, second.SessionID), "message assistant after 1: second")
	c.Leave()
}

// The shell commands take the beginning of a session's id, or "last".
func TestTheShellTakesSessionsOver(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	other := begunElsewhere(s, "abd-2", "Other \x1b[31m", "2026-01-03T03:04:05Z")
	other.Dir = filepath.Join(s.Home, "gone")
	dir := configureKeeping(s, "list load resume delete", begunElsewhere(s, "abc-1", "Mending", "2026-01-02T03:04:05Z"), other, begunElsewhere(s, "older", "", "2026-01-01T03:04:05Z"))
	s.Daemon()
	run := func(args ...string) string {
		t.Helper()
		out := s.Run(args...)
		return out
	}
	refused := func(want string, args ...string) {
		t.Helper()
		s.Refuses(want, args...)
	}
	here := run("session", "list", "--native", "--agent", "keeping")
	assert.Regexp(t, `(?m)^ID +ADOPTED +AGE +TITLE +DIRECTORY\nabc-1 +- +\d+d +Mending +`+s.Root+`\nolder +- .*\n\z`, here)
	all := run("session", "list", "--native", "--agent", "keeping", "--everywhere")
	assert.Contains(t, all, "abd-2")
	assert.NotContains(t, all, "\x1b", "the list escapes control characters in a title")
	refused("add --native", "session", "list", "--everywhere")
	refused("leave one of them out", "session", "list", "--native", "--state", "failed")

	refused("2 sessions of keeping begin with", "session", "adopt", "ab", "--agent", "keeping")
	refused("no session whose id begins with", "session", "adopt", "x", "--agent", "keeping")
	refused("--dir", "session", "adopt", "abd", "--agent", "keeping")
	run("session", "adopt", "abd", "--agent", "keeping", "--dir", s.Root)
	adopted := strings.TrimSpace(run("session", "adopt", "last", "--agent", "keeping"))
	assert.Regexp(t, "(?m)^abc-1 +2\\.1 ", run("session", "list", "--native", "--agent", "keeping"))
	assert.Contains(t, run("session", "show", adopted), "You are welcome.")
	assert.Equal(t, adopted, strings.TrimSpace(run("session", "adopt", "abc", "--agent", "keeping")), "a second adoption returns the same session")
	var raw nativeListed
	require.NoError(t, json.Unmarshal([]byte(run("session", "list", "--native", "--agent", "keeping", "--json")), &raw))
	assert.Len(t, raw.Sessions, 2)

	refused("add --native", "session", "delete", "older", "--agent", "keeping")
	refused("duet-rpc session delete --native older --agent keeping", "session", "delete", "--native", "older", "--agent", "keeping")
	assert.Len(t, e2e.KeptIn(dir), 3)
	run("session", "delete", "--native", "older", "--agent", "keeping", "--yes")
	assert.Len(t, e2e.KeptIn(dir), 2)
	run("daemon", "stop")
}

// An editorWithTools is an editor that offers tools to agents.
type editorWithTools struct {
	*duet.Client
	t *testing.T
}

// newEditorWithTools starts an editor's process and offers tools. The result of each is the name of
// the editor, the tool and its arguments.
func newEditorWithTools(s *e2e.Site, t *testing.T, name string, tools ...string) editorWithTools {
	t.Helper()
	l := s.Launch()
	command := duet.Command(e2e.Program, append([]string{e2e.Patiently}, l.Args...)...)
	command.Dir, command.Env = s.Root, append(append(e2e.CleanEnvironment(), e2e.Homeless(t)...), l.Env...)
	c, err := duet.Dial(t.Context(), command)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	for _, tool := range tools {
		c.Handle("editor."+tool, func(_ context.Context, params json.RawMessage) (any, error) {
			if tool == "symbols" {
				return nil, &duet.Error{Code: -32603, Message: "the language server is not ready"}
			}
			return object{"editor": name, "tool": tool, "arguments": params}, nil
		})
	}
	if len(tools) > 0 {
		require.NoError(t, c.Call(t.Context(), "editor.offer", object{"client": name, "tools": tools}, nil))
	}
	return editorWithTools{c, t}
}

// prompts starts or continues a session, waits for its end, and returns its ids.
func (e editorWithTools) prompts(query, session string) (l e2e.Launched) {
	e.t.Helper()
	method, params := "launchSession", object{"query": query}
	if session != "" {
		method, params["session_id"] = "continueSession", session
	}
	require.NoError(e.t, e.Call(e.t.Context(), method, params, &l))
	e.ended(l)
	return l
}

func (e editorWithTools) ended(l e2e.Launched) {
	e.t.Helper()
	require.Eventually(e.t, func() bool {
		var r struct{ Session e2e.ShownSession }
		require.NoError(e.t, e.Call(e.t.Context(), "getSessionState", object{"session_id": l.SessionID}, &r))
		return e2e.Ended(r.Session.State)
	}, e2e.Watchdog, e2e.PollEvery)
}

// said returns the agent's text in a session.
func (e editorWithTools) said(l e2e.Launched) (text string) {
	e.t.Helper()
	var r struct {
		Events []struct {
			Session string `json:"session_id"`
			Type    string `json:"event_type"`
			Role    string
			Content string
		}
	}
	require.NoError(e.t, e.Call(e.t.Context(), "getConversation", object{"session_id": l.SessionID}, &r))
	for _, one := range r.Events {
		if one.Session == l.SessionID && one.Type == "message" && one.Role == "assistant" {
			text += one.Content
		}
	}
	return text
}

// An agent uses the tools of the editor that sent the last prompt of its session. Duet asks
// the user no question.
func TestAnAgentUsesTheToolsOfTheEditor(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	require.NoError(t, os.WriteFile(filepath.Join(s.Root, "main.go"), []byte("package main\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(s.Home, "secret"), nil, 0o600))
	require.NoError(t, os.Symlink(filepath.Join(s.Home, "secret"), filepath.Join(s.Root, "leads-out")))
	require.NoError(t, os.Mkdir(filepath.Join(s.Root, "d"), 0o700))
	none := newEditorWithTools(s, t, "plain")
	assert.Contains(t, none.said(none.prompts("editor:selection", "")), "The editor did not answer: no editor is connected.")

	first := newEditorWithTools(s, t, "Emacs", "definition", "selection", "symbols")
	l := first.prompts("editor:definition:main.go:3:main", "")
	answer := `{"arguments":{"line":3,"path":"` + filepath.Join(s.Root, "main.go") + `","symbol":"main"},"editor":"Emacs","tool":"definition"}`
	assert.Contains(t, first.said(l), "The editor said: "+answer)
	var asked struct{ Approvals []any }
	require.NoError(t, first.Call(t.Context(), "fetchApprovals", object{"session_id": l.SessionID, "include_decided": true}, &asked))
	assert.Empty(t, asked.Approvals)

	// Each session keeps its own editor.
	second := newEditorWithTools(s, t, "VS Code", "selection")
	other := second.prompts("editor:selection", "")
	assert.Contains(t, second.said(other), `"editor":"VS Code"`)
	assert.Contains(t, first.said(first.prompts("editor:selection", l.SessionID)), `"editor":"Emacs"`)
	assert.Contains(t, none.said(none.prompts("editor:selection", l.SessionID)), `"editor":"Emacs"`, "a client without tools is no editor")

	for words, why := range map[string]string{
		"editor:symbols":                   "the language server is not ready",
		"editor:diagnostics":               "the user's editor does not offer diagnostics",
		"editor:definition:leads-out":      "arguments.path: expected a file in the directories of the session",
		"editor:definition:../home/secret": "arguments.path: expected a file in the directories of the session",
		"editor:definition:none.go":        "arguments.path: expected a file in the directories of the session",
		"editor:definition:d":              "arguments.path: expected a regular file",
		"editor:nothing":                   "nothing",
	} {
		assert.Contains(t, first.said(first.prompts(words, "")), why, words)
	}

	// After the exit of that editor, the hub calls the most recently used one. Without an editor,
	// it refuses the call.
	first.Close()
	require.Eventually(t, func() bool { return assert.ObjectsAreEqual("VS Code", second.editorOf(l)) }, e2e.Watchdog, e2e.PollEvery)
	second.Close()
	require.Eventually(t, func() bool { return none.editorOf(l) == "not_offered" }, e2e.Watchdog, e2e.PollEvery)
}

// editorOf returns the name of a session's editor, or the kind of the error.
func (e editorWithTools) editorOf(l e2e.Launched) string {
	e.t.Helper()
	var r struct{ Result struct{ Editor string } }
	if err := e.Call(e.t.Context(), "editor.call", object{"session": l.SessionID, "tool": "selection"}, &r); err != nil {
		return string(duet.KindOf(err))
	}
	return r.Result.Editor
}

// The next hub knows the editor's tools.
func TestTheNextHubKnowsTheToolsOfTheEditor(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	e := newEditorWithTools(s, t, "Emacs", "selection")
	l := e.prompts("quiet", "")
	require.Equal(t, "Emacs", e.editorOf(l))
	hub, err := os.FindProcess(s.Daemon())
	require.NoError(t, err)
	require.NoError(t, hub.Kill())
	require.Eventually(t, func() bool { return e.editorOf(l) == "Emacs" }, e2e.Watchdog, e2e.PollEvery)
}

// mcpProgram is an MCP server that behaves as its argument says, and records its start.
const mcpProgram = `#!/bin/sh
echo "$1" >> "$0.started"
case $1 in
works) read -r line; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18"}}'; cat > /dev/null ;;
hangs) exec sleep 1000 ;;
ends) echo "no login with $TOKEN" >&2; exit 1 ;;
esac
`

// addMCPServers configures an agent with MCP servers: one that works, one that ends at once, others,
// and one without a program. It returns the program of the others.
func addMCPServers(s *e2e.Site, more string, others ...string) (program string) {
	s.T.Helper()
	program = filepath.Join(s.Home, "server")
	testkit.Program(s.T, program, mcpProgram)
	agent := e2e.FastProgram(s.T)
	text := more + fmt.Sprintf("[agents.served]\ncommand = [%q, \"demo-agent\"]\nenv = { DUET_DEMO_DELAY = \"0\", DUET_DEMO_STATE = %q }\n", agent, filepath.Join(s.Home, "demo"))
	for _, name := range append([]string{"works", "ends"}, others...) {
		text += fmt.Sprintf("[[agents.served.mcp_servers]]\nname = %q\ncommand = %q\nargs = [%q]\nenv = { TOKEN = \"guarded-secret\" }\n", name, program, name)
	}
	text += "[[agents.served.mcp_servers]]\nname = \"gone\"\ncommand = \"no-such-server\"\n"
	s.Agents(text)
	return program
}

const mcpEnded = "the MCP server ends ended with status 1 before it answered: no login with [secret]"

// The events, the shell and the transcript report a failed MCP server, without secrets. They report
// it once in a session, and report no working server.
func TestMCPServersThatDoNotWorkAreInTheTranscript(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	program := addMCPServers(s, "")
	c := s.Open()
	reported := func(l e2e.Launched, text string) {
		t.Helper()
		c.Await("the code of "+text, func(e e2e.Event) bool {
			return e.Type == "task_error" && e.Data.SessionID == l.SessionID && e.Data.Code == "MCP_SERVER_FAILED" && strings.Contains(string(e.Raw), strings.SplitN(text, " ", 5)[3])
		})
		c.Await(text, func(e e2e.Event) bool {
			return e.Type == "conversation_updated" && e.Data.SessionID == l.SessionID && e.Data.Role == "system" && strings.Contains(e.Data.Content, text)
		})
	}
	first := c.Launch("hello", "served")
	reported(first, mcpEnded)
	reported(first, `the MCP server gone will not start: the program "no-such-server" was not found`)
	assert.Equal(t, "completed", c.ApproveAll(first.SessionID).Data.State)

	transcript := s.Run("session", "show", first.TaskID, "--transcript")
	assert.Equal(t, 1, strings.Count(transcript, mcpEnded), transcript)
	assert.Contains(t, transcript, `the MCP server gone will not start`)
	assert.NotContains(t, transcript, "server works")

	// The next turn of the session neither reports nor starts the server again. A new
	// session does both.
	again := c.Next(first, "again")
	assert.Equal(t, "completed", c.ApproveAll(again.SessionID).Data.State)
	reported(c.Launch("hello", "served"), mcpEnded)
	for _, e := range c.Seen() {
		assert.NotContains(t, string(e.Raw), "guarded", "%s %s", e.Type, e.Raw)
		if e.Data.SessionID == again.SessionID {
			assert.NotContains(t, e.Data.Content, mcpEnded)
		}
	}
	var started []byte
	require.Eventually(t, func() bool {
		started, _ = os.ReadFile(program + ".started")
		return strings.Contains(string(started), "works\n")
	}, e2e.Watchdog/3, e2e.PollEvery)
	assert.Equal(t, map[string]int{"works": 1, "ends": 2}, map[string]int{"works": strings.Count(string(started), "works\n"), "ends": strings.Count(string(started), "ends\n")})
	c.Leave()
}

// `duet-rpc prompt` ends without an MCP server's answer. It reports that the server has not
// answered yet.
func TestAPromptSaysWhichMCPServerHasNotAnswered(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	addMCPServers(s, "", "hangs")
	said := s.RunIn(s.Root, "prompt", "--agent", "served", "--yes", "hello")
	assert.Contains(t, said, "— the MCP server hangs has not answered yet; `duet-rpc doctor` tries it again\n")
}

// With mcp.probe = false, Duet starts no MCP server itself. It starts no server from an untrusted
// project file.
func TestMCPServersAreNotTriedUnasked(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	program := addMCPServers(s, "[mcp]\nprobe = false\n")
	s.Run("prompt", "--agent", "served", "--yes", "hello")
	assert.NoFileExists(t, program+".started")
	values := s.Run("config")
	assert.Regexp(t, `mcp\.probe +user +false`, values)

	program = addMCPServers(s, "")
	require.NoError(t, os.WriteFile(filepath.Join(s.Root, ".duet.toml"), fmt.Appendf(nil,
		"[agents.theirs]\ncommand = [%q]\n[[agents.theirs.mcp_servers]]\nname = \"x\"\ncommand = %q\n[[agents.served.mcp_servers]]\nname = \"y\"\ncommand = %q\nargs = [\"y\"]\n", program, program, program), 0o600))
	s.Refuses("not trusted", "prompt", "--agent", "theirs", "hello")
	s.Run("prompt", "--agent", "served", "--yes", "hello")
	started, _ := os.ReadFile(program + ".started") // the file may be missing: the end of the hub ends its probes
	assert.NotContains(t, string(started), "y\n")
}
