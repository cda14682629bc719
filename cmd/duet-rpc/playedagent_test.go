package main_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
)

// playedVariable makes an agent of the test binary: one that plays the file
// which it names.
const playedVariable = "DUET_TEST_PLAY"

// A playedStep is a thing that the agent does in every turn.
type playedStep struct {
	Say string         `json:"say,omitempty"` // a chunk of its message
	Ask map[string]any `json:"ask,omitempty"` // a tool call that takes permission; how it was answered is said

	// Beside is what it does while it waits for the answer, once the user has opened
	// the FIFO Go for writing.
	Beside []playedStep `json:"beside,omitempty"`
	Go     string       `json:"go,omitempty"`

	Update map[string]any `json:"update,omitempty"` // of the session, as it is
	Late   map[string]any `json:"late,omitempty"`   // an update that it sends behind the answer to the prompt
	Opened map[string]any `json:"opened,omitempty"` // what it tells beside when a session is opened, rather than in a turn
}

// bashCall is a call of a shell.
func bashCall(title string, input any) playedStep {
	return playedStep{Ask: map[string]any{
		"title": title, "kind": "execute", "rawInput": input,
		"_meta": map[string]any{"claudeCode": map[string]any{"toolName": "Bash"}},
	}}
}

// writeCall is a call that writes a file.
func writeCall(title, path, before, after string, input any) playedStep {
	return playedStep{Ask: map[string]any{
		"title": title, "kind": "edit", "rawInput": input,
		"content": []any{map[string]any{"type": "diff", "path": path, "oldText": before, "newText": after}},
		"_meta":   map[string]any{"claudeCode": map[string]any{"toolName": "Write"}},
	}}
}

// playAgent is the agent, as a process. It speaks the protocol by hand: what it
// says need not be what a library would let pass.
func playAgent(file string) {
	var steps []playedStep
	raw, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(raw, &steps)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	type message struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Result json.RawMessage `json:"result"`
	}
	read := func() (m message) {
		line, err := in.ReadBytes('\n')
		if err != nil {
			os.Exit(0)
		}
		_ = json.Unmarshal(line, &m)
		return m
	}
	send := func(m map[string]any) {
		m["jsonrpc"] = "2.0"
		var line bytes.Buffer
		e := json.NewEncoder(&line)
		e.SetEscapeHTML(false)
		_ = e.Encode(m)
		_, _ = os.Stdout.Write(line.Bytes())
	}
	update := func(u map[string]any) {
		send(map[string]any{"method": "session/update", "params": map[string]any{"sessionId": "played", "update": u}})
	}
	say := func(text string) {
		update(map[string]any{"sessionUpdate": "agent_message_chunk", "content": map[string]any{"type": "text", "text": text}})
	}
	for calls := 0; ; {
		switch m := read(); m.Method {
		case "initialize":
			send(map[string]any{"id": m.ID, "result": map[string]any{"protocolVersion": 1}})
		case "session/new":
			result := map[string]any{"sessionId": "played"}
			for _, step := range steps {
				maps.Copy(result, step.Opened)
			}
			send(map[string]any{"id": m.ID, "result": result})
		case "session/prompt":
			for _, step := range steps {
				if step.Update != nil {
					update(step.Update)
					continue
				}
				if step.Late != nil {
					continue
				}
				if step.Ask == nil {
					say(step.Say)
					continue
				}
				calls++
				call := map[string]any{"toolCallId": fmt.Sprint("call-", calls), "status": "pending"}
				maps.Copy(call, step.Ask)
				send(map[string]any{"id": 1000 + calls, "method": "session/request_permission", "params": map[string]any{
					"sessionId": "played", "toolCall": call, "options": []any{
						map[string]any{"optionId": "yes", "name": "Allow", "kind": "allow_once"},
						map[string]any{"optionId": "no", "name": "Reject", "kind": "reject_once"},
					},
				}})
				if step.Go != "" {
					_, _ = os.ReadFile(step.Go)
				}
				for _, more := range step.Beside {
					if more.Update != nil {
						update(more.Update)
					} else {
						say(more.Say)
					}
				}
				answer := read()
				for answer.Result == nil {
					answer = read()
				}
				var outcome struct{ Outcome struct{ OptionID string } }
				_ = json.Unmarshal(answer.Result, &outcome)
				say(fmt.Sprintf("[%d: %s]\n", calls, outcome.Outcome.OptionID))
			}
			send(map[string]any{"id": m.ID, "result": map[string]any{"stopReason": "end_turn"}})
			for _, step := range steps {
				if step.Late != nil {
					update(step.Late)
				}
			}
		default:
			if m.ID != nil && m.Method != "" {
				send(map[string]any{"id": m.ID, "result": map[string]any{}})
			}
		}
	}
}
