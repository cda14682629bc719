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
		keptText("user_message_chunk", "Mend "), keptText("user_message_chunk", "it"),
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

type nativeListed struct {
	Agent    string `json:"agent"`
	Sessions []struct {
		ID        string `json:"native_session_id"`
		Title     string `json:"title"`
		Updated   string `json:"updated_at"`
		Dir       string `json:"working_dir"`
		SessionID string `json:"session_id"`
		TaskID    string `json:"task_id"`
	} `json:"sessions"`
	Next string `json:"next_cursor"`
}

type nativeAdopted struct {
	launched
	Status  string `json:"status"`
	Adopted bool   `json:"adopted"`
	History bool   `json:"history"`
	Note    string `json:"note"`
}

// told are the kinds and the texts of what a session's conversation holds.
func (c *client) told(session string) (list []string) {
	c.t.Helper()
	var r struct {
		Events []struct {
			Type    string `json:"event_type"`
			Role    string `json:"role"`
			Content string `json:"content"`
			Tool    string `json:"tool_name"`
			Result  string `json:"tool_result_content"`
			Done    bool   `json:"is_completed"`
		} `json:"events"`
	}
	c.call("getConversation", object{"session_id": session}, &r)
	for _, e := range r.Events {
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
			c := s.start()
			c.subscribe()

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
				"message user Mend it", "thinking assistant Hm.", "plan assistant - [x] look", "message assistant I edit.", "tool_call assistant  Edit", "tool_result user",
				"message assistant Done.", "message user Thanks", "message assistant You are welcome.",
			}
			told := c.told(a.SessionID)
			assert.Equal(t, want, told)
			diffs := false
			for _, e := range c.seen() {
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
			assert.Equal(t, want, c.told(a.SessionID))
			c.call("agent.sessions", object{"agent": "keeping", "working_dir": s.root}, &here)
			assert.Equal(t, a.SessionID, here.Sessions[1].SessionID)
			assert.Equal(t, a.TaskID, here.Sessions[1].TaskID)

			next := c.next(a.launched, "and now?")
			c.completes(next)
			assert.Contains(t, c.told(next.SessionID), "message assistant after 3: and now?", "the agent knows what was said, and tells none of it again")
			assert.Len(t, keptIn(dir), 3, "it is the same session")
			c.leave()
		})
	}
}
