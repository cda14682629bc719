package acp

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor/process"
	"github.com/duet-rpc/duet-rpc/internal/rawjson"
)

const (
	// maxOwnTerminals limits the remembered terminals of an agent.
	maxOwnTerminals = 1000
	// maxOwnOutput is how many bytes of a terminal's output are kept for the result of its tool
	// call.
	maxOwnOutput = 256 << 10
)

// ownTerminals are the terminals that an agent runs itself and shows with
// terminal_update and terminal_output_chunk. The hub shows each as a terminal that can be
// watched. The zero value has none.
type ownTerminals struct {
	mu      sync.Mutex // guards the fields below
	byID    map[string]*ownTerminal
	delayed []func(*Driver) // reports delayed until another update has been reported; see release
}

type ownTerminal struct {
	id        string // the hub's id
	task      string
	command   string
	cwd       string
	output    []byte // its end
	cut       bool   // output lacks its beginning
	started   bool   // the hub knows it
	ended     bool
	cancels   bool // the agent stops it when asked
	isDelayed bool // reports about it are delayed
	text      process.TextDecoder
}

// terminalUpdate has the known members of terminal_update and terminal_output_chunk. An absent
// member means no change.
type terminalUpdate struct {
	TerminalID string
	Command    string
	CWD        string
	Output     *struct{ Data []byte } // base64
	Data       []byte                 // base64, of terminal_output_chunk
	ExitStatus *struct {
		ExitCode *int
		Signal   string
	}
	Capabilities json.RawMessage // null: the capabilities were removed
}

// isTerminal reports whether a kind of update is about a terminal that the agent runs itself.
func isTerminal(kind string) bool {
	return kind == "terminal_update" || kind == "terminal_output_chunk"
}

// update handles an update of a terminal. task is the current task, and d reports to the hub
// unless it is nil. It returns false if the update cannot be read.
func (o *ownTerminals) update(raw []byte, task string, d *Driver) bool {
	var u terminalUpdate
	if json.Unmarshal(raw, &u) != nil || u.TerminalID == "" {
		return false
	}
	o.mu.Lock()
	t := o.byID[u.TerminalID]
	if t == nil {
		if o.byID == nil || len(o.byID) >= maxOwnTerminals {
			o.byID = make(map[string]*ownTerminal)
		}
		t = &ownTerminal{id: process.RandomID("term_"), task: task}
		o.byID[u.TerminalID] = t
	}
	if u.Command != "" {
		t.command = u.Command
	}
	if u.CWD != "" {
		t.cwd = u.CWD
	}
	if u.Capabilities != nil {
		t.cancels = canCancel(u.Capabilities)
	}
	news, replaces := u.Data, false
	if u.Output != nil {
		news, replaces = t.since(u.Output.Data)
	}
	t.keep(news)
	begins := !t.started && (t.command != "" || len(news) > 0 || u.ExitStatus != nil)
	t.started = t.started || begins
	ends := u.ExitStatus != nil && !t.ended
	t.ended = t.ended || ends
	o.mu.Unlock()
	if d == nil {
		return true
	}
	send := func(report func(*Driver)) { report(d) }
	if begins || o.isDelayed(t) {
		send = func(report func(*Driver)) { o.delay(t, report) }
	}
	if begins {
		argv := wordsOf(bounded(t.command))
		p := catalog.TerminalStartedParams{TerminalID: t.id, TaskID: t.task, Program: argv[0], Args: argv[1:], CWD: t.cwd}
		send(func(d *Driver) { _ = d.hub.TerminalStarted(d.ctx, p) })
	}
	text := t.text.Decode(news)
	if replaces {
		text = clearScreen + text
	}
	if ends {
		text += t.text.Flush()
	}
	if text != "" {
		p := catalog.TerminalOutputParams{TerminalID: t.id, TaskID: t.task, Data: text, Encoding: catalog.EncodingUTF8}
		send(func(d *Driver) { _ = d.hub.TerminalOutput(d.ctx, p) })
	}
	if ends {
		e := catalog.TerminalExitParams{TerminalID: t.id, TaskID: t.task, Signal: u.ExitStatus.Signal}
		if u.ExitStatus.ExitCode != nil {
			e.ExitCode = *u.ExitStatus.ExitCode
		}
		send(func(d *Driver) { _ = d.hub.TerminalExit(d.ctx, e) })
	}
	return true
}

// canCancel reports whether the capabilities of a terminal or a tool call say that the agent
// stops it when asked.
func canCancel(capabilities json.RawMessage) bool {
	return acp.Has(capabilities) && acp.Has(rawjson.Member(capabilities, "cancel"))
}

// canCancel reports whether the agent stops a terminal when asked.
func (o *ownTerminals) canCancel(id string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	t := o.byID[id]
	return t != nil && t.cancels && !t.ended
}

// maxDelayed limits the delayed reports.
const maxDelayed = 1000

// delay delays a report about a terminal that has begun. Agents announce a terminal before the
// tool call that runs in it, and the call must be reported first.
func (o *ownTerminals) delay(t *ownTerminal, report func(*Driver)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	t.isDelayed = true
	o.delayed = append(o.delayed, report)
}

func (o *ownTerminals) isDelayed(t *ownTerminal) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return t.isDelayed && len(o.delayed) < maxDelayed
}

// release makes the delayed reports.
func (o *ownTerminals) release(d *Driver) {
	o.mu.Lock()
	delayed := o.delayed
	o.delayed = nil
	if len(delayed) > 0 {
		for _, t := range o.byID {
			t.isDelayed = false
		}
	}
	o.mu.Unlock()
	for _, report := range delayed {
		report(d)
	}
}

// end reports the end of the terminals that still run when the agent ends.
func (o *ownTerminals) end(d *Driver) {
	o.release(d)
	o.mu.Lock()
	var running []*ownTerminal
	for _, t := range o.byID {
		if t.started && !t.ended {
			t.ended = true
			running = append(running, t)
		}
	}
	o.mu.Unlock()
	for _, t := range running {
		_ = d.hub.TerminalExit(d.ctx, catalog.TerminalExitParams{TerminalID: t.id, TaskID: t.task, Signal: "SIGHUP"})
	}
}

// wordsOf returns the program that a command line runs, with its arguments. It is a shell unless
// the line consists of plain words.
func wordsOf(line string) []string {
	words := strings.Fields(line)
	if len(words) == 0 || strings.ContainsAny(line, "\"'`\\$|&;<>()*?[]{}~#!=\n") {
		return []string{"sh", "-c", line}
	}
	return words
}

// clearScreen precedes output that replaces earlier output.
const clearScreen = "\x1bc"

// since returns the part of a snapshot that is new. replaces means that the snapshot replaces
// earlier output as a whole.
func (t *ownTerminal) since(snapshot []byte) (news []byte, replaces bool) {
	if !t.cut {
		if more, isLonger := bytes.CutPrefix(snapshot, t.output); isLonger {
			return more, false
		}
	}
	t.output, t.cut = nil, false
	return snapshot, true
}

// keep keeps the end of the output.
func (t *ownTerminal) keep(p []byte) {
	t.output = append(t.output, p...)
	if over := len(t.output) - maxOwnOutput; over > maxOwnOutput {
		t.output, t.cut = bytes.Clone(t.output[over:]), true
	}
}

// hubID returns the hub's id of a terminal. For a terminal that the agent does not run itself it
// returns id.
func (o *ownTerminals) hubID(id string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if t := o.byID[id]; t != nil {
		return t.id
	}
	return id
}

// printed returns the output of a terminal by the hub's id. Of long output it returns the end.
func (o *ownTerminals) printed(hubID string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, t := range o.byID {
		if t.id == hubID {
			text := bytes.ToValidUTF8(t.output[max(0, len(t.output)-maxOwnOutput):], []byte("\uFFFD"))
			if t.cut {
				return "…" + string(text)
			}
			return string(text)
		}
	}
	return ""
}

// title returns the command of a terminal by the agent's id, or "".
func (o *ownTerminals) title(id string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if t := o.byID[id]; t != nil {
		return bounded(t.command)
	}
	return ""
}
