package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An editor that dies, and its process with it, ends nothing: the turn goes on, its
// question waits, and another editor answers it. What was said through it is said in
// the conversation.
func TestACPEditorDies(t *testing.T) {
	t.Parallel()
	s, c, session := newACPSession(t)
	c.ask("session/prompt", promptOf(session, "Edit it"))
	c.awaitAsked(1)
	c.crash()

	other, third := s.editor(nil), s.editor(nil)
	other.load(session, s.root)
	require.Equal(t, "Edit it", other.said("user_message_chunk"))
	third.call("session/resume", object{"sessionId": session, "cwd": s.root}, nil)
	question := other.awaitAsked(1)
	require.Equal(t, "session/request_permission", question.Method)
	require.Contains(t, string(question.Params), `"type":"diff"`)
	taken := third.awaitAsked(1)
	other.choose(question, "allow_once")
	third.until("the question to be taken back", func() bool { return len(third.reported) > 0 })
	require.Equal(t, "$/cancel_request", third.reported[0].Method)
	require.JSONEq(t, fmt.Sprintf(`{"requestId":%s}`, taken.ID), string(third.reported[0].Params))
	other.until("the rest", func() bool { return strings.Contains(other.saidLocked("agent_message_chunk"), "That is all.") })
	written, err := os.ReadFile(filepath.Join(s.root, "demo.txt"))
	require.NoError(t, err)
	require.Equal(t, "Turn 1: Edit it\n", string(written))

	// A turn of another client is shown, with its prompt.
	require.Equal(t, "end_turn", third.prompt(session, "quiet from the third"))
	other.until("the other's turn", func() bool {
		return strings.HasSuffix(other.saidLocked("user_message_chunk"), "quiet from the third") &&
			strings.Contains(other.saidLocked("agent_message_chunk"), "You asked: quiet from the third")
	})
	require.Empty(t, third.said("user_message_chunk"), "a client does not receive its own prompt")
	out, err := s.command("session", "show", session)
	require.NoError(t, err)
	require.Contains(t, out, "quiet from the third")
	var conversation json.RawMessage // as HumanLayer's clients have it
	s.lines().call("getConversation", object{"session_id": session}, &conversation)
	require.Contains(t, string(conversation), "Edit it")

	var list struct {
		Sessions []struct{ SessionID, CWD, Title string }
	}
	third.call("session/list", object{"cwd": s.root}, &list)
	require.Len(t, list.Sessions, 1)
	require.Equal(t, session, list.Sessions[0].SessionID)
	require.Equal(t, "Edit it", list.Sessions[0].Title, "by its first words, not by the last ones")
	_, err = s.command("session", "rename", session, "A better name")
	require.NoError(t, err)
	third.call("session/list", object{"cwd": s.root}, &list)
	require.Equal(t, "A better name", list.Sessions[0].Title)
	other.quit()
	third.quit()
}

// What is asked in the editor can be answered elsewhere, and the other way round.
func TestACPQuestionIsInTheInboxToo(t *testing.T) {
	t.Parallel()
	s, c, session := newACPSession(t)
	turn := c.ask("session/prompt", promptOf(session, "Edit it"))
	question := c.awaitAsked(1)
	out, err := s.command("approvals", "--json")
	require.NoError(t, err)
	id := regexp.MustCompile(`"approval_id": *"([^"]*)"`).FindStringSubmatch(out)
	require.NotNil(t, id, out)
	_, err = s.command("approvals", "approve", id[1])
	require.NoError(t, err)
	require.Nil(t, c.result(turn).Error)
	c.until("the question to be taken back", func() bool { return len(c.reported) > 0 })
	c.choose(question, "reject_once") // too late, and not asked any more
	require.Equal(t, "end_turn", c.prompt(session, "quiet"))

	// An answer that was not offered is none: the question stays.
	turn = c.ask("session/prompt", promptOf(session, "Edit again"))
	question = c.awaitAsked(2)
	c.choose(question, "yolo")
	c.tell("session/cancel", object{"sessionId": session})
	var stopped struct{ StopReason string }
	require.NoError(t, json.Unmarshal(c.result(turn).Result, &stopped))
	require.Equal(t, "cancelled", stopped.StopReason)

	// Forms and addresses.
	turn = c.ask("session/prompt", promptOf(session, "link"))
	question = c.awaitAsked(3)
	require.Equal(t, "elicitation/create", question.Method)
	c.send(object{"id": question.ID, "result": object{"action": "accept"}})
	require.Nil(t, c.result(turn).Error)
	c.quit()
}

// However fast an agent writes, the client receives all of it, in order.
func TestACPTellsEveryChunk(t *testing.T) {
	t.Parallel()
	_, c, session := newACPSession(t)
	most := watchMemory(c.cmd.Process.Pid)
	const chunks = 10_000
	require.Equal(t, "end_turn", c.prompt(session, fmt.Sprintf("quiet stream:%d", chunks)))
	text := c.said("agent_message_chunk")
	next := 1
	for _, found := range regexp.MustCompile(`chunk (\d+)`).FindAllStringSubmatch(text, -1) {
		require.Equal(t, strconv.Itoa(next), found[1])
		next++
	}
	require.Equal(t, chunks+1, next)
	c.quit()
	if peak := most(); !raceEnabled {
		assert.Less(t, peak, int64(96<<20), "bytes of memory")
	}
}

// A steered message reaches the working agent. Other editors see it; the sender gets no echo.
// An idle session answers promptRequired.
func TestACPSteering(t *testing.T) {
	t.Parallel()
	s, c, session := newACPSession(t)
	steer := func(text string) string {
		var r struct{ Outcome string }
		c.call("_session/steering", promptOf(session, text), &r)
		return r.Outcome
	}
	require.Equal(t, "promptRequired", steer("too early"))
	turn := c.ask("session/prompt", promptOf(session, "quiet permit:1"))
	question := c.awaitAsked(1)
	other := s.editor(nil)
	other.load(session, s.root)
	require.Equal(t, "injected", steer("Use the other file"))
	c.choose(question, "allow_once")
	c.result(turn)
	require.Contains(t, c.said("agent_message_chunk"), "You said meanwhile: Use the other file")
	require.Empty(t, c.said("user_message_chunk"))
	other.until("the message", func() bool { return strings.Contains(other.saidLocked("user_message_chunk"), "Use the other file") })
	require.Equal(t, "promptRequired", steer("too late"))
	other.quit()
	c.quit()
}

// The editor receives the updates and the questions of an agent-initiated turn.
func TestACPAgentGoesOnByItself(t *testing.T) {
	t.Parallel()
	s, c, session := newACPSession(t)
	require.Equal(t, "end_turn", c.prompt(session, "quiet background"))
	question := c.awaitAsked(1)
	require.Contains(t, c.said("agent_message_chunk"), "The background task has finished.")
	require.NoFileExists(t, filepath.Join(s.root, "demo.txt"))
	c.choose(question, "allow_once")
	c.until("the rest", func() bool { return strings.Contains(c.saidLocked("agent_message_chunk"), "I wrote demo.txt.") })
	require.FileExists(t, filepath.Join(s.root, "demo.txt"))
	require.Equal(t, "end_turn", c.prompt(session, "quiet and on"))
	c.quit()
}

// The rest of a message that an agent sends after its turn reaches the editor as more of that
// message, and starts no agent-initiated turn. A replay has the whole message with its _meta.
func TestACPLateText(t *testing.T) {
	t.Parallel()
	s := withoutDaemons(t, newSite(t))
	piece := func(id, text string, meta object) object {
		return object{"sessionUpdate": "agent_message_chunk", "messageId": id, "content": object{"type": "text", "text": text}, "_meta": meta}
	}
	s.played(
		playedStep{Update: piece("m1", "It begins", object{"vendor": object{"n": 1}, "first": true})},
		playedStep{Late: piece("m1", ", goes on", object{"vendor": object{"n": 2}})}, playedStep{Late: piece("m1", ", and ends.", nil)},
	)
	c := s.editor(nil, "--agent", "played")
	session := c.begin(s.root)
	require.Equal(t, "end_turn", c.prompt(session, "go"))
	const want = "It begins, goes on, and ends."
	c.until("the late text", func() bool { return c.saidLocked("agent_message_chunk") == want })
	require.Empty(t, c.said("agent_thought_chunk"), "Duet says there that an agent has continued by itself")

	other := s.editor(nil)
	other.load(session, s.root)
	other.mu.Lock()
	defer other.mu.Unlock()
	var replayed []string
	for _, u := range other.updates {
		if u.Kind == "agent_message_chunk" {
			var all struct {
				Meta json.RawMessage `json:"_meta"`
			}
			require.NoError(t, json.Unmarshal(u.raw, &all))
			replayed = append(replayed, u.text()+" "+string(all.Meta))
		}
	}
	require.Equal(t, []string{want + ` {"first":true,"vendor":{"n":2}}`}, replayed)
}

// A turn that is cancelled has ended as cancelled, also one that has hardly begun; an
// editor that goes cancels nothing, unless it is started so.
func TestACPCancels(t *testing.T) {
	t.Parallel()
	s, c, session := newACPSession(t)
	for range 3 {
		id := c.ask("session/prompt", promptOf(session, "quiet stream:100000@50"))
		c.tell("session/cancel", object{"sessionId": session})
		require.Nil(t, c.result(id).Error, "%v", c.result(id).Error)
		require.JSONEq(t, `"cancelled"`, string(member(t, c.result(id).Result, "stopReason")))
	}
	for range 5 { // while it is being begun
		id := c.ask("session/prompt", promptOf(session, "quiet stream:100000@50"))
		c.tell("$/cancel_request", object{"requestId": id})
		if r := c.result(id); r.Error != nil {
			require.Equal(t, -32800, r.Error.Code, "%v", r.Error)
		} else {
			require.JSONEq(t, `"cancelled"`, string(member(t, r.Result, "stopReason")))
		}
	}
	id := c.ask("session/prompt", promptOf(session, "quiet stream:100000@50"))
	c.until("some of it", func() bool { return strings.Contains(c.saidLocked("agent_message_chunk"), "chunk 2") })
	c.tell("$/cancel_request", object{"requestId": id})
	require.JSONEq(t, `"cancelled"`, string(member(t, c.result(id).Result, "stopReason")))
	require.Equal(t, "end_turn", c.prompt(session, "quiet"), "nothing is in the way of the next one")

	stays := c.begin(s.root)
	c.ask("session/prompt", promptOf(stays, "quiet stream:100000@50"))
	c.until("more", func() bool { return strings.Contains(c.saidLocked("agent_message_chunk"), "chunk 3 ") })
	c.quit()
	ends := s.editor(nil, "--cancel-on-disconnect")
	ended := ends.begin(s.root)
	ends.ask("session/prompt", promptOf(ended, "quiet stream:100000@50"))
	ends.until("some", func() bool { return strings.Contains(ends.saidLocked("agent_message_chunk"), "chunk 2") })
	ends.quit()
	hub := s.lines()
	requireState := func(id, want string) {
		t.Helper()
		require.Eventually(t, func() bool {
			var r struct{ Session struct{ State string } }
			hub.call("getSessionState", object{"session_id": id}, &r)
			return r.Session.State == want
		}, watchdog/3, pollEvery)
	}
	requireState(ended, "interrupted")
	requireState(stays, "running")
	again := s.editor(nil)
	again.load(stays, s.root)
	require.Contains(t, again.said("agent_message_chunk"), "chunk 3 ")
	again.tell("session/cancel", object{"sessionId": stays})
	requireState(stays, "interrupted")
	again.quit()
}

// Whatever a client says of its servers, it gets a session; no update comes before it
// has its id. A session that was never used leaves nothing behind.
func TestACPSessionsBegin(t *testing.T) {
	t.Parallel()
	s := withoutDaemons(t, newSite(t))
	c := s.editor(allowing)
	var made struct {
		SessionID string `json:"sessionId"`
	}
	for _, servers := range []string{
		`[]`, `null`, `[{"name":"a","command":"/bin/true","args":[],"env":[{"name":"A","value":"b"}]}]`, `[{"type":"http","name":"h","url":"http://127.0.0.1:1/","headers":[]}]`,
		`[{"type":"acp","name":"x","id":"1"},7,"what"]`, `{"no":"list"}`,
	} {
		c.call("session/new", object{"cwd": s.root, "mcpServers": json.RawMessage(servers)}, &made)
	}
	c.mu.Lock()
	for i, line := range c.came {
		if strings.Contains(line, "session/update") {
			var m struct{ Params struct{ SessionID string } }
			require.NoError(t, json.Unmarshal([]byte(line), &m))
			require.Contains(t, strings.Join(c.came[:i], "\n"), `"result":{"sessionId":"`+m.Params.SessionID, "an update before the answer")
		}
	}
	c.mu.Unlock()
	require.Equal(t, "end_turn", c.prompt(made.SessionID, "quiet"))
	var list struct{ Sessions []struct{ SessionID string } }
	c.call("session/list", object{}, &list)
	require.Len(t, list.Sessions, 1)

	var forked struct {
		SessionID string `json:"sessionId"`
	}
	c.call("session/fork", object{"sessionId": made.SessionID, "cwd": s.root}, &forked)
	require.Equal(t, "end_turn", c.prompt(forked.SessionID, "quiet fork"))
	c.call("session/list", object{}, &list)
	require.Len(t, list.Sessions, 2)
	c.call("session/close", object{"sessionId": forked.SessionID}, nil)
	require.NotNil(t, c.result(c.ask("session/prompt", promptOf(forked.SessionID, "quiet"))).Error)
	c.call("session/delete", object{"sessionId": forked.SessionID}, nil)
	require.Equal(t, -32002, c.result(c.ask("session/load", opening(forked.SessionID, s.root))).Error.Code)
	require.Equal(t, "end_turn", c.prompt(made.SessionID, "/agent"))
	require.Contains(t, c.said("agent_message_chunk"), "The agent behind this session is scripted.")
	require.Equal(t, "end_turn", c.prompt(made.SessionID, "/inbox"))
	require.Contains(t, c.said("agent_message_chunk"), "Nothing waits for an answer.")
	c.quit()
}

// What an agent reads in a turn of the client is read from the client's editor, with what
// is not saved there; in a turn of another client, and where the client is started so, from
// the disk. Version 2 of the protocol has no such reads: the demo agent speaks version 1.
func TestACPUnsavedFiles(t *testing.T) {
	t.Parallel()
	s := withoutDaemons(t, newSite(t))
	s.speaks1()
	path := filepath.Join(s.root, "demo.txt")
	require.NoError(t, os.WriteFile(path, []byte("saved\n"), 0o600))
	var read []string
	c := s.acp(func(m acpMessage) any {
		if m.Method == "fs/read_text_file" {
			read = append(read, string(m.Params))
			return object{"content": "not saved\n"}
		}
		return allowing(m)
	})
	c.initializeWith(object{"readTextFile": true})
	session := c.begin(s.root)
	turn := func(c *acpClient, text string) (diff string) {
		c.mu.Lock()
		c.asked = nil
		c.mu.Unlock()
		require.Equal(t, "end_turn", c.prompt(session, text))
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, m := range c.asked {
			if m.Method == "session/request_permission" {
				diff = string(m.Params)
			}
		}
		return diff
	}
	require.Contains(t, turn(c, "Edit it"), `"oldText":"not saved\n"`)
	c.mu.Lock()
	require.Len(t, read, 1)
	require.Contains(t, read[0], `"path":"`+path+`"`)
	require.Contains(t, read[0], `"sessionId":"`+session+`"`)
	c.mu.Unlock()
	require.NoError(t, os.WriteFile(path, []byte("saved\n"), 0o600))

	other := s.acp(allowing, "--saved-files")
	other.initializeWith(object{"readTextFile": true})
	other.call("session/resume", object{"sessionId": session, "cwd": s.root}, nil)
	c.quit() // or it may answer before the other one is asked
	require.Contains(t, turn(other, "Edit it"), `"oldText":"saved\n"`)
	other.quit()

	// The configuration says it, too.
	path = filepath.Join(s.root, ".duet.toml")
	require.NoError(t, os.WriteFile(path, []byte("[acp]\nsaved_files = true\n"), 0o600))
	third := s.acp(func(m acpMessage) any {
		if m.Method == "fs/read_text_file" {
			return object{"content": "not saved\n"}
		}
		return allowing(m)
	})
	third.initializeWith(object{"readTextFile": true})
	third.call("session/resume", object{"sessionId": session, "cwd": s.root}, nil)
	require.NotContains(t, turn(third, "Edit it"), `"oldText":"not saved\n"`)
	third.quit()
}

// A client that asks for version 2 gets it, whichever shape of the parameters it sends
// beside; one that asks for version 1 does not.
func TestACPVersions(t *testing.T) {
	t.Parallel()
	s := withoutDaemons(t, newSite(t))
	both := object{
		"clientInfo": object{"name": "old", "version": "1"}, "clientCapabilities": object{"auth": object{"terminal": true}},
		"info": object{"name": "new", "version": "2"}, "capabilities": object{"fs": object{"readTextFile": true}},
	}
	require.NoError(t, os.WriteFile(filepath.Join(s.root, "demo.txt"), []byte("saved\n"), 0o600))
	for asked, methods := range map[int]string{1: `[{"id":"terminal"`, 2: `[{"methodId":"agent"`} {
		c := s.acp(allowing)
		both["protocolVersion"] = asked
		var r struct {
			ProtocolVersion int
			AuthMethods     json.RawMessage
		}
		c.call("initialize", both, &r)
		require.Equal(t, asked, r.ProtocolVersion)
		require.True(t, strings.HasPrefix(string(r.AuthMethods), methods), "%s", r.AuthMethods)
		session := c.begin(s.root)
		id := c.ask("session/prompt", promptOf(session, "Edit it"))
		if asked == 1 {
			require.Contains(t, string(c.result(id).Result), `"stopReason":"end_turn"`)
		} else {
			const usage = `"usage":{"totalTokens":22,"inputTokens":2,"outputTokens":20}`
			c.until("the end", func() bool {
				n := len(c.updates)
				return n > 0 && string(c.updates[n-1].raw) == `{"sessionUpdate":"state_update","state":"idle","stopReason":"end_turn",`+usage+`,"background":[]}`
			})
			require.Contains(t, string(c.result(id).Result), `"messageId":`)
			require.Equal(t, "session/request_permission", c.awaitAsked(1).Method)
			c.mu.Lock()
			require.Len(t, c.asked, 1, "version 2 has no files of the client")
			c.mu.Unlock()
		}
		c.quit()
	}
}

// member is a member of a JSON object.
func member(t *testing.T, raw json.RawMessage, name string) json.RawMessage {
	t.Helper()
	var m map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(raw, &m), "%s", raw)
	return m[name]
}
