package main_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
)

// playedVariable makes an agent of the test binary: one that plays the file
// which it names.
const playedVariable = "DUET_TEST_PLAY"

// A testAgent is a program that speaks the Agent Client Protocol by hand: what it says need not
// be what a library would let pass.
type testAgent struct {
	in      *bufio.Reader
	session string // its only one, or the latest
}

func newTestAgent(session string) *testAgent {
	return &testAgent{in: bufio.NewReaderSize(os.Stdin, 1<<20), session: session}
}

type members = map[string]any

type agentMessage struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Session string                  `json:"sessionId"`
		Dir     string                  `json:"cwd"`
		Cursor  string                  `json:"cursor"`
		Prompt  []struct{ Text string } `json:"prompt"`
	} `json:"params"`
	Result json.RawMessage `json:"result"`
}

// chosen is the option that an answer chooses.
func (m agentMessage) chosen() string {
	var r struct{ Outcome struct{ OptionID string } }
	_ = json.Unmarshal(m.Result, &r)
	return r.Outcome.OptionID
}

// read ends the process with its input.
func (a *testAgent) read() (m agentMessage) {
	line, err := a.in.ReadBytes('\n')
	if err != nil {
		os.Exit(0)
	}
	_ = json.Unmarshal(line, &m)
	return m
}

func (a *testAgent) send(message members) {
	message["jsonrpc"] = "2.0"
	e := json.NewEncoder(os.Stdout)
	e.SetEscapeHTML(false)
	_ = e.Encode(message)
}

func (a *testAgent) reply(id json.RawMessage, result any) {
	a.send(members{"id": id, "result": result})
}

func (a *testAgent) update(update any) {
	a.send(members{"method": "session/update", "params": members{"sessionId": a.session, "update": update}})
}

func (a *testAgent) say(text string) {
	a.update(members{"sessionUpdate": "agent_message_chunk", "content": members{"type": "text", "text": text}})
}

// askLeave asks whether a tool call may run.
func (a *testAgent) askLeave(id int, call members) {
	a.send(members{"id": id, "method": "session/request_permission", "params": members{
		"sessionId": a.session, "toolCall": call, "options": []members{
			{"optionId": "yes", "name": "Allow", "kind": "allow_once"}, {"optionId": "no", "name": "Reject", "kind": "reject_once"},
		},
	}})
}

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

// playAgent is the agent, as a process.
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
	a := newTestAgent("played")
	for calls := 0; ; {
		switch m := a.read(); m.Method {
		case "initialize":
			a.reply(m.ID, members{"protocolVersion": 1})
		case "session/new":
			result := members{"sessionId": a.session}
			for _, step := range steps {
				maps.Copy(result, step.Opened)
			}
			a.reply(m.ID, result)
		case "session/prompt":
			for _, step := range steps {
				if step.Update != nil {
					a.update(step.Update)
					continue
				}
				if step.Late != nil {
					continue
				}
				if step.Ask == nil {
					a.say(step.Say)
					continue
				}
				calls++
				call := members{"toolCallId": fmt.Sprint("call-", calls), "status": "pending"}
				maps.Copy(call, step.Ask)
				a.askLeave(1000+calls, call)
				if step.Go != "" {
					_, _ = os.ReadFile(step.Go)
				}
				for _, more := range step.Beside {
					if more.Update != nil {
						a.update(more.Update)
					} else {
						a.say(more.Say)
					}
				}
				answer := a.read()
				for answer.Result == nil {
					answer = a.read()
				}
				a.say(fmt.Sprintf("[%d: %s]\n", calls, answer.chosen()))
			}
			a.reply(m.ID, members{"stopReason": "end_turn"})
			for _, step := range steps {
				if step.Late != nil {
					a.update(step.Late)
				}
			}
		default:
			if m.ID != nil && m.Method != "" {
				a.reply(m.ID, members{})
			}
		}
	}
}
