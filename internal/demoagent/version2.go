package demoagent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"

	"github.com/coder/acp-go-sdk"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/diff"
)

// Versions of the Agent Client Protocol.
const (
	version1 = 1
	// NewestProtocol is the newest version of the protocol that the agent speaks.
	NewestProtocol = 2
)

// States of a session in version 2.
const (
	stateRunning        = "running"
	stateRequiresAction = "requires_action"
	stateIdle           = "idle"
)

// codeCancelled answers a prompt that was cancelled before it became part of the conversation.
const codeCancelled = -32800

type object = map[string]any

// version2 translates between a client that speaks version 2 of the protocol and the agent,
// which is written for version 1. It passes everything on unchanged until a client asks for
// version 2. What version 1 has no message for, such as the states of a session, the turns
// report by its methods. They do nothing in version 1 and may be called from any goroutine.
type version2 struct {
	newest int                         // the newest version to speak
	out    io.Writer                   // to the client, whole lines
	mode   func(session string) string // the mode of a session; it is called with mu held
	on     atomic.Bool                 // the client speaks version 2

	terminals ownTerminals

	mu       sync.Mutex // guards the fields below; held while a message is written
	sessions map[string]*sessionState
	buf      []byte

	callsMu sync.Mutex       // guards calls; never held while a message is written
	calls   map[string]*call // requests of the client, by id, that need a translated answer
}

// A sessionState is what the client knows of a session.
type sessionState struct {
	name       string   // the current state
	background []object // all background work
	number     int      // of the turn, from 1
	part       int      // how many tool calls the turn has begun
	closing    []byte   // the answer to session/close, until the session is idle
}

// A call is a request of the client.
type call struct {
	session  string
	answered bool // the answer is written already: a prompt is answered when its turn begins
	prompt   bool
	isClose  bool
	snapshot bool                    // the state precedes the answer
	result   func(result []byte) any // translates the result; nil leaves it
}

func newVersion2(newest int, out io.Writer, mode func(session string) string) *version2 {
	v := &version2{newest: newest, out: out, mode: mode, sessions: make(map[string]*sessionState), calls: make(map[string]*call)}
	v.terminals.update = v.update
	return v
}

// fromClient translates a line from the client. It returns nil if the agent does not get it.
func (v *version2) fromClient(line []byte) ([]byte, error) {
	method := textMember(line, "method")
	if !v.on.Load() {
		if method != acp.AgentMethodInitialize || v.newest <= version1 || intMember(frame.Member(line, "params"), "protocolVersion") <= version1 {
			return line, nil
		}
		v.on.Store(true)
	}
	id, params := frame.Member(line, "id"), membersOf(frame.Member(line, "params"))
	session := text(params["sessionId"])
	switch method {
	case acp.AgentMethodInitialize:
		return v.request(id, method, initializeParams(params), &call{result: initialized}), nil
	case acp.AgentMethodSessionNew:
		return v.request(id, method, opening(params), &call{result: v.opened}), nil
	case acp.AgentMethodSessionResume:
		from := params["replayFrom"]
		delete(params, "replayFrom")
		c := &call{session: session, snapshot: true, result: v.opened}
		switch {
		case len(from) == 0 || string(from) == "null":
			return v.request(id, method, opening(params), c), nil
		case textMember(from, "type") == "start":
			return v.request(id, acp.AgentMethodSessionLoad, opening(params), c), nil
		}
		return nil, v.refuse(id, -32602, "the demo agent replays a session from its start only")
	case acp.AgentMethodSessionClose:
		return v.request(id, method, params, &call{session: session, isClose: true}), nil
	case acp.AgentMethodSessionSetConfigOption:
		if text(params["configId"]) != modeOption {
			return nil, v.refuse(id, -32602, fmt.Sprintf("there is no option %q", text(params["configId"])))
		}
		mode := object{"sessionId": session, "modeId": text(params["value"])}
		return v.request(id, acp.AgentMethodSessionSetMode, mode, &call{result: func([]byte) any {
			return object{"configOptions": modeOptions(v.mode(session))}
		}}), nil
	case acp.AgentMethodSessionLoad, acp.AgentMethodSessionSetMode, acp.AgentMethodAuthenticate:
		return nil, v.refuse(id, -32601, fmt.Sprintf("version 2 has no method %q", method))
	case acp.AgentMethodSessionPrompt:
		meta := membersOf(params["_meta"])
		meta[promptMeta] = id
		params["_meta"] = encode(meta)
		return v.request(id, method, params, &call{session: session, prompt: true}), nil
	}
	return line, nil
}

// promptMeta is the member of the _meta of a prompt with the id of its request, by which the
// turn says that it has begun.
const promptMeta = "duet-rpc/request"

// request is a request of the client as the agent gets it; c is how it is answered.
func (v *version2) request(id []byte, method string, params any, c *call) []byte {
	v.callsMu.Lock()
	v.calls[string(id)] = c
	v.callsMu.Unlock()
	return requestLine(id, method, params)
}

// refuse answers a request of the client with an error.
func (v *version2) refuse(id []byte, code int, message string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	_, err := v.out.Write(failed(id, code, message))
	return err
}

func failed(id []byte, code int, message string) []byte {
	return line(object{"jsonrpc": "2.0", "id": json.RawMessage(id), "error": object{"code": code, "message": message}})
}

// Write translates whole lines of the agent's.
func (v *version2) Write(lines []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.on.Load() {
		return v.out.Write(lines)
	}
	v.buf = v.buf[:0]
	for line := range bytes.Lines(lines) {
		v.buf = v.toClient(v.buf, line)
	}
	if len(v.buf) > 0 {
		if _, err := v.out.Write(v.buf); err != nil {
			return 0, err
		}
	}
	if cap(v.buf) > 4*batchBytes {
		v.buf = nil
	}
	return len(lines), nil
}

// toClient appends what a line of the agent's is in version 2. A line that is not understood
// stays as it is.
func (v *version2) toClient(buf, l []byte) []byte {
	switch method := textMember(l, "method"); method {
	case acp.ClientMethodSessionUpdate:
		params := frame.Member(l, "params")
		return v.appendUpdate(buf, l, textMember(params, "sessionId"), frame.Member(params, "update"))
	case acp.ClientMethodSessionRequestPermission:
		return append(buf, requestLine(frame.Member(l, "id"), method, permission(frame.Member(l, "params")))...)
	case acp.ClientMethodElicitationCreate:
		return append(buf, requestLine(frame.Member(l, "id"), method, elicitation(membersOf(frame.Member(l, "params"))))...)
	case "":
		if id := frame.Member(l, "id"); id != nil {
			return v.appendResponse(buf, l, id)
		}
	}
	return append(buf, l...)
}

// appendResponse appends the answer to a request of the client.
func (v *version2) appendResponse(buf, l, id []byte) []byte {
	v.callsMu.Lock()
	c := v.calls[string(id)]
	delete(v.calls, string(id))
	v.callsMu.Unlock()
	result := frame.Member(l, "result")
	switch {
	case c == nil:
	case c.prompt && c.answered:
		return buf
	case c.prompt && result != nil:
		return append(buf, failed(id, codeCancelled, "the prompt was cancelled before its turn began")...)
	case result == nil:
	case c.isClose && v.session(c.session).name != stateIdle:
		v.session(c.session).closing = bytes.Clone(l)
		return buf
	case c.isClose:
		delete(v.sessions, c.session)
	default:
		if c.snapshot {
			buf = append(buf, v.stateLine(c.session, nil)...)
		}
		if c.result != nil {
			return append(buf, line(object{"jsonrpc": "2.0", "id": json.RawMessage(id), "result": c.result(result)})...)
		}
	}
	return append(buf, l...)
}

// session is the state of a session; mu is held.
func (v *version2) session(id string) *sessionState {
	s := v.sessions[id]
	if s == nil {
		s = &sessionState{name: stateIdle, background: []object{}}
		v.sessions[id] = s
	}
	return s
}

// stateLine is a state_update with the current state; mu is held.
func (v *version2) stateLine(id string, more object) []byte {
	s := v.session(id)
	u := object{"sessionUpdate": "state_update", "state": s.name, "background": s.background}
	for name, value := range more {
		u[name] = value
	}
	return updateLine(id, u)
}

// begin reports that a turn begins. prompt is nil for a turn that the agent begins by itself.
func (v *version2) begin(id acp.SessionId, number int, prompt *acp.PromptRequest) {
	if !v.on.Load() {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.session(string(id))
	s.number, s.part, s.name = number, 0, stateRunning
	var lines []byte
	if prompt != nil {
		message := promptID(number)
		lines = updateLine(string(id), object{"sessionUpdate": "user_message", "messageId": message, "content": prompt.Prompt})
		if request, ok := v.answer(prompt.Meta[promptMeta]); ok {
			lines = append(lines, line(object{"jsonrpc": "2.0", "id": request, "result": object{"messageId": message}})...)
		}
	}
	_, _ = v.out.Write(append(lines, v.stateLine(string(id), nil)...))
}

// answer marks the request of a prompt, by its id, as answered.
func (v *version2) answer(request any) (json.RawMessage, bool) {
	id := encode(request)
	v.callsMu.Lock()
	defer v.callsMu.Unlock()
	c := v.calls[string(id)]
	if c == nil || !c.prompt || c.answered {
		return nil, false
	}
	c.answered = true
	return id, true
}

// asks reports that a turn waits for the user, and answered that it goes on.
func (v *version2) asks(id acp.SessionId)     { v.change(id, stateRequiresAction) }
func (v *version2) answered(id acp.SessionId) { v.change(id, stateRunning) }

func (v *version2) change(id acp.SessionId, name string) {
	if !v.on.Load() {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.session(string(id)).name = name
	_, _ = v.out.Write(v.stateLine(string(id), nil))
}

// end reports the end of a turn. It returns false in version 1.
func (v *version2) end(id acp.SessionId, resp acp.PromptResponse, err error) bool {
	if !v.on.Load() {
		return false
	}
	result := object{"stopReason": resp.StopReason}
	if resp.Usage != nil {
		result["usage"] = resp.Usage
	}
	if err != nil {
		result = object{"stopReason": "error", "error": wireError(err)}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.session(string(id))
	s.name = stateIdle
	lines := v.stateLine(string(id), result)
	if s.closing != nil {
		lines = append(lines, s.closing...)
		delete(v.sessions, string(id))
	}
	_, _ = v.out.Write(lines)
	return true
}

// detach lists a tool call as background work from the next state on.
func (v *version2) detach(id acp.SessionId, toolCall acp.ToolCallId) {
	if !v.on.Load() {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.session(string(id))
	s.background = append(s.background, object{"type": "tool_call", "toolCallId": toolCall})
}

// detachedEnded reports that there is no background work any more.
func (v *version2) detachedEnded(id acp.SessionId) {
	if !v.on.Load() {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.session(string(id)).background = []object{}
	_, _ = v.out.Write(v.stateLine(string(id), nil))
}

// replay says that the updates of earlier turns follow; first is the number of the first turn.
func (v *version2) replay(id acp.SessionId, first int) {
	if !v.on.Load() {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.session(string(id))
	s.number, s.part = first-1, 0
}

// update sends an update of a session.
func (v *version2) update(session string, update object) {
	v.mu.Lock()
	defer v.mu.Unlock()
	_, _ = v.out.Write(updateLine(session, update))
}

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
