package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// playedVariable makes the test binary an agent. The variable names the file with its steps.
const playedVariable = "DUET_TEST_PLAY"

// A testAgent implements the Agent Client Protocol by hand, so that it can send messages that a
// library would reject.
type testAgent struct {
	in      *bufio.Reader
	session string // the only or the latest session
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

// chosen returns the option that an answer selects.
func (m agentMessage) chosen() string {
	var r struct{ Outcome struct{ OptionID string } }
	_ = json.Unmarshal(m.Result, &r)
	return r.Outcome.OptionID
}

// read returns the next message. It ends the process at the end of input.
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

// askLeave requests permission for a tool call.
func (a *testAgent) askLeave(id int, call members) {
	a.send(members{"id": id, "method": "session/request_permission", "params": members{
		"sessionId": a.session, "toolCall": call, "options": []members{
			{"optionId": "yes", "name": "Allow", "kind": "allow_once"}, {"optionId": "no", "name": "Reject", "kind": "reject_once"},
		},
	}})
}

// A PlayedStep is one action of the agent in every turn.
type PlayedStep struct {
	Say string         `json:"say,omitempty"` // a chunk of its message
	Ask map[string]any `json:"ask,omitempty"` // a tool call with a permission request; the agent then reports the answer

	// Beside are steps during the open question. They start after the user has opened the FIFO Go
	// for writing, if there is one.
	Beside []PlayedStep `json:"beside,omitempty"`
	Go     string       `json:"go,omitempty"`

	Update map[string]any `json:"update,omitempty"` // a session update, sent unchanged
	Late   map[string]any `json:"late,omitempty"`   // an update after the response to the prompt
	Opened map[string]any `json:"opened,omitempty"` // additional members of the session/new result, not part of a turn
}

// BashCall returns a step with a shell call.
func BashCall(title string, input any) PlayedStep {
	return PlayedStep{Ask: map[string]any{
		"title": title, "kind": "execute", "rawInput": input,
		"_meta": map[string]any{"claudeCode": map[string]any{"toolName": "Bash"}},
	}}
}

// WriteCall returns a step with a call that writes a file.
func WriteCall(title, path, before, after string, input any) PlayedStep {
	return PlayedStep{Ask: map[string]any{
		"title": title, "kind": "edit", "rawInput": input,
		"content": []any{map[string]any{"type": "diff", "path": path, "oldText": before, "newText": after}},
		"_meta":   map[string]any{"claudeCode": map[string]any{"toolName": "Write"}},
	}}
}

// play performs a step without a question.
func (a *testAgent) play(step PlayedStep) {
	switch {
	case step.Update != nil:
		a.update(step.Update)
	case step.Late == nil:
		a.say(step.Say)
	}
}

// playAgent runs the agent of playedVariable.
func playAgent(file string) {
	var steps []PlayedStep
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
				if step.Ask == nil {
					a.play(step)
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
					a.play(more)
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

// Played returns the configuration of an agent that performs these steps in each turn. The steps are
// in a file of dir.
func Played(t *testing.T, dir, agent string, steps ...PlayedStep) (configuration string) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	raw, err := json.Marshal(steps)
	require.NoError(t, err)
	file := filepath.Join(dir, agent+".json")
	WriteFile(t, file, string(raw))
	return fmt.Sprintf("[agents.%s]\ndriver = \"acp\"\ncommand = [%q]\nenv = { %s = %q }\n", agent, self, playedVariable, file)
}

// KeepingVariable makes the test binary an agent that stores its sessions in the directory of the
// variable. KeepingAbilities lists its abilities.
const (
	KeepingVariable  = "DUET_TEST_KEEP"
	KeepingAbilities = "DUET_TEST_ABILITIES"
)

// A KeptSession is a stored session of that agent.
type KeptSession struct {
	ID      string            `json:"sessionId"`
	Dir     string            `json:"cwd"`
	Title   string            `json:"title,omitempty"`
	Updated string            `json:"updatedAt"`
	Told    []json.RawMessage `json:"told,omitempty"` // the updates of its history
}

// keptPage is the number of sessions on a page of its list.
const keptPage = 2

// Save stores the session in a directory.
func (k KeptSession) Save(dir string) {
	raw, err := json.Marshal(k)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, k.ID+".json"), raw, 0o600)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// KeptIn returns the sessions of a directory, the latest first.
func KeptIn(dir string) (list []KeptSession) {
	files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
	for _, file := range files {
		var k KeptSession
		if raw, err := os.ReadFile(file); err == nil && json.Unmarshal(raw, &k) == nil {
			list = append(list, k)
		}
	}
	slices.SortFunc(list, func(a, b KeptSession) int { return strings.Compare(b.Updated+b.ID, a.Updated+a.ID) })
	return list
}

// KeptText returns an update with a text.
func KeptText(kind, text string) json.RawMessage {
	raw, _ := json.Marshal(members{"sessionUpdate": kind, "content": members{"type": "text", "text": text}})
	return raw
}

// keepSessions runs that agent. It appends each request to the file log of its directory. The
// abilities are list, load, late (the response precedes the history), resume, fork, close and
// delete.
func keepSessions(dir, abilities string) {
	can := strings.Fields(abilities)
	has := func(word string) bool { return slices.Contains(can, word) }
	a := newTestAgent("")
	var now KeptSession
	tell := func(k KeptSession, updates ...json.RawMessage) {
		a.session = k.ID
		for _, u := range updates {
			a.update(u)
		}
	}
	made := 0
	for {
		m := a.read()
		log, _ := os.OpenFile(filepath.Join(dir, "log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		fmt.Fprintln(log, strings.TrimSpace(m.Method+" "+m.Params.Session))
		log.Close()
		answer := func(result any) { a.reply(m.ID, result) }
		fail := func(code int, text string) {
			a.send(members{"id": m.ID, "error": members{"code": code, "message": text}})
		}
		find := func() (KeptSession, bool) {
			for _, k := range KeptIn(dir) {
				if k.ID == m.Params.Session {
					return k, true
				}
			}
			fail(-32002, "Resource not found: "+m.Params.Session)
			return KeptSession{}, false
		}
		begin := func() string {
			made++
			return fmt.Sprintf("kept-%d-%d", os.Getpid(), made)
		}
		able := m.Method == "initialize" || m.Method == "session/new" || m.Method == "session/prompt" || has(strings.TrimPrefix(m.Method,
			"session/"))
		switch {
		case m.ID == nil:
		case !able:
			fail(-32601, "Method not found")
		case m.Method == "initialize":
			session := members{}
			for _, word := range []string{"list", "resume", "fork", "close", "delete"} {
				if has(word) {
					session[word] = members{}
				}
			}
			answer(members{"protocolVersion": 1, "agentCapabilities": members{"loadSession": has("load"), "sessionCapabilities": session}})
		case m.Method == "session/new":
			now = KeptSession{ID: begin(), Dir: m.Params.Dir}
			answer(members{"sessionId": now.ID})
		case m.Method == "session/list":
			var fit []map[string]any
			for _, k := range KeptIn(dir) {
				if m.Params.Dir == "" || m.Params.Dir == k.Dir {
					fit = append(fit, members{"sessionId": k.ID, "cwd": k.Dir, "title": k.Title, "updatedAt": k.Updated})
				}
			}
			from := 0
			fmt.Sscan(m.Params.Cursor, &from)
			page := members{"sessions": fit[min(from, len(fit)):min(from+keptPage, len(fit))], "nextCursor": nil}
			if from+keptPage < len(fit) {
				page["nextCursor"] = fmt.Sprint(from + keptPage)
			}
			answer(page)
		case m.Method == "session/load":
			if k, ok := find(); ok {
				now = k
				if has("late") {
					answer(members{})
				}
				tell(k, k.Told...)
				if !has("late") {
					answer(members{})
				}
			}
		case m.Method == "session/resume":
			if k, ok := find(); ok {
				now = k
				answer(members{})
			}
		case m.Method == "session/fork":
			if k, ok := find(); ok {
				now = k
				now.ID = begin()
				now.Save(dir)
				tell(now, now.Told...) // as opencode does
				answer(members{"sessionId": now.ID})
			}
		case m.Method == "session/close":
			answer(members{})
		case m.Method == "session/delete":
			if k, ok := find(); ok {
				_ = os.Remove(filepath.Join(dir, k.ID+".json"))
				answer(members{})
			}
		case m.Method == "session/prompt":
			var texts []string
			for _, p := range m.Params.Prompt {
				texts = append(texts, p.Text)
			}
			for texts[len(texts)-1] == "hold" { // until there is a file go
				if _, err := os.Stat(filepath.Join(dir, "go")); err == nil {
					break
				}
				time.Sleep(10 * time.Millisecond) // machine: a program of its own polls for the file
			}
			heard := strings.Count(string(MustMarshal(now.Told)), "user_message_chunk")
			said := KeptText("agent_message_chunk", fmt.Sprintf("after %d: %s", heard, strings.Join(texts, "|")))
			now.Told = append(now.Told, KeptText("user_message_chunk", strings.Join(texts, "|")), said)
			now.Updated = time.Now().UTC().Format(time.RFC3339)
			now.Save(dir)
			tell(now, said)
			answer(members{"stopReason": "end_turn"})
		}
	}
}

// MustMarshal returns a value as JSON.
func MustMarshal(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}

// Variable and files of the recording agent.
const (
	RecordingAgent = "DUET_TEST_RECORDING_AGENT" // names the directory of its files
	RecordFile     = "carried-out"               // one line for each approved action that it did
	LeaveFile      = "leave"                     // while this file exists, the agent exits at a continuation prompt
)

// playRecordingAgent runs an agent that requests permission for the action in the prompt's last
// line, and records each action that it does. It has no memory of earlier turns. playRecordingAgent
// returns false if RecordingAgent is not set.
func playRecordingAgent() bool {
	dir := os.Getenv(RecordingAgent)
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

// prompt handles a turn. The first word changes it: "slowly" delays the action after its approval,
// and "silently" omits the tool call updates.
func (a *recordingPlayer) prompt(m agentMessage) {
	text := m.Params.Prompt[len(m.Params.Prompt)-1].Text
	if _, err := os.Stat(filepath.Join(a.dir, LeaveFile)); err == nil && strings.HasPrefix(text, "Continue") {
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
	call := members{"toolCallId": fmt.Sprint(
		"call-", os.Getpid(), "-", a.calls,
	), "title": "Do " + thing, "kind": "execute", "status": "pending", "rawInput": members{"command": "do " + thing}}
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
	f, err := os.OpenFile(filepath.Join(a.dir, RecordFile), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		os.Exit(8)
	}
	fmt.Fprintln(f, thing)
	f.Close()
}
