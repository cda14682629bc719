//go:build unix

package executor_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// An acpAgent is an agent that takes the words of a prompt as commands. It writes the protocol by
// hand, so that it can break it.
type acpAgent struct {
	in      *bufio.Reader
	out     *bufio.Writer
	nextID  int
	session string
	cwd     string
	turns   int
	left    string // the terminal of the command "leftover"
	choosy  *choosyAgent
	offered json.RawMessage
	keyed   bool // authenticate made it use its key
}

type wire struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		SessionID      string `json:"sessionId"`
		CWD            string `json:"cwd"`
		ModeID         string `json:"modeId"`
		MethodID       string `json:"methodId"`
		ModelID        string `json:"modelId"`
		ConfigID       string `json:"configId"`
		Type           string `json:"type"`
		Value          any    `json:"value"`
		PermissionMode string
		SystemPrompt   json.RawMessage `json:"systemPrompt"`
		Meta           json.RawMessage `json:"_meta"`
		Offered        json.RawMessage `json:"clientCapabilities"`
		Prompt         []promptBlock   `json:"prompt"`
	} `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// A promptBlock is a part of a prompt, with all of its members.
type promptBlock struct {
	Type, Text string
	raw        json.RawMessage
}

func (b *promptBlock) UnmarshalJSON(raw []byte) error {
	type plain promptBlock
	b.raw = bytes.Clone(raw)
	return json.Unmarshal(raw, (*plain)(b))
}

func fakeAgent() {
	a := &acpAgent{in: bufio.NewReaderSize(os.Stdin, 1<<20), out: bufio.NewWriterSize(os.Stdout, 1<<20), session: "native-1"}
	kind := os.Getenv(playAgent)
	if kind == "silent" {
		fmt.Fprintln(os.Stderr, "waiting for a login")
		for {
			a.read()
		}
	}
	if kind == "version2" {
		fakeAgent2(a)
	}
	if strings.HasPrefix(kind, "choosy") {
		a.choosy = &choosyAgent{kind: kind, mode: "ask", model: "small", thought: "low"}
		if kind == "choosy-auto" {
			a.choosy.mode = "auto"
		}
	}
	for {
		m := a.read()
		if a.choosy != nil && a.choosy.serve(a, m) {
			continue
		}
		switch m.Method {
		case "initialize":
			a.offered = m.Params.Offered
			capabilities, key := map[string]any{}, "NOBODY_HAS_THIS"
			switch kind {
			case "keyed":
				key = playAgent // any variable that is set
			case "resume":
				capabilities["sessionCapabilities"] = map[string]any{"resume": map[string]any{}}
			case "heeding":
				capabilities["_meta"] = map[string]any{"duet": map[string]any{"updatedInput": true}}
			case "sighted":
				capabilities["promptCapabilities"] = map[string]any{"image": true, "audio": true, "embeddedContext": true}
			case "load", "forgetful":
				capabilities["loadSession"] = true
			}
			a.reply(m.ID, map[string]any{
				"protocolVersion": 1, "agentCapabilities": capabilities, "_meta": map[string]any{"steering": map[string]any{"supported": kind == "steered"}},
				"authMethods": []any{
					map[string]any{"id": "x", "name": "Fake login", "type": "of-the-future", "vars": "odd"},
					map[string]any{"id": "no", "name": "Another key", "type": "env_var", "vars": []any{map[string]any{"name": playAgent}, map[string]any{"name": "NOBODY_HAS_THIS"}}},
					map[string]any{"id": "key", "name": "Key", "type": "env_var", "vars": []any{map[string]any{"name": key}, map[string]any{"name": "NOR_THIS", "optional": true}}},
				},
			})
		case "session/new":
			a.cwd = m.Params.CWD
			if kind == "forger" { // the answer repeats this id
				a.raw(`{"jsonrpc":"2.0","id":{"method":"session/prompt"},"method":"fs/read_text_file","params":{"sessionId":"native-1","path":"/nothing"}}`)
				a.read()
				a.raw("answered")
				for {
					a.read()
				}
			}
			if kind == "locked" || kind == "keyed" && !a.keyed {
				a.send(map[string]any{"jsonrpc": "2.0", "id": m.ID, "error": map[string]any{"code": -32000, "message": "Authentication required"}})
				continue
			}
			if kind == "plainest" { // has neither modes nor models
				a.reply(m.ID, map[string]any{"sessionId": a.session})
				continue
			}
			a.reply(m.ID, map[string]any{
				"sessionId": a.session,
				"modes": map[string]any{"currentModeId": "default", "availableModes": []any{
					map[string]any{"id": "default", "name": "Default"}, map[string]any{"id": "plan", "name": "Plan"},
				}},
				"configOptions": []any{
					map[string]any{"type": "of-the-future", "id": "x", "name": "x"},
					map[string]any{"type": "select", "id": "model", "name": "Model", "category": "model", "currentValue": "small", "options": []any{map[string]any{"value": "big", "name": "Big"}}},
				},
			})
		case "authenticate":
			a.keyed = m.Params.MethodID == "key"
			a.reply(m.ID, map[string]any{})
		case "session/resume":
			a.cwd, a.session = m.Params.CWD, m.Params.SessionID
			a.reply(m.ID, map[string]any{})
		case "session/load":
			if kind == "forgetful" {
				a.fail(m.ID, "Resource not found")
				continue
			}
			a.cwd, a.session = m.Params.CWD, m.Params.SessionID
			a.text("replayed")
			a.reply(m.ID, map[string]any{})
		case "session/set_mode":
			a.text("mode " + m.Params.ModeID)
			a.reply(m.ID, map[string]any{})
		case "session/set_config_option":
			a.text(fmt.Sprint("model ", m.Params.Value))
			a.reply(m.ID, map[string]any{})
		case "session/prompt":
			a.prompt(m)
		case "_session/goal":
			a.reply(m.ID, map[string]any{})
		default:
			if m.ID != nil && m.Method != "" {
				a.send(map[string]any{"jsonrpc": "2.0", "id": m.ID, "error": map[string]any{"code": -32601, "message": "no such method"}})
			}
		}
	}
}

func (a *acpAgent) read() wire {
	a.out.Flush()
	line, err := a.in.ReadBytes('\n')
	if err != nil {
		os.Exit(0)
	}
	var m wire
	json.Unmarshal(line, &m)
	return m
}

func (a *acpAgent) await(id int) wire {
	for {
		if m := a.read(); m.Method == "" && string(m.ID) == fmt.Sprint(id) {
			return m
		}
	}
}

func (a *acpAgent) call(method string, params any) wire {
	a.nextID++
	a.send(map[string]any{"jsonrpc": "2.0", "id": a.nextID, "method": method, "params": params})
	return a.await(a.nextID)
}

func (a *acpAgent) ask(call map[string]any, options []any) (string, json.RawMessage) {
	m := a.call("session/request_permission", map[string]any{"sessionId": a.session, "toolCall": call, "options": options})
	var result struct{ Outcome struct{ OptionID string } }
	json.Unmarshal(m.Result, &result)
	return result.Outcome.OptionID, m.Result
}

func (a *acpAgent) text(text string) {
	a.update(map[string]any{"sessionUpdate": "agent_message_chunk", "content": map[string]any{"type": "text", "text": text}})
}

// codexStatus sends the session status of codex-acp, in the _meta of an update.
func (a *acpAgent) codexStatus(status string) {
	a.update(map[string]any{"sessionUpdate": "session_info_update", "_meta": map[string]any{"codex": json.RawMessage(status)}})
}

func (a *acpAgent) update(update any) {
	a.send(map[string]any{"jsonrpc": "2.0", "method": "session/update", "params": map[string]any{"sessionId": a.session, "update": update}})
	a.out.Flush()
}

func (a *acpAgent) reply(id json.RawMessage, result any) {
	a.send(map[string]any{"jsonrpc": "2.0", "id": id, "result": result})
	a.out.Flush()
}

func (a *acpAgent) fail(id json.RawMessage, message string) {
	a.send(map[string]any{"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": -32603, "message": message}})
}

func (a *acpAgent) send(v any) {
	b, _ := json.Marshal(v)
	a.raw(string(b))
}

func (a *acpAgent) raw(line string) {
	a.out.WriteString(line)
	a.out.WriteByte('\n')
}
