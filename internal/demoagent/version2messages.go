package demoagent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/coder/acp-go-sdk"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/diff"
)

// modeOption is the option by which version 2 has modes.
const modeOption = "mode"

// modeOptions are the options of a session in a mode.
func modeOptions(current string) []object {
	values := make([]object, len(modes))
	for i, m := range modes {
		values[i] = object{"value": m.Id, "name": m.Name, "description": m.Description}
	}
	return []object{{"configId": modeOption, "name": "Mode", "category": "mode", "type": "select", "currentValue": current, "options": values}}
}

// initializeParams are the parameters of initialize in version 1. The agent gets its terminals
// from version2, and reads and writes files itself.
func initializeParams(params map[string]json.RawMessage) object {
	can := object{"terminal": true}
	if asks := frame.Member(params["capabilities"], "elicitation"); asks != nil {
		can["elicitation"] = json.RawMessage(asks)
	}
	return object{"protocolVersion": version1, "clientCapabilities": can}
}

// initialized is the result of initialize.
func initialized(result []byte) any {
	can := frame.Member(result, "agentCapabilities")
	prompt := object{}
	for _, name := range []string{"image", "audio", "embeddedContext"} {
		if string(frame.Member(frame.Member(can, "promptCapabilities"), name)) == "true" {
			prompt[name] = object{}
		}
	}
	return object{
		"protocolVersion": NewestProtocol, "info": json.RawMessage(frame.Member(result, "agentInfo")), "authMethods": []object{},
		"capabilities": object{
			"session": object{"prompt": prompt, "mcp": object{"stdio": object{}}},
			"_meta":   json.RawMessage(frame.Member(can, "_meta")),
		},
		"_meta": json.RawMessage(frame.Member(result, "_meta")),
	}
}

// opening are the parameters of a request that opens a session. Version 1 requires a list of
// servers, and the agent connects to none.
func opening(params map[string]json.RawMessage) map[string]json.RawMessage {
	params["mcpServers"] = json.RawMessage("[]")
	return params
}

// opened is the result of a request that opens a session.
func (v *version2) opened(result []byte) any {
	o := object{"configOptions": modeOptions(textMember(frame.Member(result, "modes"), "currentModeId")), "availableCommands": []object{}}
	if id := frame.Member(result, "sessionId"); id != nil {
		o["sessionId"] = json.RawMessage(id)
	}
	return o
}

// permission are the parameters of a question about a tool call.
func permission(params []byte) any {
	call := membersOf(frame.Member(params, "toolCall"))
	title := call["title"]
	return object{
		"sessionId": json.RawMessage(frame.Member(params, "sessionId")), "title": title, "options": json.RawMessage(frame.Member(params, "options")),
		"subject": object{"type": "tool_call", "toolCall": toolCall(call)},
	}
}

// elicitation are the parameters of elicitation/create. Version 1 of the SDK has no place for
// the session, so the turn puts it into _meta.
func elicitation(params map[string]json.RawMessage) any {
	params["sessionId"] = frame.Member(params["_meta"], sessionMeta)
	delete(params, "_meta")
	return params
}

// sessionMeta is the member of the _meta of an elicitation with the id of the session.
const sessionMeta = "duet-rpc/session"

// appendUpdate appends an update, which is on a line of the agent's.
func (v *version2) appendUpdate(buf, l []byte, session string, update []byte) []byte {
	s := v.session(session)
	switch kind := textMember(update, "sessionUpdate"); kind {
	case "agent_message_chunk", "agent_thought_chunk", "user_message_chunk":
		id := ""
		switch kind {
		case "user_message_chunk": // of a replay
			s.number++
			s.part = 0
			if textMember(frame.Member(update, "content"), "text") == "" { // a turn without a prompt
				return buf
			}
			id = promptID(s.number)
		default:
			id = fmt.Sprintf("%s-%d-%d", strings.TrimSuffix(strings.TrimPrefix(kind, "agent_"), "_chunk"), s.number, s.part)
			if parent := textMember(frame.Member(frame.Member(update, "_meta"), "claudeCode"), "parentToolUseId"); parent != "" {
				id += "-" + parent
			}
		}
		return appendWith(buf, l, "messageId", `"`+id+`"`)
	case "tool_call", "tool_call_update":
		if kind == "tool_call" {
			s.part++
			l = bytes.Replace(l, []byte(`"sessionUpdate":"tool_call"`), []byte(`"sessionUpdate":"tool_call_update"`), 1)
		}
		if !bytes.Contains(l, []byte(`"diff"`)) {
			if name := toolName(frame.Member(update, "_meta")); name != nil {
				return appendWith(buf, l, "name", string(name))
			}
			return append(buf, l...)
		}
		u := toolCall(membersOf(update))
		u["sessionUpdate"] = json.RawMessage(`"tool_call_update"`)
		return append(buf, updateLine(session, u)...)
	case "plan":
		return append(buf, updateLine(session, object{
			"sessionUpdate": "plan_update",
			"plan":          object{"type": "items", "planId": "plan", "entries": json.RawMessage(frame.Member(update, "entries"))},
		})...)
	case "current_mode_update":
		return append(buf, updateLine(session, object{"sessionUpdate": "config_option_update", "configOptions": modeOptions(textMember(update, "currentModeId"))})...)
	}
	return append(buf, l...)
}

// appendWith appends the line of an update with one more member. The line is not encoded anew:
// streams are fast, and some lines are no valid UTF-8 on purpose.
func appendWith(buf, l []byte, name, value string) []byte {
	const start = `"update":{`
	i := bytes.Index(l, []byte(start)) + len(start)
	buf = append(buf, l[:i]...)
	buf = append(buf, `"`+name+`":`+value+","...)
	return append(buf, l[i:]...)
}

// toolName is the name of a tool in the _meta of its call, or nil.
func toolName(meta []byte) []byte { return frame.Member(frame.Member(meta, "duet"), "toolName") }

func promptID(number int) string { return fmt.Sprintf("prompt-%d", number) }

// toolCall is a tool call, or what is new of one, in version 2.
func toolCall(call map[string]json.RawMessage) map[string]json.RawMessage {
	if name := toolName(call["_meta"]); name != nil {
		call["name"] = name
	}
	if !bytes.Contains(call["content"], []byte(`"diff"`)) {
		return call
	}
	var content []json.RawMessage
	if json.Unmarshal(call["content"], &content) != nil {
		return call
	}
	for i, item := range content {
		var d acp.ToolCallContentDiff
		if textMember(item, "type") == "diff" && json.Unmarshal(item, &d) == nil {
			content[i] = encode(patch(d))
		}
	}
	call["content"] = encode(content)
	return call
}

// patch is a diff as a git patch with absolute paths.
func patch(d acp.ToolCallContentDiff) object {
	operation := "modify"
	if d.OldText == nil {
		operation = "add"
	}
	return object{
		"type": "diff", "changes": []object{{"operation": operation, "path": d.Path, "fileType": "text"}},
		"patch": object{"format": "git_patch", "text": gitPatch(d.Path, d.OldText, &d.NewText)},
	}
}

// wireError is an error as an object of JSON-RPC.
func wireError(err error) any {
	var wire *acp.RequestError
	if errors.As(err, &wire) {
		return wire
	}
	return object{"code": -32603, "message": err.Error()}
}

func updateLine(session string, update any) []byte {
	return line(object{"jsonrpc": "2.0", "method": acp.ClientMethodSessionUpdate, "params": object{"sessionId": session, "update": update}})
}

func requestLine(id []byte, method string, params any) []byte {
	return line(object{"jsonrpc": "2.0", "id": json.RawMessage(id), "method": method, "params": params})
}

func line(message any) []byte { return append(encode(message), '\n') }

// encode encodes a value that can be encoded.
func encode(value any) json.RawMessage {
	raw, err := frame.Encode(value)
	if err != nil {
		panic(fmt.Sprintf("encoding a message of the demo agent: %v", err))
	}
	return raw
}

func membersOf(raw []byte) map[string]json.RawMessage {
	m := map[string]json.RawMessage{}
	_ = json.Unmarshal(raw, &m) // else it has no members
	return m
}

func text(raw []byte) (s string) {
	_ = json.Unmarshal(raw, &s) // else it is ""
	return s
}

// textMember is a member that is a text, or "".
func textMember(object []byte, name string) string {
	raw := frame.Member(object, name)
	s, _ := frame.Text(raw)
	return string(s)
}

func intMember(object []byte, name string) (n int) {
	_ = json.Unmarshal(frame.Member(object, name), &n) // else it is 0
	return n
}

// gitPatch is how a file changed as git shows it, but with absolute paths.
func gitPatch(path string, before, after *string) string {
	name := path
	if strings.ContainsFunc(path, func(r rune) bool { return unicode.IsControl(r) || r == '"' || r == '\\' }) {
		name = strconv.Quote(path)
	}
	head := "diff --git " + name + " " + name + "\n"
	if before == nil {
		head += "new file mode 100644\n"
	}
	_, body, ok := strings.Cut(diff.Unified("", path, before, after), "\n@@")
	if !ok {
		return head // nothing has changed
	}
	if strings.Contains(path, " ") {
		name += "\t"
	}
	old := name
	if before == nil {
		old = "/dev/null"
	}
	return head + "--- " + old + "\n+++ " + name + "\n@@" + body
}
