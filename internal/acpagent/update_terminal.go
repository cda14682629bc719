package acpagent

import (
	"encoding/base64"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/acpagent/schema"
	"github.com/duet-rpc/duet-rpc/internal/visible"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

const (
	// mostPrinted is how much of what a program prints is told, in bytes: its end.
	mostPrinted = 32 << 10
	// printedEvery is how often it is told, at most: each time all of it.
	printedEvery = 500 * time.Millisecond
)

// A terminal is what a program of an agent has printed.
type terminal struct {
	printed []byte
	cut     bool
	told    time.Time
	exit    *schema.ExitStatus // of version 2
}

// text is the output as it can be shown.
func (p *terminal) text() string {
	if p == nil {
		return ""
	}
	text := strings.ToValidUTF8(string(p.printed), "\uFFFD")
	if p.cut {
		text = "…" + text
	}
	return text
}

// output takes what a program has printed, and is what is told of its tool call: at
// times, since all of it is told again.
func (t *translator) output(d wire.EventData, at time.Time) []any {
	text := []byte(d.Data)
	if d.Encoding == "base64" {
		text, _ = base64.StdEncoding.DecodeString(d.Data) // what is no base64 was not printed
	}
	if t.listed[d.TerminalID] {
		return []any{schema.TerminalChunk{Kind: schema.KindTerminalChunk, TerminalID: d.TerminalID, Data: text}}
	}
	p := t.terminal(d.TerminalID)
	if call := t.callOf(d.TerminalID); t.ShowsTerminals && call != "" && t.tools[call].shown {
		return []any{terminalUpdate(call, "terminal_output", map[string]any{"terminal_id": d.TerminalID, "data": strings.ToValidUTF8(string(text), "\uFFFD")})}
	}
	p.printed = append(p.printed, text...)
	if over := len(p.printed) - mostPrinted; over > 0 {
		p.printed, p.cut = append([]byte(nil), p.printed[over:]...), true
	}
	if t.Version2 || at.Sub(p.told) < printedEvery {
		return nil
	}
	p.told = at
	return t.terminalUpdate(d.TerminalID)
}

// terminal is what a program has printed so far.
func (t *translator) terminal(id string) *terminal {
	if t.terminals == nil {
		t.terminals = make(map[string]*terminal)
	}
	p := t.terminals[id]
	if p == nil {
		p = &terminal{}
		t.terminals[id] = p
	}
	return p
}

// exited tells what is left of a program's output.
func (t *translator) exited(d wire.EventData) []any {
	if t.Version2 {
		status := &schema.ExitStatus{Signal: d.Signal}
		if d.Signal == "" {
			status.ExitCode = &d.ExitCode
		}
		if !t.listed[d.TerminalID] {
			t.terminal(d.TerminalID).exit = status
			return nil
		}
		return []any{schema.TerminalUpdate{Kind: schema.KindTerminal, TerminalID: d.TerminalID, ExitStatus: status}}
	}
	if call := t.callOf(d.TerminalID); t.ShowsTerminals && call != "" && t.tools[call].shown {
		return []any{terminalUpdate(call, "terminal_exit", map[string]any{"terminal_id": d.TerminalID, "exit_code": d.ExitCode, "signal": nil})}
	}
	if t.terminals[d.TerminalID] == nil {
		return nil
	}
	return t.terminalUpdate(d.TerminalID)
}

// list is the update that begins a terminal for a client of version 2, with its output so
// far.
func (t *translator) list(id, command string) schema.TerminalUpdate {
	if t.listed == nil {
		t.listed = make(map[string]bool)
	}
	u := schema.TerminalUpdate{Kind: schema.KindTerminal, TerminalID: id, Command: command}
	if p := t.terminals[id]; p != nil && !t.listed[id] {
		u.ExitStatus = p.exit
		if len(p.printed) > 0 {
			u.Output = &schema.TerminalOutput{Data: p.printed}
		}
	}
	t.listed[id] = true
	return u
}

// callOf is the tool call that a terminal is of, or "".
func (t *translator) callOf(terminal string) string {
	for call, known := range t.tools {
		if known.terminal == terminal {
			return call
		}
	}
	return ""
}

// terminalUpdate tells a client that shows an agent's terminals what happens in one.
func terminalUpdate(call, what string, data map[string]any) schema.ToolCall {
	return schema.ToolCall{Kind: schema.KindToolUpdate, ToolCallID: call, Meta: map[string]any{what: data}}
}

// show adds to an update that a tool call has a terminal, which the client is to show,
// with what was printed before.
func (t *translator) show(u *schema.ToolCall, known *tool) {
	known.shown = true
	if u.Meta == nil {
		u.Meta = make(map[string]any)
	}
	u.Meta["terminal_info"] = map[string]any{"terminal_id": known.terminal}
	if text := t.terminals[known.terminal].text(); text != "" {
		u.Meta["terminal_output"] = map[string]any{"terminal_id": known.terminal, "data": text}
	}
}

// terminalUpdate tells the output of a terminal with the tool call that it is of.
func (t *translator) terminalUpdate(id string) []any {
	call := t.callOf(id)
	if call == "" {
		return nil
	}
	return []any{schema.ToolCall{Kind: schema.KindToolUpdate, ToolCallID: call, Content: append(diffs(t.tools[call].diffs), t.printed(id)...)}}
}

// printed is the output of a terminal as content.
func (t *translator) printed(id string) []schema.ToolContent {
	text := t.terminals[id].text()
	if id == "" || text == "" {
		return nil
	}
	return []schema.ToolContent{textContent(fencedText(text))}
}

// fencedText is a text as Markdown that shows it as it is.
func fencedText(text string) string {
	fence := visible.Fence(text)
	return fence + "console\n" + strings.TrimRight(text, "\n") + "\n" + fence
}
