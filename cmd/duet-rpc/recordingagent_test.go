package main_test

import (
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
	a := &recordingPlayer{testAgent: newTestAgent("recorded"), dir: dir}
	for {
		m := a.read()
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

type recordingPlayer struct {
	*testAgent
	dir   string
	calls int
}

// prompt takes a turn. Words before the thing to do change it: "slowly" lets a
// moment pass between the answer and the deed, "silently" tells of no tool call.
func (a *recordingPlayer) prompt(m agentMessage) {
	text := m.Params.Prompt[len(m.Params.Prompt)-1].Text
	if _, err := os.Stat(filepath.Join(a.dir, leaveFile)); err == nil && strings.HasPrefix(text, "Continue") {
		os.Exit(7)
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	words := strings.Fields(lines[len(lines)-1])
	thing := words[len(words)-1]
	if thing == "nothing" {
		a.say("done nothing")
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
	a.askLeave(a.calls, call)
	stop := "end_turn"
	status := "failed"
	for {
		answer := a.read()
		if answer.Method == "session/cancel" {
			stop = "cancelled"
			continue
		}
		if answer.Method != "" {
			continue
		}
		if answer.chosen() == "yes" {
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
