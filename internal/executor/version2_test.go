//go:build unix

package executor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/executor"
)

// A version2Agent is an agent that speaks version 2 of the protocol. The words of a prompt are
// commands for it.
type version2Agent struct {
	acpAgent
	messages int
	system   string // the system prompt
}

// fakeAgent2 runs an agent that speaks version 2 only, as acpAgent does version 1.
func fakeAgent2(a *acpAgent) {
	v := &version2Agent{acpAgent: *a}
	for {
		m := v.read()
		switch m.Method {
		case "initialize":
			v.reply(m.ID, object{
				"protocolVersion": 2, "info": object{"name": "second", "version": "2"},
				"capabilities": object{"session": object{"prompt": object{"image": object{}}, "mcp": object{"stdio": object{}, "http": object{}}, "fork": object{}, "systemPrompt": object{}}},
				"authMethods":  []any{object{"methodId": "key", "type": "agent", "name": "Key"}},
				"_meta":        object{"steering": object{"supported": true}},
			})
		case "session/new":
			v.cwd, v.system = m.Params.CWD, string(m.Params.SystemPrompt)
			v.reply(m.ID, object{"sessionId": v.session, "availableCommands": []any{object{"name": "goal", "description": "d", "input": object{"type": "text", "hint": "h"}}}, "configOptions": []any{
				object{"configId": "mode", "name": "Mode", "category": "mode", "type": "select", "currentValue": "auto", "options": []any{object{"value": "default", "name": "Ask"}, object{"value": "auto", "name": "Auto"}}},
			}})
		case "session/resume":
			v.cwd, v.session, v.system = m.Params.CWD, m.Params.SessionID, string(m.Params.SystemPrompt)
			v.state("idle", object{"stopReason": "end_turn"})
			v.reply(m.ID, object{})
		case "session/set_config_option":
			v.reply(m.ID, object{"configOptions": []any{
				object{"configId": "mode", "name": "Mode", "category": "mode", "type": "select", "currentValue": m.Params.Value, "options": []any{object{"value": "default", "name": "Ask"}, object{"value": "auto", "name": "Auto"}}},
			}})
		case "session/prompt":
			v.prompt(m)
		default:
			v.refuse(m)
		}
	}
}

// refuse rejects an unknown request.
func (a *version2Agent) refuse(m wire) {
	if m.ID != nil && m.Method != "" {
		a.send(object{"jsonrpc": "2.0", "id": m.ID, "error": object{"code": -32601, "message": "no such method"}})
	}
}

func (a *version2Agent) state(name string, more object) {
	u := object{"sessionUpdate": "state_update", "state": name}
	maps.Copy(u, more)
	a.update(u)
}

func (a *version2Agent) say(text string) {
	a.update(object{"sessionUpdate": "agent_message_chunk", "messageId": fmt.Sprint("m", a.messages), "content": object{"type": "text", "text": text}})
}

func (a *version2Agent) tool(id string, more object) {
	u := object{"sessionUpdate": "tool_call_update", "toolCallId": id}
	maps.Copy(u, more)
	a.update(u)
}

func (a *version2Agent) terminal(id string, more object) {
	u := object{"sessionUpdate": "terminal_update", "terminalId": id}
	maps.Copy(u, more)
	a.update(u)
}

// permit asks for permission and sends the answer as text.
func (a *version2Agent) permit(subject any) { a.say(a.ask(nil, subject)) }

// ask asks for permission, with more members of the request, and returns the answer.
func (a *version2Agent) ask(more object, subject any) string {
	a.state("requires_action", nil)
	p := object{"sessionId": a.session, "title": "Run it?", "description": "because it has to be", "options": []any{
		object{"optionId": "y", "name": "Yes", "kind": "allow_once"}, object{"optionId": "n", "name": "No", "kind": "reject_once"},
	}}
	if subject != nil {
		p["subject"] = subject
	}
	maps.Copy(p, more)
	m := a.call("session/request_permission", p)
	a.state("running", nil)
	return string(m.Result)
}

func (a *version2Agent) prompt(m wire) {
	a.messages++
	word, _, _ := strings.Cut(m.Params.Prompt[len(m.Params.Prompt)-1].Text, " ")
	id := fmt.Sprint("u", a.messages)
	accept := func() { a.reply(m.ID, object{"messageId": id}) }
	echo := func() {
		a.update(object{"sessionUpdate": "user_message", "messageId": id, "content": []any{object{"type": "text", "text": word}}})
	}
	end := func() {
		a.state("idle", object{"stopReason": "end_turn", "usage": object{"inputTokens": 20, "outputTokens": 7}})
	}
	switch word {
	case "refuse":
		a.fail(m.ID, "no prompt is taken")
		return
	case "local": // a command of the agent itself, which begins no work
		accept()
		end()
		return
	case "early": // like codex
		a.state("running", nil)
		echo()
		a.say("early")
		end()
		accept()
		return
	case "stale":
		a.state("idle", object{"stopReason": "end_turn"}) // of the previous turn
		echo()
		accept()
		a.state("idle", object{"background": []any{}})
	default:
		echo()
		accept()
	}
	a.state("running", nil)
	switch word {
	case "error":
		a.state("idle", object{"stopReason": "error", "error": object{"code": -32603, "message": "the model is gone"}})
		return
	case "works":
		a.say("works, ")
		for m := a.read(); m.Method != "session/cancel"; m = a.read() {
			a.refuse(m)
		}
		a.say("cancelled")
		a.state("idle", object{"stopReason": "cancelled"})
		return
	case "tool":
		a.terminal("t1", object{"command": "touch x", "cwd": "/"})
		a.tool("c1", object{"name": "exec_command", "rawInput": object{}, "status": "pending", "title": "Terminal", "kind": "execute", "content": []any{object{"type": "terminal", "terminalId": "t1"}}})
		a.tool("c1", object{"rawInput": object{"command": "touch x"}, "title": "touch x"})
		a.permit(object{"type": "tool_call", "toolCall": object{"toolCallId": "c1", "rawInput": object{"command": "touch x"}, "title": "touch x", "kind": "execute"}})
		a.update(object{"sessionUpdate": "terminal_output_chunk", "terminalId": "t1", "data": "b3V0IA=="})
		a.terminal("t1", object{"output": object{"data": "b3V0IHB1dA=="}})
		a.terminal("t1", object{"exitStatus": object{"exitCode": 3}})
		a.tool("c1", object{"status": "completed"})
	case "leaves": // a terminal that still runs when the agent ends
		a.terminal("t1", object{"command": "top"})
		a.say("It runs.")
	case "command":
		a.permit(object{"type": "command", "command": "rm -rf x", "cwd": "/"})
	case "bare":
		a.permit(nil)
	case "pieces":
		a.tool("c1", object{"kind": "read", "title": "Read"})
		for _, text := range []string{"one", "two"} {
			a.update(object{"sessionUpdate": "tool_call_content_chunk", "toolCallId": "c1", "content": object{"type": "content", "content": object{"type": "text", "text": text}}})
		}
		a.tool("c1", object{"status": "completed"})
	case "patch":
		patch := "diff --git /a/b /a/b\n--- /a/b\n+++ /a/b\n@@ -1,2 +1,2 @@\n same\n-old\n+new\ndiff --git /a/c /a/c\nnew file mode 100644\n--- /dev/null\n+++ /a/c\n@@ -0,0 +1 @@\n+c\n\\ No newline at end of file\n"
		a.tool("c1", object{"kind": "edit", "title": "Edit", "status": "completed", "content": []any{object{"type": "diff", "patch": object{"format": "git_patch", "text": patch}, "changes": []any{
			object{"operation": "modify", "path": "/a/b"}, object{"operation": "add", "path": "/a/c"}, object{"operation": "move", "oldPath": "/a/d", "path": "/a/e"},
		}}}})
	case "whole":
		a.say("Hello, ")
		whole := func(text string) {
			a.update(object{"sessionUpdate": "agent_message", "messageId": fmt.Sprint("m", a.messages), "content": []any{object{"type": "text", "text": text}}})
		}
		whole("Hello, world. ")
		whole("Hello, world. ")
		whole("Another.")
	case "system":
		a.say(fmt.Sprintf("%d block: %s", len(m.Params.Prompt), a.system))
	case "meta":
		a.say(string(m.Params.Meta))
		a.tool("c1", object{"title": "x", "_meta": object{"vendor": object{"n": 1}}})
		a.update(object{"sessionUpdate": "agent_message_chunk", "messageId": "x", "content": object{"type": "text", "text": "!"}, "_meta": object{"k": 1}})
		a.update(object{"sessionUpdate": "agent_thought_chunk", "messageId": "y", "content": object{"type": "text", "text": "?"}, "_meta": object{"k": 2}})
		a.update(object{"sessionUpdate": "usage_update", "used": 1, "size": 2, "_meta": object{"k": 3}})
		a.ask(object{"_meta": object{"k": 4, "of": "request"}}, object{"type": "tool_call", "toolCall": object{"toolCallId": "c1", "_meta": object{"k": 5}}})
		a.ask(object{"_meta": object{"k": 6}}, object{"type": "tool_call", "toolCall": object{"toolCallId": "c2", "title": "new"}})
		a.tool("c1", object{"status": "completed", "_meta": object{"large": strings.Repeat("x", 9000)}})
	case "plan":
		a.update(object{"sessionUpdate": "plan_update", "plan": object{"type": "items", "planId": "p", "entries": []any{object{"content": "one", "priority": "high", "status": "pending"}}}})
		a.update(object{"sessionUpdate": "plan_update", "plan": object{"type": "items", "planId": "q", "entries": []any{object{"content": "two", "priority": "low", "status": "pending"}}}})
		a.update(object{"sessionUpdate": "plan_update", "plan": object{"type": "items", "planId": "p", "entries": []any{object{"content": "one", "priority": "high", "status": "completed"}}}})
		a.update(object{"sessionUpdate": "plan_removed", "planId": "q"})
	case "text": // plans without entries
		a.update(object{"sessionUpdate": "plan_update", "plan": object{"type": "markdown", "planId": "p", "content": "# Goal\n\n- [x] one\n  - [ ] two\n3. three\n-\n"}})
		a.update(object{"sessionUpdate": "plan_update", "plan": object{"type": "file", "planId": "p", "uri": "file:///plan.md"}})
	case "delegate":
		child := func(update object) {
			a.send(object{"jsonrpc": "2.0", "method": "session/update", "params": object{"sessionId": "child", "update": update}})
		}
		a.update(object{"sessionUpdate": "subagent_update", "sessionId": "child", "title": "Look", "description": "general", "capabilities": object{"cancel": object{}}, "state": object{"state": "running"}})
		child(object{"sessionUpdate": "state_update", "state": "running"})
		a.update(object{"sessionUpdate": "session_message", "messageId": "x", "senderSessionId": a.session, "recipientSessionId": "child", "content": []any{object{"type": "text", "text": "look at it"}}})
		child(object{"sessionUpdate": "usage_update", "used": 1, "size": 2})
		child(object{"sessionUpdate": "tool_call_update", "toolCallId": "inner", "title": "ls", "kind": "execute", "rawInput": object{"command": "ls"}})
		a.say("It looks. ")
		a.state("idle", object{"stopReason": "max_tokens", "background": []any{object{"type": "subagent", "sessionId": "child"}}})
		a.state("idle", object{"background": []any{}})
		if strings.HasSuffix(m.Params.Prompt[len(m.Params.Prompt)-1].Text, "for long") {
			for m := a.read(); m.Method != "session/cancel" || m.Params.SessionID != "child"; m = a.read() {
			}
			child(object{"sessionUpdate": "state_update", "state": "idle", "stopReason": "cancelled"})
			return
		}
		asked := a.call("session/request_permission", object{"sessionId": "child", "title": "ls", "subject": object{"type": "tool_call", "toolCall": object{"toolCallId": "inner"}}, "options": []any{object{"optionId": "y", "name": "Yes", "kind": "allow_once"}}})
		child(object{"sessionUpdate": "tool_call_update", "toolCallId": "inner", "status": "completed"})
		child(object{"sessionUpdate": "agent_message_chunk", "messageId": "c1", "content": object{"type": "text", "text": "Found: " + string(asked.Result)}})
		child(object{"sessionUpdate": "state_update", "state": "idle", "stopReason": "end_turn"})
		a.update(object{"sessionUpdate": "subagent_update", "sessionId": "child", "state": object{"state": "idle", "stopReason": "end_turn"}})
		return
	case "notice":
		for range 2 {
			a.update(object{"sessionUpdate": "notice", "severity": "warning", "title": "Mind the gap", "description": "It is wide."})
		}
		a.update(object{"sessionUpdate": "compaction_update", "compactionId": "k", "status": "in_progress"})
		a.update(object{"sessionUpdate": "compaction_update", "compactionId": "k", "status": "completed", "summary": []any{object{"type": "text", "text": "short"}}})
	case "goal":
		a.say("I begin. ")
		end()
		a.update(object{"sessionUpdate": "notice", "severity": "error", "title": "Between"})
		a.state("running", nil)
		a.say("I go on. ")
		a.permit(object{"type": "tool_call", "toolCall": object{"toolCallId": "own", "title": "touch y", "kind": "execute", "rawInput": object{"command": "touch y"}}})
	case "onward": // its own work goes on until a prompt arrives
		end()
		a.state("running", nil)
		a.say("I go on. ")
		if strings.HasSuffix(m.Params.Prompt[len(m.Params.Prompt)-1].Text, "asking") {
			a.permit(object{"type": "tool_call", "toolCall": object{"toolCallId": "own", "title": "touch y", "kind": "execute", "rawInput": object{"command": "touch y"}}})
		}
		next := a.read()
		for ; next.Method != "session/prompt"; next = a.read() {
			if next.Method == "session/set_config_option" {
				a.reply(next.ID, object{"configOptions": []any{}})
			}
		}
		a.say("First this. ")
		end()
		a.prompt(next)
		return
	case "slow": // it goes on by itself, and ends late after a cancel
		end()
		a.state("running", nil)
		a.say("working")
		for a.read().Method != "session/cancel" {
		}
		a.out.Flush()
		_, _ = os.ReadFile(filepath.Join(a.cwd, "over")) // a pipe, which the test closes
		if strings.HasSuffix(m.Params.Prompt[len(m.Params.Prompt)-1].Text, "prompted") {
			next := a.read()
			for ; next.Method != "session/prompt"; next = a.read() {
				a.refuse(next)
			}
			a.state("idle", object{"stopReason": "cancelled", "usage": object{"inputTokens": 5, "outputTokens": 6}})
			a.prompt(next)
			return
		}
		a.state("idle", object{"stopReason": "cancelled", "usage": object{"inputTokens": 5, "outputTokens": 6}})
		return
	case "cancellable", "stubborn":
		cancel := object{"cancel": object{}}
		a.terminal("t1", object{"command": "sleep 3", "capabilities": cancel})
		a.tool("c1", object{"title": "wait", "kind": "other", "status": "in_progress"})
		a.state("idle", object{"stopReason": "end_turn", "background": []any{object{"type": "terminal", "terminalId": "t1"}, object{"type": "tool_call", "toolCallId": "c1"}}})
		if word == "cancellable" {
			a.tool("c1", object{"capabilities": cancel})
		}
		for m := a.read(); m.Method != "session/close"; m = a.read() {
			switch m.Method {
			case "terminal/cancel":
				a.reply(m.ID, object{})
				a.terminal("t1", object{"exitStatus": object{}})
				a.state("idle", object{"background": []any{object{"type": "tool_call", "toolCallId": "c1"}}})
			case "tool_call/cancel":
				a.reply(m.ID, object{})
				a.tool("c1", object{"status": "cancelled"})
				a.state("idle", object{"background": []any{}})
			case "session/prompt":
				a.prompt(m)
				return
			default:
				a.refuse(m)
			}
		}
		return
	case "background":
		a.terminal("t1", object{"command": "sleep 3"})
		a.tool("c1", object{"name": "Bash", "title": "sleep 3", "kind": "execute", "status": "completed", "content": []any{object{"type": "terminal", "terminalId": "t1"}}})
		a.state("idle", object{"stopReason": "end_turn", "background": []any{object{"type": "terminal", "terminalId": "t1"}, object{"type": "tool_call", "toolCallId": "c1"}, object{"type": "_other"}}})
		a.out.Flush()
		_, _ = os.ReadFile(filepath.Join(a.cwd, "over")) // a pipe, which the test closes
		a.terminal("t1", object{"exitStatus": object{}})
		a.state("idle", object{"background": []any{}})
		return
	default:
		a.say(word)
	}
	end()
}

// Agents of version 2 behave like agents of version 1.
func TestVersion2(t *testing.T) {
	const yes = `{"outcome":{"outcome":"selected","optionId":"y"}}`
	for word, c := range map[string]struct {
		said   string
		events []string // of the event types in the case
		failed string
	}{
		"hello":   {said: "hello"},
		"early":   {said: "early"},
		"stale":   {said: "stale"},
		"local":   {},
		"refuse":  {failed: "fake: no prompt is taken"},
		"error":   {failed: "fake: the model is gone"},
		"whole":   {said: "Hello, world. Another."},
		"bare":    {said: yes},
		"command": {said: yes},
		"tool": {said: yes, events: []string{
			`tool_call {"tool_id":"c1","tool":"Bash","title":"Terminal","kind":"execute","status":"pending","input":{},"terminal":"TERM"}`,
			`tool_update {"tool_id":"c1","tool":"Bash","title":"touch x","input":{"command":"touch x"}}`,
			`tool_result {"tool_id":"c1","tool":"Bash","status":"completed","result":"out put"}`,
		}},
		"pieces": {events: []string{
			`tool_call {"tool_id":"c1","tool":"Read","title":"Read","kind":"read"}`,
			`tool_result {"tool_id":"c1","tool":"Read","status":"completed","result":"one\ntwo"}`,
		}},
		"patch": {events: []string{
			`tool_call {"tool_id":"c1","tool":"Edit","title":"Edit","kind":"edit","status":"completed","paths":["/a/b","/a/c","/a/d","/a/e"],"diffs":[{"path":"/a/b","old_text":"same\nold\n","new_text":"same\nnew\n","line":1},{"path":"/a/c","new_text":"c"}]}`,
			`tool_result {"tool_id":"c1","tool":"Edit","status":"completed"}`,
		}},
		"meta": {said: `{"n":1}!`, events: []string{
			`content_block_delta {"message_id":"m1","delta":{"text":"{\"n\":1}"}}`,
			`tool_call {"tool_id":"c1","tool":"other","title":"x","_meta":{"vendor":{"n":1}}}`,
			`content_block_delta {"message_id":"x","delta":{"text":"!"},"_meta":{"k":1}}`,
			`thinking_chunk {"message_id":"y","delta":{"text":"?"},"_meta":{"k":2}}`,
			`usage {"input_tokens":0,"output_tokens":0,"context_used":1,"context_size":2,"_meta":{"k":3}}`,
			`tool_update {"tool_id":"c1","_meta":{"k":5,"of":"request"}}`,
			`tool_update {"tool_id":"c2","tool":"other","title":"new","_meta":{"k":6}}`,
			`tool_result {"tool_id":"c1","tool":"other","status":"completed"}`,
			`usage {"input_tokens":20,"output_tokens":7}`,
		}},
		"plan": {events: []string{`plan {"entries":[{"content":"one","priority":"high","status":"pending"}]}`, `plan {"entries":[{"content":"one","priority":"high","status":"pending"},{"content":"two","priority":"low","status":"pending"}]}`, `plan {"entries":[{"content":"one","priority":"high","status":"completed"},{"content":"two","priority":"low","status":"pending"}]}`, `plan {"entries":[{"content":"one","priority":"high","status":"completed"}]}`}},
		"text": {events: []string{
			`plan {"entries":[{"content":"# Goal"},{"content":"one","status":"completed"},{"content":"two","status":"pending"},{"content":"three"},{"content":"-"}]}`,
			`plan {"entries":[{"content":"file:///plan.md"}]}`,
		}},
		"notice": {events: []string{
			`notice {"severity":"warning","title":"Mind the gap","description":"It is wide."}`,
			`compaction {"status":"in_progress"}`, `compaction {"status":"completed","summary":"short"}`,
		}},
	} {
		t.Run(word, func(t *testing.T) {
			t.Parallel()
			h, x := hubAndExecutor(t)
			p := prompt(t, "version2", word)
			p.Meta = json.RawMessage(`{"n":1}`)
			r := execute(t, x, p)
			assert.Equal(t, c.said, h.said("task-1"))
			if c.failed != "" {
				require.Equal(t, catalog.StatusFailed, r.Status)
				assert.Equal(t, c.failed, r.Error.Message)
				return
			}
			require.Equal(t, catalog.StatusCompleted, r.Status)
			assert.Equal(t, c.events, h.eventsLike(c.events))
		})
	}
}

var terminalID = regexp.MustCompile(`term_[0-9a-z]+`)

// eventsLike returns the reports whose types are in list, with terminals' ids replaced.
func (h *hub) eventsLike(list []string) (all []string) {
	h.Lock()
	defer h.Unlock()
	for _, r := range h.reports {
		for _, like := range list {
			if kind, _, _ := strings.Cut(like, " "); kind == r.EventType {
				all = append(all, r.EventType+" "+terminalID.ReplaceAllString(string(r.EventData), "TERM"))
				break
			}
		}
	}
	return all
}

// A question of version 2 describes the action of the agent.
func TestQuestionsOfVersion2(t *testing.T) {
	for word, want := range map[string]catalog.RequestPermissionParams{
		"tool":    {ToolName: "Bash", NameByKind: true, Title: "touch x", ToolKind: "execute", ToolInput: json.RawMessage(`{"command":"touch x"}`), Details: "because it has to be"},
		"command": {ToolName: "Bash", NameByKind: true, Title: "rm -rf x", ToolKind: "execute", ToolInput: json.RawMessage(`{"command":"rm -rf x","cwd":"/"}`), Details: "because it has to be"},
		"bare":    {ToolName: "other", NameByKind: true, Title: "Run it?", Details: "because it has to be"},
	} {
		t.Run(word, func(t *testing.T) {
			t.Parallel()
			h, x := hubAndExecutor(t)
			execute(t, x, prompt(t, "version2", word))
			require.Len(t, h.asked, 1)
			q := h.asked[0]
			assert.NotEmpty(t, q.ToolUseID)
			got := catalog.RequestPermissionParams{ToolName: q.ToolName, NameByKind: q.NameByKind, Title: q.Title, ToolKind: q.ToolKind, ToolInput: q.ToolInput, Details: q.Details}
			assert.Equal(t, want, got)
		})
	}
}

// The executor reports an agent's own terminal to the hub, with its output and its exit.
func TestTerminalsOfVersion2(t *testing.T) {
	h, x := hubAndExecutor(t)
	execute(t, x, prompt(t, "version2", "tool"))
	require.Len(t, h.started, 1)
	assert.Equal(t, "tool_call", h.before, "the terminal's tool call precedes it")
	id := h.started[0].TerminalID
	assert.Equal(t, catalog.TerminalStartedParams{TerminalID: h.started[0].TerminalID, TaskID: "task-1", Program: "touch", Args: []string{"x"}, CWD: "/"}, h.started[0])
	assert.Equal(t, "utf-8:out utf-8:put", h.Printed(id))
	assert.Equal(t, 3, h.Exit(id).ExitCode)
}

// An agent's own terminal ends with the agent.
func TestTerminalsOfVersion2EndWithTheAgent(t *testing.T) {
	h, x := hubAndExecutor(t)
	p := prompt(t, "version2", "leaves")
	execute(t, x, p)
	require.Len(t, h.started, 1)
	assert.Empty(t, h.Exits())
	assert.True(t, release(t, x, p.SessionID).Released)
	h.Await(t, func() bool { return h.Exit(h.started[0].TerminalID) != nil }, "its end")
}

// The executor sets the mode through an option. New and resumed sessions get the system prompt, and
// no transcript.
func TestSettingsOfVersion2(t *testing.T) {
	h, x := hubAndExecutor(t)
	p := prompt(t, "version2", "hello")
	p.PermissionMode = "default"
	execute(t, x, p)
	settings := strings.Join(h.data(catalog.EventSession), "\n")
	for _, part := range []string{`"mode":{"current":"default"`, `"agent":{"name":"second"`, `"name":"goal"`, `"input_hint":"h"`} {
		assert.Contains(t, settings, part)
	}

	const reported = `1 block: {"mode":"append","content":[{"type":"text","text":"Be brief."}]}`
	for n, session := range []string{"native-1", ""} { // resumed, and new
		p.TaskID, p.Prompt, p.CWD = fmt.Sprint("task-", n+2), "system", t.TempDir() // another agent process
		h.context = catalog.GetExecutionContextResult{NativeSessionID: session, SystemPrompt: "Be brief."}
		execute(t, x, p)
		assert.Equal(t, reported, h.said(p.TaskID))
	}
}

// A turn of version 2 can be cancelled.
func TestVersion2IsCancelled(t *testing.T) {
	h, x := hubAndExecutor(t)
	p := prompt(t, "version2", "works")
	go stopAtWork(t, h, x)
	assert.Equal(t, catalog.StatusCancelled, execute(t, x, p).Status)
	assert.Equal(t, "works, cancelled", h.said("task-1"))
}

// Agent-initiated work of version 2 is a turn from running to idle. Updates between two turns are
// not lost.
func TestAgentInitiatedTurnsOfVersion2(t *testing.T) {
	p := prompt(t, "version2", "goal")
	p.Launch.QuietMS = 3_600_000 // only the state ends the turn
	h, x, results := ownTurns(t, p)
	completes(t, x, p)
	h.Await(t, func() bool { return results("own-1").Status != "" }, "the end of the turn")
	assert.Equal(t, catalog.StatusCompleted, results("own-1").Status)
	assert.Equal(t, "I begin. ", h.said("task-1"))
	assert.Equal(t, `I go on. {"outcome":{"outcome":"selected","optionId":"y"}}`, h.said("own-1"))
	assert.Equal(t, "own-1", h.asked[0].TaskID)
	notices := h.data(catalog.EventNotice) // while the previous turn is ending
	h.Lock()
	defer h.Unlock()
	for _, late := range h.late {
		notices = append(notices, string(late.EventData))
	}
	assert.Equal(t, []string{`{"severity":"error","title":"Between"}`}, notices)
}

// A prompt ends an agent-initiated turn of version 2, and reaches the agent during that work. The
// user answers an open question first. An agent of version 1 does not get the prompt early.
func TestPromptEndsAgentInitiatedTurn(t *testing.T) {
	for name, c := range map[string]struct{ kind, word, outcome, said string }{
		"version 2": {"version2", "onward", catalog.YieldYielding, "I go on. "},
		"asking":    {"version2", "onward asking", catalog.YieldYielding, `I go on. {"outcome":{"outcome":"selected","optionId":"y"}}`},
		"version 1": {"plain", "own works", catalog.YieldRefused, "working, cancelled"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHub()
			answer := make(chan struct{})
			h.decide = func(context.Context, catalog.RequestPermissionParams) (catalog.RequestPermissionResult, error) {
				<-answer
				return catalog.RequestPermissionResult{Approved: true}, nil
			}
			var x *executor.Executor
			p := prompt(t, c.kind, c.word)
			p.Launch.QuietMS = 3_600_000
			results := h.beginTurns(t, func() *executor.Executor { return x }, p)
			beginOwn, begun := h.begin, false
			h.begin = func(ctx context.Context, p catalog.BeginTurnParams) (catalog.BeginTurnResult, error) {
				if begun { // the hub begins the prompt next
					return catalog.BeginTurnResult{TaskID: "task-2"}, nil
				}
				begun = true
				return beginOwn(ctx, p)
			}
			x = newExecutor(t, h, executor.Options{})
			yield := func() string {
				return must(x.YieldTurn(context.Background(), catalog.YieldTurnParams{TaskID: "own-1"}))(t).Outcome
			}
			assert.Equal(t, catalog.YieldUnknown, yield())
			execute(t, x, p)
			h.Await(t, func() bool { return h.said("own-1") != "" }, "the agent's text")
			if name == "asking" {
				h.Await(t, func() bool { h.Lock(); defer h.Unlock(); return len(h.asked) == 1 }, "its question")
			}
			outcome := catalog.YieldUnknown
			require.Eventually(t, func() bool { outcome = yield(); return outcome != catalog.YieldUnknown }, time.Minute, time.Millisecond)
			assert.Equal(t, c.outcome, outcome)
			if name == "asking" {
				assert.Empty(t, results("own-1").Status)
			}
			close(answer)
			if c.outcome == catalog.YieldRefused {
				must(x.StopTask(context.Background(), catalog.StopTaskParams{TaskID: "own-1"}))(t)
			}
			h.Await(t, func() bool { return results("own-1").Status != "" }, "the end of its turn")
			if c.outcome == catalog.YieldRefused {
				assert.Equal(t, c.said, h.said("own-1"))
				return
			}
			assert.Equal(t, catalog.StatusCompleted, results("own-1").Status)
			p.TaskID, p.Prompt = "task-2", "hello"
			r := execute(t, x, p)
			assert.Equal(t, c.said+"First this. hello", h.said("own-1")+h.said("task-2"))
			assert.Contains(t, h.said("task-2"), "First this. hello")
			assert.Equal(t, &catalog.TokenUsage{InputTokens: 40, OutputTokens: 14}, r.TokenUsage, "includes the usage before the prompt")
		})
	}
}

// A sub-agent with a session of its own is a tool call, which contains the sub-agent's text, tool
// calls and questions. The turn ends with the last sub-agent.
func TestSubagentsOfVersion2(t *testing.T) {
	h, x := hubAndExecutor(t)
	p := prompt(t, "version2", "delegate")
	r := execute(t, x, p)
	require.Equal(t, []string{catalog.StatusCompleted, "max_tokens"}, []string{r.Status, r.StopReason})
	const call = `"tool_id":"subagent-child-1","tool":"Task"`
	want := []string{
		`tool_call {` + call + `,"title":"Look","kind":"think","status":"in_progress","input":{"description":"Look","prompt":"","subagent_type":"general"}}`,
		`tool_update {` + call + `,"input":{"description":"Look","prompt":"look at it","subagent_type":"general"}}`,
		`tool_call {"tool_id":"inner","tool":"Bash","title":"ls","kind":"execute","input":{"command":"ls"},"parent_id":"subagent-child-1"}`,
		`content_block_delta {"message_id":"m1","delta":{"text":"It looks. "}}`,
		`tool_result {"tool_id":"inner","tool":"Bash","status":"completed","parent_id":"subagent-child-1"}`,
		`content_block_delta {"message_id":"c1","delta":{"text":"Found: {\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"y\"}}"},"parent_id":"subagent-child-1"}`,
		`tool_result {` + call + `,"status":"completed","result":"Found: {\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"y\"}}"}`,
	}
	assert.Equal(t, want, h.eventsLike(want))
	require.Len(t, h.asked, 1)
	assert.Equal(t, []string{"task-1", "subagent-child-1"}, []string{h.asked[0].TaskID, h.asked[0].ParentID})
	assert.Empty(t, h.data(catalog.EventUsage), "the sub-agent's usage is not the session's")
}

// An interrupt of a turn that waits for its sub-agents cancels the sub-agents, too.
func TestSubagentsOfVersion2AreCancelled(t *testing.T) {
	h, x := hubAndExecutor(t)
	p := prompt(t, "version2", "delegate for long")
	go stopAtWork(t, h, x)
	assert.Equal(t, catalog.StatusCancelled, execute(t, x, p).Status)
	p.TaskID, p.Prompt = "task-2", "hello"
	execute(t, x, p)
	assert.Equal(t, "hello", h.said("task-2"), "the agent still runs")
}

// The items that an agent of version 2 lists are its background work.
func TestBackgroundOfVersion2(t *testing.T) {
	h, x := hubAndExecutor(t)
	p := prompt(t, "version2", "background")
	over := namedPipe(t, p.CWD, "over")
	execute(t, x, p)
	h.Await(t, func() bool { return len(h.inBackground()) == 3 }, "the background work")
	tasks := h.inBackground()
	assert.True(t, strings.HasPrefix(tasks[0].ID, "term_"))
	tasks[0].ID = "TERM"
	assert.Equal(t, []domain.BackgroundTask{
		{ID: "TERM", Kind: "terminal", Title: "sleep 3"}, {ID: "c1", Kind: "tool_call", Title: "sleep 3"}, {ID: "_other", Kind: "tool_call", Title: "_other"},
	}, tasks)
	assert.Equal(t, catalog.ReleaseSessionResult{Reason: "background"}, release(t, x, p.SessionID))
	require.NoError(t, os.WriteFile(over, nil, 0o600))
	h.Await(t, func() bool { return h.inBackground() != nil && len(h.inBackground()) == 0 }, "the end of the background work")
}

// An agent can cancel one background task while the others continue.
func TestBackgroundTaskOfVersion2IsCancelled(t *testing.T) {
	h, x := hubAndExecutor(t)
	p := prompt(t, "version2", "stubborn")
	execute(t, x, p)
	h.Await(t, func() bool { return len(h.inBackground()) == 2 }, "the background work")
	assert.Equal(t, []bool{true, false}, []bool{h.inBackground()[0].Stoppable, h.inBackground()[1].Stoppable})
	r := must(x.ReleaseSession(context.Background(), catalog.ReleaseSessionParams{SessionID: p.SessionID, Background: h.inBackground()[0].ID}))(t)
	assert.Equal(t, catalog.ReleaseSessionResult{Reason: "cancelled"}, r)
	h.Await(t, func() bool { return len(h.inBackground()) == 1 }, "the end of the task")
	assert.Equal(t, "c1", h.inBackground()[0].ID)
	r = must(x.ReleaseSession(context.Background(), catalog.ReleaseSessionParams{SessionID: p.SessionID}))(t)
	assert.Equal(t, catalog.ReleaseSessionResult{Reason: "background"}, r)
}

// Usage that the agent reports after an interrupted turn counts for that turn.
func TestUsageOfAnInterruptedTurnOfVersion2(t *testing.T) {
	for _, word := range []string{"slow", "slow prompted"} {
		t.Run(word, func(t *testing.T) {
			t.Parallel()
			p := prompt(t, "version2", word)
			over := namedPipe(t, p.CWD, "over")
			h, x, results := ownTurns(t, p)
			execute(t, x, p)
			h.Await(t, func() bool { return strings.Contains(h.text(), "working") }, "the agent's first text")
			must(x.StopTask(context.Background(), catalog.StopTaskParams{TaskID: "own-1"}))(t)
			h.Await(t, func() bool { return results("own-1").Status != "" }, "the end of the turn")
			require.NoError(t, os.WriteFile(over, nil, 0o600))
			if word == "slow prompted" {
				p.TaskID, p.Prompt = "task-2", "hello"
				execute(t, x, p)
			}
			h.Await(t, func() bool { h.Lock(); defer h.Unlock(); return len(h.late) > 0 }, "the usage")
			h.Lock()
			assert.Equal(t, []catalog.ReportLateParams{{SessionID: p.SessionID, TaskID: "own-1", EventType: "usage", EventData: json.RawMessage(`{"input_tokens":5,"output_tokens":6}`)}}, h.late)
			h.Unlock()
			if word == "slow prompted" {
				assert.Contains(t, h.usages(), `task-2 {"input_tokens":20,"output_tokens":7}`, "only the usage of the prompt itself")
			}
		})
	}
}

// An agent of version 2 cancels its background work and stays alive. A release with Force ends an
// agent that cannot cancel all of it.
func TestBackgroundOfVersion2IsCancelled(t *testing.T) {
	for word, want := range map[string]catalog.ReleaseSessionResult{
		"cancellable": {Reason: "cancelled"}, "stubborn": {Released: true},
	} {
		t.Run(word, func(t *testing.T) {
			t.Parallel()
			h, x := hubAndExecutor(t)
			p := prompt(t, "version2", word)
			execute(t, x, p)
			h.Await(t, func() bool { return len(h.inBackground()) == 2 }, "the background work")
			h.Await(t, func() bool { h.Lock(); defer h.Unlock(); return word == "stubborn" || len(h.late) > 0 }, "the cancellable tool call")
			stop := func(more catalog.ReleaseSessionParams) catalog.ReleaseSessionResult {
				more.SessionID = p.SessionID
				return must(x.ReleaseSession(context.Background(), more))(t)
			}
			if word == "stubborn" {
				assert.Equal(t, catalog.ReleaseSessionResult{Reason: "kept"}, stop(catalog.ReleaseSessionParams{Background: "c1"}), "the agent cannot stop this task")
				assert.Equal(t, catalog.ReleaseSessionResult{Reason: "kept"}, stop(catalog.ReleaseSessionParams{Background: "other"}))
				assert.Len(t, h.inBackground(), 2)
			}
			assert.Equal(t, want, stop(catalog.ReleaseSessionParams{Force: true}))
			h.Await(t, func() bool { return len(h.inBackground()) == 0 }, "the end of the background work")
			if word == "cancellable" {
				h.Lock()
				assert.JSONEq(t, `{"tool_id":"c1","status":"failed"}`, string(h.late[len(h.late)-1].EventData))
				h.Unlock()
			}
			p.TaskID, p.Prompt = "task-2", "hello"
			execute(t, x, p)
			assert.Equal(t, "hello", h.said("task-2"))
		})
	}
}
