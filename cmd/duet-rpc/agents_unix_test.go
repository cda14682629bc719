//go:build unix

package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// What an agent does looks the same to people in both versions of the protocol.
func TestBothVersionsOfTheProtocol(t *testing.T) {
	t.Parallel()
	for version := 1; version <= 2; version++ {
		t.Run(fmt.Sprint("version ", version), func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			agent := fastProgram(t)
			sent := filepath.Join(s.home, "sent")
			s.agents(fmt.Sprintf("[agents.recorded]\ndriver = \"acp\"\nenv = { DUET_DEMO_DELAY = \"0\", DUET_DEMO_STATE = %q }\ncommand = [\"sh\", \"-c\", %q]\n",
				filepath.Join(s.home, "recorded"), fmt.Sprintf("'%s' demo-agent --protocol %d | tee '%s'", agent, version, sent)))
			c := s.open()
			l := c.launch("terminal", "recorded")
			c.completes(l)
			assert.Contains(t, c.conversation(l.SessionID), "The command is done. ")
			assert.Contains(t, c.toolResults(l.SessionID), "total ", "what ls has printed")
			assert.Contains(t, printedIn(c.seen()), "total ")

			l = c.next(l, "ask")
			question := c.awaitQuestion(l.SessionID)
			assert.Contains(t, string(question.Raw), "Which colour do you like?")
			c.call("sendDecision", object{"approval_id": question.Data.ApprovalID, "decision": "respond", "comment": "green"}, nil)
			c.completes(l)
			assert.Contains(t, c.conversation(l.SessionID), "You answered: green. ")

			l = c.next(l, "permit:1")
			question = c.awaitQuestion(l.SessionID)
			var reported struct{ Delivered string }
			c.call("continueSession", object{"session_id": l.SessionID, "query": "use the other file", "deliver": "steer"}, &reported)
			assert.Equal(t, "injected", reported.Delivered)
			c.approve(question.Data.ApprovalID)
			c.completes(l)
			assert.Contains(t, c.conversation(l.SessionID), "You said meanwhile: use the other file ")

			l = c.next(l, "background")
			own := c.awaitOwnTurn(1)
			assert.Equal(t, "completed", c.approveAll(own).Data.State)
			assert.Contains(t, c.conversation(own), "The background task has finished. I wrote demo.txt. ")
			assert.FileExists(t, filepath.Join(s.root, "demo.txt"))
			assert.Contains(t, c.toolResults(l.SessionID), "The background task is over.")

			l = c.next(l, "late:100")
			c.completes(l)
			own = c.awaitOwnTurn(2)
			assert.Equal(t, "completed", c.awaitEnd(own).Data.State)
			assert.Contains(t, c.conversation(own), "chunk 99 chunk 100 ")

			l = c.next(l, "goal")
			c.interruptOwnTurn(4, l)
			l = c.next(l, "quiet")
			c.completes(l)

			wire := readFile(t, sent)
			assert.Equal(t, 1, strings.Count(wire, fmt.Sprintf(`"protocolVersion":%d`, version)))
			assert.Equal(t, version == 2, strings.Contains(wire, `"state_update"`))
			c.leave()
		})
	}
}

// toolResults is what the tools of a session have returned.
func (c *client) toolResults(session string) (all string) {
	c.t.Helper()
	for _, e := range c.items(session) {
		all += e.Result
	}
	return all
}

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
	c := newSite(t).open()
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
	next := c.next(l, "quiet")
	assert.Equal(t, l.ThreadID, next.ThreadID)
	c.completes(next)
	c.leave()
}

// Interrupting a session that has ended reaches what its agent does by itself since.
func TestInterruptingAnAgentThatGoesOnByItself(t *testing.T) {
	t.Parallel()
	c := newSite(t).open()
	l := c.launch("goal", "")
	own := c.interruptOwnTurn(2, l)
	turns := len(c.ownTurns())
	assert.Equal(t, "completed", c.session(l.SessionID).State)

	var next launched
	c.call("continueSession", object{"session_id": own, "query": "quiet slow"}, &next)
	c.completes(next)
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
	c := newSite(t).open()
	l := c.launch("quiet background", "")
	own := c.awaitOwnTurn(1)
	c.awaitQuestion(own)
	next := c.next(l, "quiet")
	assert.Equal(t, l.ThreadID, next.ThreadID)
	assert.Equal(t, "queued", c.session(next.SessionID).State)
	assert.Equal(t, "completed", c.approveAll(own).Data.State)
	c.completes(next)
	assert.Contains(t, c.conversation(next.SessionID), "The background task has finished. I wrote demo.txt. Hello from the demo agent. You asked: quiet ")
	assert.Len(t, c.ownTurns(), 1)
	c.leave()
}

// An agent with modes and models of its own: what it does not have is an error that
// lists what it has, at its first start and, once it has reported, before it is started.
func TestAnAgentsOwnModesAndModels(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := func(name, of string) object { return object{name: of, "name": of} }
	s.played(
		playedStep{Opened: object{
			"modes":  object{"currentModeId": "ask", "availableModes": []any{id("id", "ask"), id("id", "code")}},
			"models": object{"currentModelId": "m-large", "availableModels": []any{id("modelId", "m-large"), id("modelId", "m-small")}},
		}},
		playedStep{Update: object{"sessionUpdate": "available_commands_update", "availableCommands": []any{
			object{"name": "review", "description": "Review it", "input": object{"hint": "what"}},
		}}},
		playedStep{Say: "done"},
	)
	_, err := s.command("prompt", "--agent", "played", "--model", "gpt", "go")
	require.Error(t, err)
	assert.Contains(t, err.Error(), `played: there is no model "gpt": the agent has m-large, m-small`)
	assert.Contains(t, err.Error(), "SETTING_REFUSED")

	for flag, says := range map[string]string{
		"--model=gpt": `model: expected a model of the agent played, received "gpt"; choose one of m-large, m-small`,
		"--mode=yolo": `expected a mode of the agent played, or one of Duet's own, received "yolo"; choose one of ask, code, default, acceptEdits, bypassPermissions`,
		"--mode=plan": `received "plan"; choose one of ask, code`,
	} {
		_, err := s.command("prompt", "--agent", "played", flag, "go")
		require.Error(t, err)
		assert.Contains(t, err.Error(), says)
	}
	said := s.run("prompt", "--agent", "played", "--mode", "code", "--model", "m-small", "go")
	assert.Equal(t, "done\n", said)

	s.daemon()
	shown := s.run("session", "show", "task-0002")
	for _, line := range []string{
		`(?m)^mode +code$`, `(?m)^modes +ask, code, default, acceptEdits, bypassPermissions$`, `(?m)^model +m-small$`, `(?m)^models +m-large, m-small$`, `(?m)^commands +/review$`,
	} {
		assert.Regexp(t, line, shown, "after a restart, too")
	}
	listed := s.run("session", "commands", "task-0002")
	assert.Regexp(t, `(?m)^/review +what +Review it$`, listed)

	s.run("prompt", "--continue", "task-0002", "again")
	shown = s.run("session", "show", "task-0003")
	assert.Regexp(t, `(?m)^mode +code$`, shown, "it goes on where it was")
	s.run("daemon", "stop")
}

// In a narrow terminal the list of agents keeps what it is for: how the missing ones
// are got is not cut.
func TestAgentsAreListedAtSixtyColumns(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	programs := filepath.Join(s.home, "programs")
	require.NoError(t, os.MkdirAll(programs, 0o700))
	for name, text := range map[string]string{"claude": "", "gemini": "echo 1.2.3"} {
		testkit.Program(t, filepath.Join(programs, name), "#!/bin/sh\n"+text+"\n")
	}
	s.env = append(s.env, "PATH="+programs+":/usr/bin:/bin", "TERM=xterm-256color")
	p := s.onTerminal(t, 60, "agents")
	p.sees("` asks.")
	require.Zero(t, p.status())
	said := strings.ReplaceAll(p.tty.printed.String(), "\r", "")
	table, notes, ok := strings.Cut(said, "\n\n")
	require.True(t, ok, said)
	for line := range strings.Lines(table) {
		assert.LessOrEqual(t, len([]rune(strings.TrimRight(line, "\n"))), 60, line)
	}
	assert.Regexp(t, `(?m)^ +AGENT +STATE +(SOURCE +)?VERSION +SIGNED IN$`, table)
	assert.Regexp(t, `(?m)^.. gemini +available .* 1\.2\.3 +not known$`, table)
	assert.Regexp(t, `(?m)^.. claude +needs adapter .*- +-$`, table)
	notes = strings.Join(strings.Fields(notes), " ") // its lines are wrapped
	assert.Contains(t, notes, "claude: npm install -g @agentclientprotocol/claude-agent-acp (")
	assert.Contains(t, notes, "`duet-rpc agents check scripted gemini` asks.")
}
