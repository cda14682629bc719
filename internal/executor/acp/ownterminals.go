package acp

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor/process"
)

const (
	// maxOwnTerminals limits the terminals of an agent that are remembered.
	maxOwnTerminals = 1000
	// maxOwnOutput is how many bytes of the output of one are kept for the result of its tool call.
	maxOwnOutput = 256 << 10
)

// ownTerminals are the terminals that an agent of version 2 runs itself and shows with
// terminal_update and terminal_output_chunk. The hub shows each as a terminal that can be
// watched. The zero value has none.
type ownTerminals struct {
	mu   sync.Mutex // guards the fields below
	byID map[string]*ownTerminal
	held []func(*Driver) // reports, until another update has been reported; see release
}

type ownTerminal struct {
	id      string // of the hub
	task    string
	command string
	cwd     string
	output  []byte // the end of it
	cut     bool   // output lacks its beginning
	started bool   // the hub knows it
	ended   bool
	cancels bool // the agent stops it when asked
	isHeld  bool // reports about it are held
	text    process.TextDecoder
}

// terminalUpdate has what is known of terminal_update and terminal_output_chunk. An absent
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
	Capabilities json.RawMessage // null: none any more
}

// isTerminal reports whether a kind of update is about a terminal of the agent's own.
func isTerminal(kind string) bool {
	return kind == "terminal_update" || kind == "terminal_output_chunk"
}

// update takes an update of a terminal; task is the one in which it comes, and d tells
// the hub, unless it is nil. It returns false if the update cannot be read.
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
	tell := func(report func(*Driver)) { report(d) }
	if begins || o.isHeld(t) {
		tell = func(report func(*Driver)) { o.hold(t, report) }
	}
	if begins {
		argv := wordsOf(bounded(t.command))
		p := catalog.TerminalStartedParams{TerminalID: t.id, TaskID: t.task, Program: argv[0], Args: argv[1:], CWD: t.cwd}
		tell(func(d *Driver) { _ = d.hub.TerminalStarted(d.ctx, p) })
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
		tell(func(d *Driver) { _ = d.hub.TerminalOutput(d.ctx, p) })
	}
	if ends {
		e := catalog.TerminalExitParams{TerminalID: t.id, TaskID: t.task, Signal: u.ExitStatus.Signal}
		if u.ExitStatus.ExitCode != nil {
			e.ExitCode = *u.ExitStatus.ExitCode
		}
		tell(func(d *Driver) { _ = d.hub.TerminalExit(d.ctx, e) })
	}
	return true
}

// canCancel reports whether the capabilities of a terminal or a tool call say that the agent
// stops it when asked.
func canCancel(capabilities json.RawMessage) bool {
	return acp.Has(capabilities) && acp.Has(frame.Member(capabilities, "cancel"))
}

// canCancel reports whether the agent stops a terminal when asked.
func (o *ownTerminals) canCancel(id string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	t := o.byID[id]
	return t != nil && t.cancels && !t.ended
}

// maxHeld limits the reports that are held.
const maxHeld = 1000

// hold keeps a report about a terminal that has begun. Agents announce a terminal before the
// tool call that runs in it, which is to be reported first.
func (o *ownTerminals) hold(t *ownTerminal, report func(*Driver)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	t.isHeld = true
	o.held = append(o.held, report)
}

func (o *ownTerminals) isHeld(t *ownTerminal) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return t.isHeld && len(o.held) < maxHeld
}

// release makes the reports that were held.
func (o *ownTerminals) release(d *Driver) {
	o.mu.Lock()
	held := o.held
	o.held = nil
	if len(held) > 0 {
		for _, t := range o.byID {
			t.isHeld = false
		}
	}
	o.mu.Unlock()
	for _, report := range held {
		report(d)
	}
}

// end reports the end of the terminals that run when the agent ends.
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

// wordsOf is the program that a command line runs, with its arguments: a shell, unless the line
// is words alone.
func wordsOf(line string) []string {
	words := strings.Fields(line)
	if len(words) == 0 || strings.ContainsAny(line, "\"'`\\$|&;<>()*?[]{}~#!=\n") {
		return []string{"sh", "-c", line}
	}
	return words
}

// clearScreen precedes output that replaces what was printed.
const clearScreen = "\x1bc"

// since is what a snapshot of the output adds to what was printed, or all of it if it replaces
// that.
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

// hubID is the hub's id of a terminal, or id itself for one that is not the agent's own.
func (o *ownTerminals) hubID(id string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if t := o.byID[id]; t != nil {
		return t.id
	}
	return id
}

// printed is what a terminal has printed, by the hub's id: its end, if it is long.
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

// title is the command of a terminal by the agent's id, or "".
func (o *ownTerminals) title(id string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if t := o.byID[id]; t != nil {
		return bounded(t.command)
	}
	return ""
}
