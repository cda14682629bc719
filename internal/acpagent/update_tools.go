package acpagent

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"maps"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/visible"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

// toolIDs make the ids of tool calls such that a client has each once: agents use one
// again in another turn.
type toolIDs map[string]string // the agent's id: the session of the hub that had it first

// of is the id of a tool call of a session, as the client has it.
func (ids *toolIDs) of(session, id string) string {
	first, known := (*ids)[id]
	if !known {
		if *ids == nil {
			*ids = make(toolIDs)
		}
		(*ids)[id] = session
	}
	if !known || first == session {
		return id
	}
	return id + "~" + session
}

// A tool is a tool call that has begun.
type tool struct {
	diffs    []domain.Diff
	meta     map[string]any // the agent's
	terminal string
	shown    bool // the client shows the terminal
	ended    bool
}

// A call is what is known of a tool call, from an event or an entry.
type call struct {
	session, id, name, title, kind, status string
	parent                                 string
	input                                  json.RawMessage
	data                                   wire.ToolData
	result                                 string
	refusal                                string
	ended                                  bool
	live                                   bool // it happens now
}

// toolCall is the updates for a tool call that begins, changes or ends.
func (t *translator) toolCall(c call) (updates []any) {
	c.id, c.parent = t.callID(c.session, c.id), t.parentID(c.session, c.parent)
	known := t.tools[c.id]
	u := acp.ToolCall{Kind: acp.KindToolUpdate, ToolCallID: c.id, Name: c.name, Title: c.title, ToolKind: toolKind(c.kind), Status: t.status(c.status), RawInput: object(c.input), Meta: metaOf(c.data.Meta, c.parent)}
	if known == nil {
		known = &tool{}
		if t.tools == nil {
			t.tools = make(map[string]*tool)
		}
		t.tools[c.id] = known
		u.Kind = acp.KindToolCall
		if u.Title == "" && !t.calls[c.id] {
			u.Title = cmp.Or(c.name, c.id)
		}
	}
	t.tellsCall(c.id)
	if len(c.data.Meta) > 0 {
		known.meta = c.data.Meta
	}
	if len(c.data.Diffs) > 0 {
		known.diffs = c.data.Diffs
	}
	if c.data.Terminal != "" {
		known.terminal = c.data.Terminal
	}
	for _, path := range c.data.Paths {
		u.Locations = append(u.Locations, acp.Location{Path: path})
	}
	content := diffs(known.diffs)
	switch isShown := known.shown || !c.live || known.terminal == ""; {
	case isShown:
	case t.Version2:
		known.shown = true
		updates = append(updates, t.list(known.terminal, command(c.input)))
	case t.ShowsTerminals:
		t.show(&u, known)
	}
	if known.shown {
		content = append(content, acp.ToolContent{Type: "terminal", TerminalID: known.terminal})
	} else {
		content = append(content, t.printed(known.terminal)...)
	}
	if c.result != "" && !known.shown && (known.terminal == "" || !strings.Contains(t.terminals[known.terminal].text(), strings.TrimSpace(c.result))) {
		content = append(content, textContent(c.result))
	}
	if c.refusal != "" && !strings.Contains(c.result, c.refusal) {
		content = append(content, textContent(c.refusal))
	}
	for _, a := range c.data.Attachments {
		block := t.block(a)
		content = append(content, acp.ToolContent{Type: "content", Content: &block})
	}
	if len(content) > 0 {
		u.Content = content
	}
	known.ended = c.ended
	if c.ended {
		delete(t.terminals, known.terminal)
		known.diffs = nil
		if c.result != "" {
			u.RawOutput, _ = json.Marshal(c.result) // a text
		}
	}
	return append(updates, u)
}

// callID is the id of a tool call of a session as the client has it. It notes that the
// agent's id now means this call.
func (t *translator) callID(session, id string) string {
	clients := t.ids.of(session, id)
	if t.Version2 {
		if t.latest == nil {
			t.latest = make(map[string]string)
		}
		t.latest[id] = clients
	}
	return clients
}

// tellsCall notes that a client of version 2 knows a tool call. It does so in later turns,
// too.
func (t *translator) tellsCall(id string) {
	if !t.Version2 {
		return
	}
	if t.calls == nil {
		t.calls = make(map[string]bool)
	}
	t.calls[id] = true
}

// command is the command that a tool's input has, or "".
func command(input json.RawMessage) string {
	var in struct {
		Command string `json:"command"`
	}
	_ = json.Unmarshal(input, &in) // other tools, and agents that write it otherwise
	return in.Command
}

// Background lists an agent's background work for a client of version 2: updates for the
// terminals and tool calls that the client does not know, and one item for each task.
func (t *translator) Background(tasks []domain.BackgroundTask) (updates, items []any) {
	items = []any{} // never nil, which version 2 reads as not reported
	for _, b := range tasks {
		item := acp.BackgroundWork{Type: b.Kind}
		switch b.Kind {
		case domain.BackgroundTerminal:
			item.TerminalID = b.ID
			if !t.listed[b.ID] {
				updates = append(updates, t.list(b.ID, b.Title))
			}
			if t.beginsToStop(b.ID, b.Stoppable) {
				updates = append(updates, acp.TerminalUpdate{Kind: acp.KindTerminal, TerminalID: b.ID, Capabilities: &acp.WorkCapabilities{Cancel: &acp.Empty{}}})
			}
		case domain.BackgroundToolCall:
			item.ToolCallID = cmp.Or(t.latest[b.ID], b.ID)
			if !t.calls[item.ToolCallID] {
				updates = append(updates, acp.ToolCall{Kind: acp.KindToolUpdate, ToolCallID: item.ToolCallID, Title: b.Title, Status: acp.ToolInProgress})
				t.tellsCall(item.ToolCallID)
			}
			if t.beginsToStop(item.ToolCallID, b.Stoppable) {
				updates = append(updates, acp.ToolCall{Kind: acp.KindToolUpdate, ToolCallID: item.ToolCallID, Capabilities: &acp.WorkCapabilities{Cancel: &acp.Empty{}}})
			}
		default:
			item.Type, item.ProcessID, item.Title = acp.WorkProcess, b.ID, b.Title
		}
		items = append(items, item)
	}
	return updates, items
}

// beginsToStop reports whether a task can be stopped alone, and the client does not know that.
func (t *translator) beginsToStop(id string, isStoppable bool) bool {
	if !isStoppable || t.stoppable[id] {
		return false
	}
	if t.stoppable == nil {
		t.stoppable = make(map[string]bool)
	}
	t.stoppable[id] = true
	return true
}

// BackgroundTask returns the hub's id of a task of a session's background work, by the id of its
// terminal or tool call at the client; "" if there is none.
func (t *translator) BackgroundTask(tasks []domain.BackgroundTask, id string) string {
	for _, b := range tasks {
		if b.Kind == domain.BackgroundTerminal && b.ID == id || b.Kind == domain.BackgroundToolCall && cmp.Or(t.latest[b.ID], b.ID) == id {
			return b.ID
		}
	}
	return ""
}

// Question is the tool call that a question is about, with its diffs.
func (t *translator) Question(a wire.Approval) acp.ToolCall {
	u := acp.ToolCall{ToolCallID: cmp.Or(a.ToolUseID, a.ApprovalID), Name: a.ToolName, ToolKind: toolKind(a.ToolKind), Status: acp.ToolPending, RawInput: object(a.ToolInput)}
	u.ToolCallID = t.callID(a.SessionID, u.ToolCallID)
	if !t.calls[u.ToolCallID] {
		u.Title = cmp.Or(a.Title, a.Subject, a.ToolName, "a question")
	}
	if known := t.tools[u.ToolCallID]; known != nil {
		u.Meta = known.meta
	}
	if a.ToolUseID != "" {
		t.tellsCall(u.ToolCallID)
	}
	content, texts := diffs(a.Diffs), []string{a.Plan, a.Details, a.Reopened}
	if t.Version2 {
		texts = texts[:1] // the question has the others
	}
	for _, text := range texts {
		if text != "" {
			content = append(content, textContent(text))
		}
	}
	if len(content) > 0 {
		u.Content = content
	}
	for _, path := range a.Paths {
		u.Locations = append(u.Locations, acp.Location{Path: path})
	}
	return u
}

// toolKind is a kind that the protocol has, or none.
func toolKind(kind string) string {
	switch kind {
	case "", "read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other":
		return kind
	}
	return "other"
}

func (t *translator) status(s string) string {
	switch s {
	case acp.ToolPaused, acp.ToolCancelled:
		if t.Version2 {
			return s
		}
	case acp.ToolPending, acp.ToolInProgress, acp.ToolCompleted, acp.ToolFailed:
		return s
	}
	return ""
}

// object is JSON that is there.
func object(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || string(raw) == "null" || !json.Valid(raw) {
		return nil
	}
	return raw
}

// parentID is the id of the tool call that something of a session is a part of; "": of
// none.
func (t *translator) parentID(session, id string) string {
	if id == "" {
		return ""
	}
	return t.ids.of(session, id)
}

// members returns the members of a JSON object; nil for anything else.
func members(raw json.RawMessage) (m map[string]any) {
	_ = json.Unmarshal(raw, &m)
	return m
}

// metaOf is the _meta of a tool call: what the agent has said there, and what Duet says.
func metaOf(agents map[string]any, parentID string) map[string]any {
	if len(agents) == 0 {
		return parent(parentID)
	}
	all := maps.Clone(agents)
	maps.Copy(all, parent(parentID))
	return all
}

// parent says of which tool call something is a part: of a sub-agent's.
func parent(id string) map[string]any {
	if id == "" {
		return nil
	}
	return map[string]any{"duet": map[string]any{"parentToolCallId": id}}
}

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
	exit    *acp.ExitStatus // of version 2
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
		return []any{acp.TerminalChunk{Kind: acp.KindTerminalChunk, TerminalID: d.TerminalID, Data: text}}
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
		status := &acp.ExitStatus{Signal: d.Signal}
		if d.Signal == "" {
			status.ExitCode = &d.ExitCode
		}
		if !t.listed[d.TerminalID] {
			t.terminal(d.TerminalID).exit = status
			return nil
		}
		return []any{acp.TerminalUpdate{Kind: acp.KindTerminal, TerminalID: d.TerminalID, ExitStatus: status}}
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
func (t *translator) list(id, command string) acp.TerminalUpdate {
	if t.listed == nil {
		t.listed = make(map[string]bool)
	}
	u := acp.TerminalUpdate{Kind: acp.KindTerminal, TerminalID: id, Command: command}
	if p := t.terminals[id]; p != nil && !t.listed[id] {
		u.ExitStatus = p.exit
		if len(p.printed) > 0 {
			u.Output = &acp.TerminalContent{Data: p.printed}
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
func terminalUpdate(call, what string, data map[string]any) acp.ToolCall {
	return acp.ToolCall{Kind: acp.KindToolUpdate, ToolCallID: call, Meta: map[string]any{what: data}}
}

// show adds to an update that a tool call has a terminal, which the client is to show,
// with what was printed before.
func (t *translator) show(u *acp.ToolCall, known *tool) {
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
	return []any{acp.ToolCall{Kind: acp.KindToolUpdate, ToolCallID: call, Content: append(diffs(t.tools[call].diffs), t.printed(id)...)}}
}

// printed is the output of a terminal as content.
func (t *translator) printed(id string) []acp.ToolContent {
	text := t.terminals[id].text()
	if id == "" || text == "" {
		return nil
	}
	return []acp.ToolContent{textContent(fencedText(text))}
}

// fencedText is a text as Markdown that shows it as it is.
func fencedText(text string) string {
	fence := visible.Fence(text)
	return fence + "console\n" + strings.TrimRight(text, "\n") + "\n" + fence
}
