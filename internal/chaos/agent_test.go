//go:build linux && soak

package chaos

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// agentVariable makes the test binary the scripted agent. Its value is the directory of the agents'
// sessions, memory and journal.
const agentVariable = "DUET_CHAOS_AGENT"

// version1Variable makes the scripted agent speak version 1 of the protocol.
const version1Variable = "DUET_CHAOS_VERSION_1"

// workPrompt returns the agent's prompt for a work with this number of steps, each of which needs
// permission.
func workPrompt(work string, steps int) string { return fmt.Sprintf("work %s %d", work, steps) }

// queuedPrompt returns the agent's prompt that takes a time and does nothing else. Its version has the
// form NAME.NUMBER.
func queuedPrompt(version string, takes time.Duration) string {
	return fmt.Sprintf("prompt %s for %d ms", version, takes.Milliseconds())
}

// waitPrompt is queuedPrompt without a version.
func waitPrompt(takes time.Duration) string { return fmt.Sprintf("wait %d ms", takes.Milliseconds()) }

// editPrompt is the agent's prompt that changes the files of the project.
const editPrompt = "edit the files"

// lastMessage precedes the prompt where Duet tells an agent what came before it.
const lastMessage = "The user's next message follows."

var (
	promptPattern = regexp.MustCompile(`^prompt ((p\d+)\.\d+) for (\d+) ms`)
	waitPattern   = regexp.MustCompile(`^wait (\d+) ms`)
	workPattern   = regexp.MustCompile(`\bwork ([\w-]+) (\d+)\b`)
	agentOptions  = []any{
		map[string]any{"optionId": "yes", "name": "Allow", "kind": "allow_once"},
		map[string]any{"optionId": "no", "name": "Reject", "kind": "reject_once"},
	}
)

// A scriptedAgent speaks the Agent Client Protocol. It requests permission for each step of a work
// and then does the step. Like an agent with a transcript, it remembers the steps of earlier
// processes, unless a kill came before it stored them. Half of the processes speak version 2 of the
// protocol.
type scriptedAgent struct {
	dir      string
	journal  *journal
	version2 bool // only serve sets it, before the first prompt

	turning sync.Mutex // held during a turn

	mu      sync.Mutex // guards the fields below
	out     io.Writer
	asked   map[string]chan string // receives the outcome, by request
	serial  int
	session string
	cancel  chan struct{} // of the turn
}

// playAgent serves standard input until it ends.
func playAgent(dir string) {
	a := &scriptedAgent{dir: dir, journal: journalIn(dir), out: os.Stdout, asked: make(map[string]chan string)}
	a.serve(os.Stdin)
	if rand.IntN(6) == 0 { // some agents ignore the end of their input and signals
		signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
		time.Sleep(10 * time.Minute)
	}
}

type agentMessage struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		SessionID string `json:"sessionId"`
		Version   int    `json:"protocolVersion"`
		Prompt    []struct {
			Text string `json:"text"`
		} `json:"prompt"`
	} `json:"params"`
	Result struct {
		Outcome struct {
			Outcome  string `json:"outcome"`
			OptionID string `json:"optionId"`
		} `json:"outcome"`
	} `json:"result"`
}

func (a *scriptedAgent) serve(in io.Reader) {
	r := bufio.NewReaderSize(in, 1<<16)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return
		}
		var m agentMessage
		if json.Unmarshal(line, &m) != nil {
			continue
		}
		switch m.Method {
		case "initialize":
			if a.version2 = m.Params.Version >= 2 && os.Getenv(version1Variable) == "" && rand.IntN(2) == 0; a.version2 {
				a.reply(m.ID, map[string]any{
					"protocolVersion": 2, "info": map[string]any{"name": "scripted", "version": "1"},
					"capabilities": map[string]any{"session": map[string]any{}}, "authMethods": []any{},
				})
				continue
			}
			a.reply(m.ID, map[string]any{"protocolVersion": 1, "agentCapabilities": map[string]any{"loadSession": true}})
		case "session/new":
			a.open(fmt.Sprintf("session-%d-%d", os.Getpid(), rand.Uint32()))
			a.reply(m.ID, map[string]any{"sessionId": a.session})
		case "session/load", "session/resume":
			if _, err := os.Stat(a.sessionFile(m.Params.SessionID)); err != nil {
				a.send(map[string]any{"jsonrpc": "2.0", "id": m.ID, "error": map[string]any{"code": -32002, "message": "no such session"}})
				continue
			}
			a.open(m.Params.SessionID)
			a.state("idle", "")
			a.reply(m.ID, map[string]any{})
		case "session/prompt":
			cancel := make(chan struct{})
			a.mu.Lock()
			a.cancel = cancel
			a.mu.Unlock()
			go a.turn(m, cancel)
		case "session/cancel":
			a.mu.Lock()
			if a.cancel != nil {
				close(a.cancel)
				a.cancel = nil
			}
			a.mu.Unlock()
		case "": // an answer to the agent's question
			outcome := m.Result.Outcome.OptionID
			if m.Result.Outcome.Outcome != "selected" {
				outcome = ""
			}
			a.mu.Lock()
			waiting := a.asked[string(m.ID)]
			delete(a.asked, string(m.ID))
			a.mu.Unlock()
			if waiting != nil {
				waiting <- outcome
			}
		}
	}
}

func (a *scriptedAgent) send(message any) {
	line, _ := json.Marshal(message)
	a.mu.Lock()
	defer a.mu.Unlock()
	_, _ = a.out.Write(append(line, '\n'))
}

func (a *scriptedAgent) reply(id json.RawMessage, result any) {
	a.send(map[string]any{"jsonrpc": "2.0", "id": id, "result": result})
}

func (a *scriptedAgent) update(update map[string]any) {
	a.send(map[string]any{"jsonrpc": "2.0", "method": "session/update", "params": map[string]any{"sessionId": a.session, "update": update}})
}

// state reports the session's state in version 2.
func (a *scriptedAgent) state(name, stop string) {
	if !a.version2 {
		return
	}
	u := map[string]any{"sessionUpdate": "state_update", "state": name}
	if stop != "" {
		u["stopReason"] = stop
	}
	a.update(u)
}

func (a *scriptedAgent) sessionFile(id string) string {
	return filepath.Join(a.dir, "sessions", filepath.Base(id))
}

// open makes a session the current one and creates its file, which holds the last prompt with work
// in it.
func (a *scriptedAgent) open(id string) {
	a.session = id
	f, err := os.OpenFile(a.sessionFile(id), os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		f.Close()
	}
}

// turn does the remaining steps of the work in the prompt, or else in the session. Sometimes it
// ends the turn early and does the rest by itself.
func (a *scriptedAgent) turn(m agentMessage, cancel <-chan struct{}) {
	a.turning.Lock()
	defer a.turning.Unlock()
	var text strings.Builder
	for _, block := range m.Params.Prompt {
		text.WriteString(block.Text + "\n")
	}
	file := a.sessionFile(a.session)
	work := lastWork(text.String())
	if work == nil {
		said, _ := os.ReadFile(file)
		work = lastWork(string(said))
	} else {
		_ = replaceFile(file, work[0])
	}
	steps, goesOnAfter := 0, 0
	if work != nil {
		steps, _ = strconv.Atoi(work[2])
		goesOnAfter = steps
		if rand.IntN(3) == 0 { // the turn ends early, and the agent continues by itself
			goesOnAfter = rand.IntN(steps + 1)
		}
	}
	if a.version2 {
		a.reply(m.ID, map[string]any{"messageId": fmt.Sprintf("prompt-%08x", rand.Uint32())})
	}
	a.state("running", "")
	var stop string
	switch prompt := prompted(text.String()); {
	case prompt == editPrompt:
		stop = a.edit()
	case promptPattern.MatchString(prompt):
		m := promptPattern.FindStringSubmatch(prompt)
		a.note(noteTook, m[2], m[1])
		stop = wait(m[3], cancel)
	case waitPattern.MatchString(prompt):
		stop = wait(waitPattern.FindStringSubmatch(prompt)[1], cancel)
	default:
		stop = a.steps(work, 1, goesOnAfter, cancel)
	}
	a.state("idle", stop)
	if !a.version2 {
		a.reply(m.ID, map[string]any{"stopReason": stop})
	}
	if goesOnAfter == steps || stop == "cancelled" {
		return
	}
	a.dawdle(50 * time.Millisecond)
	a.state("running", "")
	stop = a.steps(work, goesOnAfter+1, steps, cancel)
	if a.version2 {
		a.state("idle", stop)
		return
	}
	a.send(map[string]any{"jsonrpc": "2.0", "method": "_session/turn_ended", "params": map[string]any{"sessionId": a.session, "stopReason": stop}})
}

// prompted returns the prompt in a message, without what Duet tells about the session before.
func prompted(message string) string {
	if at := strings.LastIndex(message, lastMessage); at >= 0 {
		message = message[at+len(lastMessage):]
	}
	return strings.TrimSpace(message)
}

// wait returns the stop reason after a number of milliseconds.
func wait(milliseconds string, cancel <-chan struct{}) string {
	ms, _ := strconv.Atoi(milliseconds)
	select {
	case <-cancel:
		return "cancelled"
	case <-time.After(time.Duration(ms) * time.Millisecond):
		return "end_turn"
	}
}

// edit changes the files of the project and reports the changes. It returns the stop reason.
func (a *scriptedAgent) edit() string {
	for i, name := range reviewedFiles {
		path, err := filepath.Abs(name)
		if err == nil {
			err = os.WriteFile(path, []byte(textAfter), 0o600)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return "refusal"
		}
		a.update(map[string]any{
			"sessionUpdate": "tool_call", "toolCallId": fmt.Sprintf("edit-%d", i), "title": "Edit " + name, "kind": "edit", "status": "completed",
			"content": []any{map[string]any{"type": "diff", "path": path, "oldText": textBefore, "newText": textAfter}},
		})
	}
	return "end_turn"
}

// steps does the remaining steps of a range and returns the stop reason.
func (a *scriptedAgent) steps(work []string, from, to int, cancel <-chan struct{}) string {
	for i := from; i <= to; i++ {
		if step := fmt.Sprintf("%s/%d", work[1], i); !a.knows(step) && !a.step(step, cancel) {
			return "cancelled"
		}
	}
	return "end_turn"
}

// lastWork returns the last work in a text: the match, its name and its number of steps.
func lastWork(text string) []string {
	all := workPattern.FindAllStringSubmatch(text, -1)
	if len(all) == 0 {
		return nil
	}
	return all[len(all)-1]
}

// step requests permission and does the step after an approval. It reports whether the turn
// continues.
func (a *scriptedAgent) step(step string, cancel <-chan struct{}) bool {
	call := fmt.Sprintf("%s#%08x", step, rand.Uint32())
	tool := func(status string) map[string]any {
		return map[string]any{
			"toolCallId": call, "title": "step " + step, "kind": "execute", "status": status,
			"rawInput": map[string]any{"command": "step " + step}, "_meta": map[string]any{"duet": map[string]any{"toolName": "Bash"}},
		}
	}
	tell := func(kind, status string) {
		u := tool(status)
		u["sessionUpdate"] = kind
		if a.version2 {
			u["sessionUpdate"] = "tool_call_update"
		}
		a.update(u)
	}
	said := map[string]any{"sessionUpdate": "agent_message_chunk", "content": map[string]any{"type": "text", "text": "Now " + step + ". "}}
	if a.version2 {
		said["messageId"] = "before-" + call
	}
	a.update(said)
	tell("tool_call", "pending")
	a.note(noteAsk, step, call)
	answer := make(chan string, 1)
	a.mu.Lock()
	a.serial++
	id := a.serial
	a.asked[strconv.Itoa(id)] = answer
	a.mu.Unlock()
	question := map[string]any{"sessionId": a.session, "options": agentOptions}
	if a.version2 {
		question["title"], question["subject"] = "step "+step, map[string]any{"type": "tool_call", "toolCall": tool("pending")}
	} else {
		question["toolCall"] = tool("pending")
	}
	a.state("requires_action", "")
	a.send(map[string]any{"jsonrpc": "2.0", "id": id, "method": "session/request_permission", "params": question})
	var outcome string
	select {
	case outcome = <-answer:
	case <-cancel:
		select { // the answer may still arrive
		case outcome = <-answer:
		case <-time.After(5 * time.Second):
		}
		if outcome != "" {
			a.note(noteCancelled, step, call)
			outcome = ""
		}
	}
	a.state("running", "")
	switch outcome {
	case "yes":
		a.note(noteAllowed, step, call)
		a.dawdle(40 * time.Millisecond)
		a.note(noteDid, step, call)
		a.dawdle(20 * time.Millisecond)
		a.remember(step)
		tell("tool_call_update", "completed")
		a.dawdle(20 * time.Millisecond)
	case "no":
		a.note(noteDenied, step, call)
		a.remember(step)
		tell("tool_call_update", "failed")
	default:
		a.note(noteCancelled, step, call)
		tell("tool_call_update", "failed")
		return false
	}
	return true
}

// dawdle sleeps up to most, or not, so that a kill can come meanwhile.
func (a *scriptedAgent) dawdle(most time.Duration) {
	if rand.IntN(2) == 0 {
		time.Sleep(rand.N(most))
	}
}

func (a *scriptedAgent) note(what, step, call string) {
	if err := a.journal.write(note{What: what, Step: step, Call: call}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) // the agent does nothing that it cannot record
	}
}

func (a *scriptedAgent) memory(step string) string {
	return filepath.Join(a.dir, "memory", strings.ReplaceAll(step, "/", "."))
}

func (a *scriptedAgent) remember(step string) { _ = replaceFile(a.memory(step), "done") }

func (a *scriptedAgent) knows(step string) bool {
	_, err := os.Stat(a.memory(step))
	return !errors.Is(err, fs.ErrNotExist)
}

// replaceFile writes a file atomically.
func replaceFile(path, content string) error {
	next := fmt.Sprintf("%s.%d", path, os.Getpid())
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, []byte(content)) {
		return nil
	}
	if err := os.WriteFile(next, []byte(content), 0o600); err != nil {
		return err
	}
	return os.Rename(next, path)
}
