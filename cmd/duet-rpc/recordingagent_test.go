package main_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Environment of the agent that this test's binary plays.
const (
	recordingAgent = "DUET_TEST_RECORDING_AGENT" // the directory where it keeps its record
	recordFile     = "carried-out"               // in there: a line for each time that it did what it was allowed
	leaveFile      = "leave"                     // while it is there, the agent ends instead of taking a prompt that continues
)

// playRecordingAgent is an agent that asks for leave to do what the prompt's
// last line says, and writes a line to its record each time that it does it.
// It knows nothing of earlier turns. It reports whether this process is to be
// that agent.
func playRecordingAgent() bool {
	dir := os.Getenv(recordingAgent)
	if dir == "" {
		return false
	}
	a := &recordingPlayer{dir: dir, in: bufio.NewReader(os.Stdin)}
	for {
		m, err := a.read()
		if err != nil {
			return true
		}
		switch m.Method {
		case "initialize":
			a.reply(m.ID, members{"protocolVersion": 1, "agentCapabilities": members{"loadSession": true}})
		case "session/new":
			a.reply(m.ID, members{"sessionId": "recorded"})
		case "session/load":
			a.reply(m.ID, members{})
		case "session/prompt":
			a.prompt(m)
		}
	}
}

type members = map[string]any

type recordingPlayer struct {
	dir   string
	in    *bufio.Reader
	calls int
}

type recordingMessage struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Prompt []struct{ Text string } `json:"prompt"`
	} `json:"params"`
	Result struct {
		Outcome struct {
			OptionID string `json:"optionId"`
		} `json:"outcome"`
	} `json:"result"`
}

func (a *recordingPlayer) read() (m recordingMessage, err error) {
	line, err := a.in.ReadBytes('\n')
	if err != nil {
		return m, err
	}
	return m, json.Unmarshal(line, &m)
}

func (a *recordingPlayer) send(message members) {
	message["jsonrpc"] = "2.0"
	line, _ := json.Marshal(message)
	os.Stdout.Write(append(line, '\n'))
}

func (a *recordingPlayer) reply(id json.RawMessage, result any) {
	a.send(members{"id": id, "result": result})
}

func (a *recordingPlayer) update(update members) {
	a.send(members{"method": "session/update", "params": members{"sessionId": "recorded", "update": update}})
}

// prompt takes a turn. Words before the thing to do change it: "slowly" lets a
// moment pass between the answer and the deed, "silently" tells of no tool call.
func (a *recordingPlayer) prompt(m recordingMessage) {
	text := m.Params.Prompt[len(m.Params.Prompt)-1].Text
	if _, err := os.Stat(filepath.Join(a.dir, leaveFile)); err == nil && strings.HasPrefix(text, "Continue") {
		os.Exit(7)
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	words := strings.Fields(lines[len(lines)-1])
	thing := words[len(words)-1]
	if thing == "nothing" {
		a.update(members{"sessionUpdate": "agent_message_chunk", "content": members{"type": "text", "text": "done nothing"}})
		a.reply(m.ID, members{"stopReason": "end_turn"})
		return
	}
	a.calls++
	call := members{"toolCallId": fmt.Sprint("call-", os.Getpid(), "-", a.calls), "title": "Do " + thing, "kind": "execute", "status": "pending", "rawInput": members{"command": "do " + thing}}
	if words[0] != "silently" {
		call["sessionUpdate"] = "tool_call"
		a.update(call)
		delete(call, "sessionUpdate")
	}
	a.send(members{"id": a.calls, "method": "session/request_permission", "params": members{
		"sessionId": "recorded", "toolCall": call,
		"options": []members{{"optionId": "yes", "name": "Yes", "kind": "allow_once"}, {"optionId": "no", "name": "No", "kind": "reject_once"}},
	}})
	stop := "end_turn"
	status := "failed"
	for {
		answer, err := a.read()
		if err != nil {
			os.Exit(0)
		}
		if answer.Method == "session/cancel" {
			stop = "cancelled"
			continue
		}
		if answer.Method != "" {
			continue
		}
		if answer.Result.Outcome.OptionID == "yes" {
			if words[0] == "slowly" {
				time.Sleep(5 * time.Millisecond) // machine: a program of its own is slow on purpose
			}
			a.record(thing)
			status = "completed"
		}
		break
	}
	if words[0] != "silently" {
		a.update(members{"sessionUpdate": "tool_call_update", "toolCallId": call["toolCallId"], "status": status})
	}
	a.reply(m.ID, members{"stopReason": stop})
}

func (a *recordingPlayer) record(thing string) {
	f, err := os.OpenFile(filepath.Join(a.dir, recordFile), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		os.Exit(8)
	}
	fmt.Fprintln(f, thing)
	f.Close()
}
