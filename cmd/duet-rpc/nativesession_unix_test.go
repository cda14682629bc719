//go:build unix

package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// keeping gives the site an agent that keeps its sessions in a directory.
func (s *site) keeping(abilities string, sessions ...keptSession) (dir string) {
	s.t.Helper()
	self, err := os.Executable()
	require.NoError(s.t, err)
	dir = filepath.Join(s.home, "kept")
	require.NoError(s.t, os.MkdirAll(dir, 0o700))
	for _, k := range sessions {
		k.save(dir)
	}
	s.agents(fmt.Sprintf("[agents.keeping]\ndriver = \"acp\"\ncommand = [%q]\nenv = { %s = %q, %s = %q }\n", self, keepingVariable, dir, keepingAbilities, abilities))
	return dir
}

// elsewhere is a session that was begun without Duet: two prompts, with a thought, a
// plan and an edit.
func (s *site) elsewhere(id, title, updated string) keptSession {
	update := func(u object) json.RawMessage { return mustMarshal(u) }
	return keptSession{ID: id, Dir: s.root, Title: title, Updated: updated, Told: []json.RawMessage{
		keptText("user_message_chunk", "<context>of the agent</context>"),
		update(object{"sessionUpdate": "user_message_chunk", "messageId": "m", "content": object{"type": "text", "text": "Mend "}}),
		update(object{"sessionUpdate": "user_message_chunk", "messageId": "m", "content": object{"type": "text", "text": "it"}}),
		keptText("agent_thought_chunk", "Hm."),
		update(object{"sessionUpdate": "plan", "entries": []object{{"content": "look", "priority": "high", "status": "completed"}}}),
		keptText("agent_message_chunk", "I edit."),
		update(object{"sessionUpdate": "tool_call", "toolCallId": "e1", "title": "Edit a.txt", "kind": "edit", "status": "pending", "rawInput": object{"file_path": s.root + "/a.txt"}}),
		update(object{
			"sessionUpdate": "tool_call_update", "toolCallId": "e1", "status": "completed",
			"content": []object{{"type": "diff", "path": s.root + "/a.txt", "oldText": "old\n", "newText": "new\n"}},
		}),
		update(object{"sessionUpdate": "available_commands_update", "availableCommands": []object{}}),
		keptText("agent_message_chunk", "Done."),
		keptText("user_message_chunk", "Thanks"),
		keptText("agent_message_chunk", "You are welcome."),
	}}
}

type nativeListedSession struct {
	ID        string `json:"native_session_id"`
	Title     string `json:"title"`
	Updated   string `json:"updated_at"`
	Dir       string `json:"working_dir"`
	SessionID string `json:"session_id"`
	TaskID    string `json:"task_id"`
}

type nativeListed struct {
	Agent    string                `json:"agent"`
	Sessions []nativeListedSession `json:"sessions"`
	Next     string                `json:"next_cursor"`
}

type nativeAdopted struct {
	launched
	Status  string `json:"status"`
	Adopted bool   `json:"adopted"`
	History bool   `json:"history"`
	Note    string `json:"note"`
}

// reported are the kinds and the texts of what a session's conversation holds.
func (c *client) reported(session string) (list []string) {
	c.t.Helper()
	for _, e := range c.items(session) {
		list = append(list, strings.TrimSpace(strings.Join([]string{e.Type, e.Role, e.Content, e.Tool}, " ")))
	}
	return list
}

// A session that was begun without Duet is listed, adopted with its history, and gone
// on with in the agent's own session.
func TestASessionBegunElsewhereIsAdopted(t *testing.T) {
	t.Parallel()
	for name, abilities := range map[string]string{"resumed": "list load resume close delete", "loaded": "list load", "told late": "list load late"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			dir := s.keeping(abilities,
				s.elsewhere("one", "Mending", "2026-01-02T03:04:05Z"), s.elsewhere("two", "Other", "2026-01-03T03:04:05Z"),
				keptSession{ID: "three", Dir: "/nowhere", Updated: "2026-01-01T03:04:05Z"})
			c := s.open()

			var list nativeListed
			c.call("agent.sessions", object{"agent": "keeping", "limit": 1}, &list)
			require.Len(t, list.Sessions, 1)
			assert.Equal(t, "two", list.Sessions[0].ID)
			var rest nativeListed
			c.call("agent.sessions", object{"agent": "keeping", "cursor": list.Next}, &rest)
			require.Len(t, rest.Sessions, 2)
			assert.Equal(t, []string{"one", "three"}, []string{rest.Sessions[0].ID, rest.Sessions[1].ID})
			assert.Equal(t, "2026-01-02T03:04:05Z", rest.Sessions[0].Updated)
			assert.Empty(t, rest.Sessions[0].SessionID)
			assert.Empty(t, rest.Next)
			var here nativeListed
			c.call("agent.sessions", object{"agent": "keeping", "working_dir": s.root}, &here)
			assert.Len(t, here.Sessions, 2)

			var a nativeAdopted
			c.call("agent.adopt", object{"agent": "keeping", "native_session_id": "one"}, &a)
			assert.True(t, a.Adopted)
			assert.True(t, a.History)
			assert.Equal(t, "completed", a.Status)
			end := c.awaitEnd(a.SessionID)
			assert.Equal(t, "completed", end.Data.State, "%s", end.Raw)
			want := []string{
				"message user <context>of the agent</context>", "message user Mend it", "thinking assistant Hm.", "plan assistant - [x] look", "message assistant I edit.", "tool_call assistant  Edit", "tool_result user",
				"message assistant Done.", "message user Thanks", "message assistant You are welcome.",
			}
			reported := c.reported(a.SessionID)
			assert.Equal(t, want, reported)
			diffs := false
			for _, e := range c.seen() {
				assert.Equal(t, a.SessionID, e.Data.SessionID, "%s", e.Raw)
				diffs = diffs || e.Data.SessionID == a.SessionID && strings.Contains(string(e.Raw), `"old_text":"old\n"`)
			}
			assert.True(t, diffs, "an event has the diff")
			var state struct {
				Session struct {
					Title string `json:"title"`
					Query string `json:"query"`
				} `json:"session"`
			}
			c.call("getSessionState", object{"session_id": a.SessionID}, &state)
			assert.Equal(t, "Mending", state.Session.Title)
			assert.Equal(t, "Mend it", state.Session.Query)

			// Again: nothing is doubled.
			var again nativeAdopted
			c.call("agent.adopt", object{"agent": "keeping", "native_session_id": "one"}, &again)
			assert.False(t, again.Adopted)
			assert.Equal(t, a.SessionID, again.SessionID)
			assert.Contains(t, again.Note, a.TaskID)
			assert.Equal(t, want, c.reported(a.SessionID))
			c.call("agent.sessions", object{"agent": "keeping", "working_dir": s.root}, &here)
			assert.Equal(t, a.SessionID, here.Sessions[1].SessionID)
			assert.Equal(t, a.TaskID, here.Sessions[1].TaskID)

			next := c.next(a.launched, "and now?")
			c.completes(next)
			whole := append(append([]string{}, want...), "message user and now?", "message assistant after 4: and now?")
			assert.Equal(t, whole, c.reported(next.SessionID), "the agent knows what was said, and sends none of it again")
			assert.Len(t, keptIn(dir), 3, "it is the same session")
			c.leave()
		})
	}
}

// requests are how often the agent was asked for something.
func (s *site) requests(dir, line string) (n int) {
	s.t.Helper()
	text := readFile(s.t, filepath.Join(dir, "log"))
	for one := range strings.Lines(text) {
		if strings.TrimSpace(one) == line {
			n++
		}
	}
	return n
}

// An agent that can go on with a session and not tell it is believed; one that can do
// neither is refused, and nothing is kept.
func TestWhatAnAgentCannotDoWithItsSessionsIsSaid(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.keeping("resume", s.elsewhere("one", "", "2026-01-02T03:04:05Z"))
	c := s.open()
	err := c.try("agent.sessions", object{"agent": "keeping"}, nil)
	require.ErrorContains(t, err, "session/list")
	assert.ErrorContains(t, err, "not_offered")
	err = c.try("agent.deleteSession", object{"agent": "keeping", "native_session_id": "one"}, nil)
	require.ErrorContains(t, err, "does not offer to delete")
	var a nativeAdopted
	c.call("agent.adopt", object{"agent": "keeping", "native_session_id": "one", "title": "Mine"}, &a)
	assert.True(t, a.Adopted)
	assert.False(t, a.History)
	assert.Contains(t, a.Note, "can continue it")
	reported := c.reported(a.SessionID)
	require.Len(t, reported, 1)
	assert.Contains(t, reported[0], "This conversation was begun elsewhere.")
	next := c.next(a.launched, "on")
	c.completes(next)
	assert.Contains(t, c.reported(next.SessionID), "message assistant after 4: on")
	err = c.try("agent.adopt", object{"agent": "keeping", "native_session_id": "none"}, nil)
	require.ErrorContains(t, err, "Resource not found")
	err = c.try("agent.adopt", object{"agent": "keeping", "native_session_id": "two", "working_dir": "/nowhere"}, nil)
	require.ErrorContains(t, err, "a directory that exists")
	c.leave()

	s.keeping("")
	c = s.start()
	err = c.try("agent.adopt", object{"agent": "keeping", "native_session_id": "two"}, nil)
	require.ErrorContains(t, err, "neither session/load nor session/resume")
	assert.ErrorContains(t, err, "not_offered")
	err = c.try("agent.adopt", object{"agent": "scripted", "native_session_id": "two", "working_dir": "~"}, nil)
	require.Error(t, err)
	var list struct{ Sessions []json.RawMessage }
	c.call("listSessions", object{}, &list)
	assert.Len(t, list.Sessions, 2, "of what was refused nothing is kept")
	c.leave()
}

// A missing directory is reported before the agent is asked to load.
func TestAnAdoptedSessionNeedsItsDirectory(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	gone := s.elsewhere("one", "Gone", "2026-01-02T03:04:05Z")
	gone.Dir = filepath.Join(s.home, "gone")
	dir := s.keeping("list load", gone)
	c := s.open()
	err := c.try("agent.adopt", object{"agent": "keeping", "native_session_id": "one"}, nil)
	require.ErrorContains(t, err, "working_dir")
	assert.Zero(t, s.requests(dir, "session/load one"))
	var a nativeAdopted
	c.call("agent.adopt", object{"agent": "keeping", "native_session_id": "one", "working_dir": s.root}, &a)
	assert.True(t, a.Adopted)
	c.leave()
}

// A session of an agent's is deleted, but not while it is worked in.
func TestAnAgentsSessionIsDeleted(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	dir := s.keeping("list load resume delete", s.elsewhere("one", "Mending", "2026-01-02T03:04:05Z"))
	c := s.open()
	var a nativeAdopted
	c.call("agent.adopt", object{"agent": "keeping", "native_session_id": "one"}, &a)
	busy := c.next(a.launched, "hold")
	c.awaitState(busy.SessionID, "running")
	err := c.try("agent.deleteSession", object{"agent": "keeping", "native_session_id": "one"}, nil)
	require.ErrorContains(t, err, "duet-rpc session interrupt "+busy.TaskID)
	assert.Zero(t, s.requests(dir, "session/delete one"))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
	c.completes(busy)
	c.call("agent.deleteSession", object{"agent": "keeping", "native_session_id": "one"}, nil)
	assert.Empty(t, keptIn(dir))
	err = c.try("agent.deleteSession", object{"agent": "keeping", "native_session_id": "one"}, nil)
	require.ErrorContains(t, err, "Resource not found")
	c.leave()

	// The conversation goes on with a session of its own, which receives the conversation so far.
	c = s.open()
	next := c.next(busy, "on")
	c.completes(next)
	reported := c.reported(next.SessionID)
	assert.Contains(t, reported[len(reported)-1], "after 0: ")
	assert.Contains(t, reported[len(reported)-1], "You are welcome.")
	c.leave()
}

// A fork from where a conversation ends is made by the agent, where it can; any other
// receives the transcript.
func TestAnAgentForksItsOwnSession(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	dir := s.keeping("load resume fork close")
	c := s.open()
	first := c.launch("first", "keeping")
	c.completes(first)
	second := c.next(first, "second")
	c.completes(second)
	require.Len(t, keptIn(dir), 1)
	native := keptIn(dir)[0].ID

	var fork launched
	c.call("continueSession", object{"session_id": second.SessionID, "query": "third", "fork": true}, &fork)
	c.completes(fork)
	assert.NotEqual(t, second.ThreadID, fork.ThreadID)
	assert.Equal(t, []string{"message user third", "message assistant after 2: third"}, c.reported(fork.SessionID)[4:], "it knows what was said, and does not receive it again")
	c.await("the fork's own session", func(e event) bool {
		return e.Data.SessionID == fork.SessionID && strings.Contains(string(e.Raw), `"event_type":"native_session"`) && strings.Contains(string(e.Raw), `"forked":true`)
	})
	assert.Equal(t, 1, s.requests(dir, "session/fork "+native))
	assert.Len(t, keptIn(dir), 2)

	// From an earlier point a fork would know too much.
	early := c.next(first, "other")
	c.completes(early)
	said := strings.Join(c.reported(early.SessionID), "\n")
	assert.Contains(t, said, "after 0: ", "it receives the transcript")
	assert.Contains(t, said, "first")
	assert.NotContains(t, said, "second")
	assert.Equal(t, 1, s.requests(dir, "session/fork "+native))
	c.leave()
}

// An agent that waits for a prompt and is not kept closes its session first, and goes
// on with it when there is another prompt.
func TestAnAgentClosesItsSessionBeforeItIsEnded(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	dir := s.keeping("resume close")
	s.env = append(s.env, "DUET_IDLE_AGENTS=0")
	c := s.open()
	first := c.launch("first", "keeping")
	c.completes(first)
	native := keptIn(dir)[0].ID
	require.Eventually(t, func() bool { return s.requests(dir, "session/close "+native) == 1 }, watchdog/3, pollEvery, "it was not closed")
	second := c.next(first, "second")
	c.completes(second)
	assert.Contains(t, c.reported(second.SessionID), "message assistant after 1: second")
	c.leave()
}

// In the shell a session is named by the beginning of its id, or as the last one.
func TestTheShellTakesSessionsOver(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	other := s.elsewhere("abd-2", "Other \x1b[31m", "2026-01-03T03:04:05Z")
	other.Dir = filepath.Join(s.home, "gone")
	dir := s.keeping("list load resume delete", s.elsewhere("abc-1", "Mending", "2026-01-02T03:04:05Z"), other, s.elsewhere("older", "", "2026-01-01T03:04:05Z"))
	s.daemon()
	run := func(args ...string) string {
		t.Helper()
		out := s.run(args...)
		return out
	}
	refused := func(want string, args ...string) {
		t.Helper()
		s.refuses(want, args...)
	}
	here := run("session", "list", "--native", "--agent", "keeping")
	assert.Regexp(t, `(?m)^ID +ADOPTED +AGE +TITLE +DIRECTORY\nabc-1 +- +\d+d +Mending +`+s.root+`\nolder +- .*\n\z`, here)
	all := run("session", "list", "--native", "--agent", "keeping", "--everywhere")
	assert.Contains(t, all, "abd-2")
	assert.NotContains(t, all, "\x1b", "what an agent wrote is written out")
	refused("add --native", "session", "list", "--everywhere")
	refused("leave one of them out", "session", "list", "--native", "--status", "failed")

	refused("2 sessions of keeping begin with", "session", "adopt", "ab", "--agent", "keeping")
	refused("no session whose id begins with", "session", "adopt", "x", "--agent", "keeping")
	refused("--dir", "session", "adopt", "abd", "--agent", "keeping")
	run("session", "adopt", "abd", "--agent", "keeping", "--dir", s.root)
	adopted := strings.TrimSpace(run("session", "adopt", "last", "--agent", "keeping"))
	assert.Regexp(t, "(?m)^abc-1 +task-0002 ", run("session", "list", "--native", "--agent", "keeping"))
	assert.Contains(t, run("session", "show", adopted), "You are welcome.")
	assert.Equal(t, adopted, strings.TrimSpace(run("session", "adopt", "abc", "--agent", "keeping")), "it is there already")
	var raw nativeListed
	require.NoError(t, json.Unmarshal([]byte(run("session", "list", "--native", "--agent", "keeping", "--json")), &raw))
	assert.Len(t, raw.Sessions, 2)

	refused("add --native", "session", "delete", "older", "--agent", "keeping")
	refused("duet-rpc session delete --native older --agent keeping", "session", "delete", "--native", "older", "--agent", "keeping")
	assert.Len(t, keptIn(dir), 3)
	run("session", "delete", "--native", "older", "--agent", "keeping", "--yes")
	assert.Len(t, keptIn(dir), 2)
	run("daemon", "stop")
}
