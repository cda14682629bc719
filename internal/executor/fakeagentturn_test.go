//go:build unix

package executor_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

func (a *acpAgent) prompt(m wire) {
	a.turns++
	var all strings.Builder
	for _, b := range m.Params.Prompt {
		all.WriteString(b.Text)
	}
	var words []string
	for _, b := range m.Params.Prompt {
		if b.Type == "text" {
			words = strings.Fields(b.Text)
		}
	}
	done := map[string]any{"stopReason": "end_turn"}
	switch words[0] {
	case "echo":
		a.text(all.String())
	case "blocks": // the content blocks of the prompt
		for _, b := range m.Params.Prompt[1:] {
			a.text(string(b.raw) + "\n")
		}
	case "turn":
		a.text(fmt.Sprintf("turn %d pid %d", a.turns, os.Getpid()))
	case "env":
		a.text(strings.Join(os.Environ(), "\n"))
	case "edit":
		a.edit()
		done["usage"] = map[string]any{"inputTokens": 7, "outputTokens": 5, "cachedReadTokens": 3, "totalTokens": 15}
	case "changing": // changes the tool call after its question, as the other words say
		options := []any{map[string]any{"optionId": "y", "name": "Yes", "kind": "allow_once"}, map[string]any{"optionId": "n", "name": "No", "kind": "reject_once"}}
		a.update(map[string]any{"sessionUpdate": "tool_call", "toolCallId": "c1", "title": "look", "kind": "execute", "rawInput": map[string]any{"command": "ls"}})
		a.nextID++
		a.send(map[string]any{"jsonrpc": "2.0", "id": a.nextID, "method": "session/request_permission", "params": map[string]any{"sessionId": a.session, "toolCall": map[string]any{"toolCallId": "c1"}, "options": options}})
		a.out.Flush()
		os.ReadFile(filepath.Join(a.cwd, "asked")) // a pipe, which is closed when the hub is asked
		a.update(json.RawMessage(strings.Join(words[1:], " ")))
		a.text("answer " + string(a.await(a.nextID).Result))
	case "figures": // invalid usage
		for _, update := range []string{
			`"used": 1e300, "size": -5, "cost": {"amount": 1e300, "currency": "USD"}`, `"used": 10, "size": 100.5, "cost": {"amount": -1, "currency": "USD"}`,
			`"used": "10", "size": [], "cost": {"amount": 1e999, "currency": "USD"}`, `"used": 20, "size": 200, "cost": {"amount": 0.5, "currency": "USD"}`,
		} {
			a.raw(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"usage_update",` + update + `}}}`)
		}
		done["usage"] = json.RawMessage(strings.TrimPrefix(all.String(), "figures "))
	case "restless": // changes its tool call again and again while it waits
		a.nextID++
		a.send(map[string]any{"jsonrpc": "2.0", "id": a.nextID, "method": "session/request_permission", "params": map[string]any{
			"sessionId": a.session, "toolCall": map[string]any{"toolCallId": "c1", "rawInput": map[string]any{"n": 0}}, "options": []any{map[string]any{"optionId": "y", "name": "Yes", "kind": "allow_once"}},
		}})
		for n := 1; n <= 500; n++ {
			a.update(map[string]any{"sessionUpdate": "tool_call_update", "toolCallId": "c1", "rawInput": map[string]any{"n": n}})
		}
		a.text("answer " + string(a.await(a.nextID).Result))
	case "ask":
		_, result := a.ask(map[string]any{"toolCallId": "q1", "title": "Which colour?", "rawInput": map[string]any{"big": json.RawMessage("12345678901234567890")}}, []any{
			map[string]any{"optionId": "red", "name": "Red", "kind": "choice"},
		})
		a.text("answer " + string(result))
	case "form", "link", "voice": // asks the user; after a link it reports that it is done
		asked := map[string]any{"sessionId": a.session, "mode": "form", "message": "Where to?", "toolCallId": "t9", "requestedSchema": map[string]any{
			"type": "object", "properties": map[string]any{"port": map[string]any{"type": "integer"}}, "required": []string{"port"},
		}}
		if words[0] != "form" {
			asked = map[string]any{"sessionId": a.session, "mode": "url", "message": "Sign in", "elicitationId": "e1", "url": "https://example.com/in"}
		}
		if words[0] == "voice" {
			asked["mode"] = "voice"
		}
		m := a.call("elicitation/create", asked)
		a.text("answer " + string(m.Result) + string(m.Error))
		a.send(map[string]any{"jsonrpc": "2.0", "method": "elicitation/complete", "params": map[string]any{"elicitationId": "nobody's"}})
		a.send(map[string]any{"jsonrpc": "2.0", "method": "elicitation/complete", "params": map[string]any{"elicitationId": "e1"}})
	case "asked": // asks the user, and first sends the message it received
		a.nextID++
		a.send(map[string]any{"jsonrpc": "2.0", "id": a.nextID, "method": "elicitation/create", "params": map[string]any{"sessionId": a.session, "mode": "url", "message": "Sign in", "url": "https://example.com/in"}})
		first := a.read()
		a.text(cmp.Or(first.Method, "an answer"))
		if a.read(); first.Method == "" {
			break
		}
		done["stopReason"] = "cancelled"
	case "linkdone": // reports that the link is done before the user has answered
		a.nextID++
		a.send(map[string]any{"jsonrpc": "2.0", "id": a.nextID, "method": "elicitation/create", "params": map[string]any{"sessionId": a.session, "mode": "url", "message": "Sign in", "elicitationId": "e1", "url": "https://example.com/in"}})
		a.out.Flush()
		os.ReadFile(filepath.Join(a.cwd, "asked")) // a pipe, which is closed when the question is open
		a.send(map[string]any{"jsonrpc": "2.0", "method": "elicitation/complete", "params": map[string]any{"elicitationId": "e1"}})
		m := a.await(a.nextID)
		a.text("answer " + string(m.Result) + string(m.Error))
	case "deny-cancelled", "deny-end", "deny-says", "deny-tries":
		call := func(id, update, status string) {
			a.update(map[string]any{"sessionUpdate": update, "toolCallId": id, "title": "x", "kind": "execute", "status": status})
		}
		if words[0] != "deny-cancelled" {
			call("d1", "tool_call", "pending")
		}
		a.ask(map[string]any{"toolCallId": "d1", "kind": "execute", "title": "x"}, []any{
			map[string]any{"optionId": "y", "name": "Yes", "kind": "allow_once"}, map[string]any{"optionId": "n", "name": "No", "kind": "reject_once"},
		})
		if words[0] == "deny-cancelled" {
			done["stopReason"] = "cancelled"
			break
		}
		call("d1", "tool_call_update", "failed")
		switch words[0] {
		case "deny-says":
			a.text("then not")
		case "deny-tries":
			call("d2", "tool_call", "pending")
			call("d2", "tool_call_update", "completed")
		}
	case "tools": // each line is a permission request, as raw JSON
		content, _ := os.ReadFile(filepath.Join(a.cwd, "requests"))
		for line := range bytes.Lines(content) {
			a.nextID++
			a.raw(strings.ReplaceAll(string(bytes.TrimSpace(line)), `"id":0`, fmt.Sprintf(`"id":%d`, a.nextID)))
			if !bytes.Contains(line, []byte(`"session/update"`)) {
				m := a.await(a.nextID)
				a.text(string(m.Result) + string(m.Error) + "\n")
			}
		}
	case "garbage":
		for i := range 8 {
			a.raw(fmt.Sprintf("garbage %d \xff", i))
		}
		a.raw("[1,2]")
		a.raw("17")
		a.raw(`{"jsonrpc":"2.0"}`)
		a.raw(`{"jsonrpc":"2.0","method":17}`)
		a.raw(`{"jsonrpc":"2.0","method":"future/notification","params":{}}`)
		a.raw(`{"jsonrpc":"2.0","id":"nobody","error":"what"}`)
		a.text("after")
	case "long":
		a.out.WriteString(`{"jsonrpc":"2.0","method":"session/update","params":{"text":"`)
		for range 100 {
			a.out.Write(bytes.Repeat([]byte("x"), 1<<20))
		}
		a.raw(`"}}`)
		a.text("after")
	case "longcall":
		a.nextID++
		a.send(map[string]any{"jsonrpc": "2.0", "id": a.nextID, "method": "fs/write_text_file", "params": map[string]any{"path": a.cwd + "/x", "content": strings.Repeat("x", 11<<20)}})
		a.text("refused " + string(a.await(a.nextID).Error))
	case "invalid":
		a.raw(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a` + "\xff\xc3" + `b"}}}}`)
		a.raw(`{"jsonrpc":"2.0","method":"session\/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"\ud800c"}}}}`)
	case "unknown":
		a.update(map[string]any{"sessionUpdate": "notice", "level": "x"})
		a.update(map[string]any{"sessionUpdate": "tool_call", "toolCallId": 17})
		a.update(map[string]any{"sessionUpdate": "agent_message_chunk", "content": map[string]any{"type": "image", "data": "", "mimeType": "image/png"}})
		a.update(map[string]any{"sessionUpdate": "available_commands_update", "availableCommands": []any{}})
		a.text("")
		a.text("after")
	case "plan":
		a.update(map[string]any{"sessionUpdate": "plan", "entries": []any{map[string]any{"content": "one", "priority": "high", "status": "pending"}}})
		a.update(map[string]any{"sessionUpdate": "agent_thought_chunk", "content": map[string]any{"type": "text", "text": "hm"}})
		a.update(map[string]any{"sessionUpdate": "current_mode_update", "currentModeId": "plan"})
		a.update(map[string]any{"sessionUpdate": "usage_update", "used": 10, "size": 100, "cost": map[string]any{"amount": 0.5, "currency": "USD"}})
		a.update(map[string]any{"sessionUpdate": "user_message_chunk", "content": map[string]any{"type": "text", "text": "me"}})
	case "flood":
		for i := range 50_000 {
			a.raw(fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"%d,"}}}}`, i))
		}
	case "noise":
		for range 5000 {
			a.raw(`{"jsonrpc":"2.0","method":"_vendor/thing","params":{}}`)
		}
	case "hang":
		a.text("hanging")
		for a.read().Method != "session/cancel" {
		}
		done["stopReason"] = "cancelled"
	case "mutter", "dangle": // forever, or until an answer arrives
		if words[0] == "dangle" {
			a.update(map[string]any{"sessionUpdate": "tool_call", "toolCallId": "t1", "title": "Look into it", "kind": "think", "status": "in_progress"})
		}
		fmt.Fprintln(os.Stderr, "\x1b[31mAPI error 500\x1b[0m, trying again")
		for a.read().Method != "session/cancel" {
		}
		a.text("well")
		done["stopReason"] = "cancelled"
	case "retry": // like codex-acp 2.6 while its model's API fails
		a.codexStatus(`{"error":{"message":"Reconnecting... 1/5","additionalDetails":"high demand","willRetry":true}}`)
		for a.read().Method != "session/cancel" {
		}
		a.text("well")
		done["stopReason"] = "cancelled"
	case "give-up": // and fails at last, with WORDS
		a.text("I will do it. ")
		a.codexStatus(`{"error":{"message":"Reconnecting... 5/5","additionalDetails":"high demand","willRetry":true}}`)
		a.codexStatus(`{"threadStatus":{"type":"systemError"}}`)
		if len(words) > 1 {
			a.text(strings.Join(words[1:], " ") + "\n\n")
		}
	case "recover":
		a.codexStatus(`{"threadStatus":{"type":"systemError"}}`)
		a.codexStatus(`{"threadStatus":{"type":"active","activeFlags":[]}}`)
		a.text("done")
	case "deaf", "stubborn":
		if words[0] == "stubborn" {
			signal.Ignore(os.Interrupt, syscall.SIGTERM)
		}
		sleeper().Start() // in the process group
		outside := sleeper()
		outside.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		outside.Start()
		a.text(unmarked())
		hang()
	case "own": // goes on by itself after the answer to the prompt, as the agent of that name does
		a.reply(m.ID, done)
		for _, style := range words[1:] {
			a.ownTurn(style)
		}
		return
	case "/goal": // as codex-acp 2.6: turn after turn
		a.update(map[string]any{"sessionUpdate": "available_commands_update", "availableCommands": []any{map[string]any{"name": "goal", "description": "d"}}})
		a.text("I begin.")
		a.reply(m.ID, done)
		for _, style := range words[1:] {
			a.ownTurn(style)
		}
		return
	case "late": // sends updates after the end of its turn, from late.json
		a.lateUpdates(m, words[1] == "interrupted")
		return
	case "runs": // a command in the background
		a.update(map[string]any{"sessionUpdate": "tool_call", "toolCallId": "b1", "title": "Bash", "kind": "execute", "status": "completed", "rawInput": map[string]any{"command": "sleep 600", "run_in_background": true}})
		sleeper().Start()
	case "heeds", "refuses": // a steering message; sends a word more before it answers
		a.text("working")
		steering := a.read()
		for ; steering.Method != "_session/steering"; steering = a.read() {
		}
		a.text(", still")
		if words[0] == "refuses" {
			a.reply(steering.ID, map[string]any{"outcome": "promptRequired"})
		} else {
			a.reply(steering.ID, map[string]any{"outcome": "injected"})
		}
		a.text("told " + steering.Params.Prompt[0].Text)
	case "leaves": // a tool call open
		a.update(map[string]any{"sessionUpdate": "tool_call", "toolCallId": "left", "title": "Look into it", "kind": "think", "status": "in_progress"})
	case "litter":
		a.text(unmarked())
		os.Exit(3)
	case "sleep":
		a.text("asleep")
		hang()
	case "crash":
		a.text("almost")
		fmt.Fprintln(os.Stderr, "the sky is falling")
		os.Exit(3)
	case "last":
		a.reply(m.ID, done)
		os.Exit(0)
	case "error":
		a.fail(m.ID, "no credit left")
		return
	case "badresult":
		a.raw(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":"text"}`, m.ID))
		return
	case "leave":
		a.update(map[string]any{"sessionUpdate": "current_mode_update", "currentModeId": "default"})
	case "fds":
		entries, _ := os.ReadDir("/proc/self/fd")
		for _, e := range entries {
			if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil {
				a.text(to + "\n")
			}
		}
	case "mute":
		answer, result := a.ask(map[string]any{"toolCallId": "t1", "title": "Look"}, []any{})
		a.text(answer + string(result))
	case "unasked":
		write := func(name string) {
			m := a.call("fs/write_text_file", map[string]any{"sessionId": a.session, "path": filepath.Join(a.cwd, name), "content": "new"})
			a.text(name + " " + string(m.Error) + "\n")
		}
		write("there.txt")
		write("sub/../new.txt")
		a.update(map[string]any{
			"sessionUpdate": "tool_call", "toolCallId": "t1", "title": "Patch", "kind": "edit", "status": "in_progress",
			"locations": []any{map[string]any{"path": filepath.Join(a.cwd, "told.txt")}}, "_meta": map[string]any{"claudeCode": map[string]any{"toolName": "Patch"}},
		})
		write("told.txt")
		for _, argv := range [][]string{{"sh", "-c", "touch made; true"}, {"touch", "made", "a b"}, {"touch made"}} {
			m := a.call("terminal/create", map[string]any{"sessionId": a.session, "command": argv[0], "args": argv[1:]})
			a.text("terminal " + string(m.Error) + "\n")
		}
	case "offered":
		a.text(string(a.offered))
	case "files":
		a.files()
	case "touch": // it reads and writes each of these files, with or without permission
		for _, path := range words[1:] {
			params := map[string]any{"sessionId": a.session, "path": path, "content": "mine"}
			read := a.call("fs/read_text_file", params)
			write := a.call("fs/write_text_file", params)
			a.text(fmt.Sprintf("%s %v %v\n", path, read.Error == nil, write.Error == nil))
		}
	case "terminal":
		id := a.call("terminal/create", map[string]any{"sessionId": a.session, "command": "sh", "args": []string{"-c", "printf 'h\\303\\244llo'; echo $WORD; exit 4"}, "env": []any{map[string]any{"name": "WORD", "value": "there"}}})
		var t struct {
			TerminalID string `json:"terminalId"`
		}
		json.Unmarshal(id.Result, &t)
		exit := a.call("terminal/wait_for_exit", map[string]any{"sessionId": a.session, "terminalId": t.TerminalID})
		output := a.call("terminal/output", map[string]any{"sessionId": a.session, "terminalId": t.TerminalID})
		a.call("terminal/release", map[string]any{"sessionId": a.session, "terminalId": t.TerminalID})
		after := a.call("terminal/output", map[string]any{"sessionId": a.session, "terminalId": t.TerminalID})
		a.text(fmt.Sprintf("%s %s %v", exit.Result, output.Result, after.Error != nil))
	case "shell": // it runs the rest of the prompt in a terminal
		made := a.call("terminal/create", map[string]any{"sessionId": a.session, "command": "/bin/sh", "args": []string{"-c", strings.Join(words[1:], " ")}})
		var t struct {
			TerminalID string `json:"terminalId"`
		}
		json.Unmarshal(made.Result, &t)
		exit := a.call("terminal/wait_for_exit", map[string]any{"sessionId": a.session, "terminalId": t.TerminalID})
		a.text(string(exit.Result))
	case "many":
		for i := range 1030 {
			a.send(map[string]any{"jsonrpc": "2.0", "id": 5000 + i, "method": "session/request_permission", "params": map[string]any{
				"sessionId": a.session, "toolCall": map[string]any{"toolCallId": fmt.Sprint(i)}, "options": []any{map[string]any{"optionId": "y", "kind": "allow_once"}},
			}})
		}
		refused := 0
		for range 6 {
			if m := a.read(); strings.Contains(string(m.Error), "too many") {
				refused++
			}
		}
		a.text(fmt.Sprint("refused ", refused))
		for a.read().Method != "session/cancel" {
		}
		done["stopReason"] = "cancelled"
	case "leftover":
		m := a.call("terminal/create", map[string]any{"sessionId": a.session, "command": "sleep 600 & sleep 601"})
		var t struct {
			TerminalID string `json:"terminalId"`
		}
		json.Unmarshal(m.Result, &t)
		a.left = t.TerminalID
	case "tidy":
		a.call("terminal/kill", map[string]any{"sessionId": a.session, "terminalId": a.left})
	}
	a.reply(m.ID, done)
}

// sleeper returns a program that runs longer than a test.
func sleeper() *exec.Cmd { return exec.Command("/bin/sh", "-c", "exec sleep 600") }

// hang returns only when the test that should end this process was killed.
func hang() {
	select {
	case <-make(chan struct{}):
	case <-time.After(time.Hour):
	}
}

// unmarked starts a process in the group without the mark, and returns its id.
func unmarked() string {
	cmd := sleeper()
	cmd.Env = []string{"PATH=/bin:/usr/bin"}
	cmd.Start()
	return fmt.Sprint(cmd.Process.Pid)
}

// edit is a normal turn: it asks, and then writes a file.
func (a *acpAgent) edit() {
	path := filepath.Join(a.cwd, "demo.txt")
	a.text("I will ")
	a.text("edit")
	diff := []any{map[string]any{"type": "diff", "path": path, "oldText": "old\n", "newText": "new\n"}}
	call := map[string]any{
		"sessionUpdate": "tool_call", "toolCallId": "t1", "title": "Edit demo.txt", "kind": "edit", "status": "pending",
		"content": diff, "locations": []any{map[string]any{"path": path}}, "rawInput": map[string]any{"file_path": path},
	}
	a.update(call)
	answer, result := a.ask(map[string]any{"toolCallId": "t1"}, []any{
		map[string]any{"optionId": "y", "name": "Yes", "kind": "allow_once"},
		map[string]any{"optionId": "n", "name": "No", "kind": "reject_once"},
	})
	if answer != "y" {
		a.update(map[string]any{"sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": "failed"})
		a.text("not done " + string(result))
		return
	}
	os.WriteFile(path, []byte("new\n"), 0o600)
	a.update(map[string]any{"sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": "completed", "content": []any{
		map[string]any{"type": "content", "content": map[string]any{"type": "text", "text": "written"}},
	}})
	a.text("done " + string(result))
}

func (a *acpAgent) files() {
	read := func(path string, more map[string]any) string {
		params := map[string]any{"sessionId": a.session, "path": path}
		maps.Copy(params, more)
		m := a.call("fs/read_text_file", params)
		return string(m.Result) + string(m.Error)
	}
	a.text("lines " + read(filepath.Join(a.cwd, "lines.txt"), map[string]any{"line": 2, "limit": 2}) + "\n")
	a.text("passwd " + read("/etc/passwd", nil) + "\n")
	a.text("link " + read(filepath.Join(a.cwd, "out", "passwd"), nil) + "\n")
	a.text("missing " + read(filepath.Join(a.cwd, "missing.txt"), nil) + "\n")
	a.text("fifo " + read(filepath.Join(a.cwd, "fifo"), nil) + "\n")
	m := a.call("fs/write_text_file", map[string]any{"sessionId": a.session, "path": filepath.Join(a.cwd, "lines.txt"), "content": "changed"})
	a.text("write " + string(m.Error) + "\n")
	m = a.call("fs/write_text_file", map[string]any{"sessionId": a.session, "path": filepath.Join(a.cwd, "out", "new"), "content": "x"})
	a.text("writeout " + string(m.Error) + "\n")
}
