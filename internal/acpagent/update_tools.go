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
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/internal/visible"
)

// toolIDs make the ids of tool calls unique for a client, because agents may reuse an id in
// another turn.
type toolIDs map[string]string // the agent's id to the first hub session that used it

// of returns the client's id of a session's tool call.
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
	shown    bool // the client shows its terminal
	ended    bool
}

// A call is the data of a tool call in an event or an item.
type call struct {
	turn, id, name, title, kind, status string
	parent                              string
	input                               json.RawMessage
	data                                protocol.ToolDetails
	result                              string
	refusal                             string
	ended                               bool
	live                                bool // it is live, not replayed
}

// toolCall returns the updates for a tool call that begins, changes or ends.
func (t *translator) toolCall(c call) (updates []any) {
	c.id, c.parent = t.callID(c.turn, c.id), t.parentID(c.turn, c.parent)
	known := t.tools[c.id]
	u := acp.ToolCall{
		Kind: acp.KindToolUpdate, ToolCallID: c.id, Name: c.name, Title: c.title, ToolKind: toolKind(c.kind), Status: t.status(c.status),
		RawInput: object(c.input), Meta: metaOf(members(c.data.Meta), c.parent),
	}
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
	t.noteCall(c.id)
	if meta := members(c.data.Meta); len(meta) > 0 {
		known.meta = meta
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
	case t.Client.HasTerminals():
		known.shown = true
		updates = append(updates, t.list(known.terminal, command(c.input)))
	case t.Client.Can.Meta.TerminalOutput:
		t.show(&u, known)
	}
	if known.shown {
		content = append(content, acp.ToolContent{Type: "terminal", TerminalID: known.terminal})
	} else {
		content = append(content, t.printed(known.terminal)...)
	}
	if c.result != "" && !known.shown && (known.terminal == "" || !strings.Contains(
		t.terminals[known.terminal].text(), strings.TrimSpace(c.result),
	)) {
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

// callID returns the client's id of a session's tool call. It notes that the agent's id now
// refers to this call.
func (t *translator) callID(session, id string) string {
	clients := t.ids.of(session, id)
	if t.Client.HasStates() {
		if t.latest == nil {
			t.latest = make(map[string]string)
		}
		t.latest[id] = clients
	}
	return clients
}

// noteCall notes that a client with states knows a tool call, also in later turns.
func (t *translator) noteCall(id string) {
	if !t.Client.HasStates() {
		return
	}
	if t.calls == nil {
		t.calls = make(map[string]bool)
	}
	t.calls[id] = true
}

// command returns the command in a tool's input, or "".
func command(input json.RawMessage) string {
	var in struct {
		Command string `json:"command"`
	}
	_ = json.Unmarshal(input, &in) // fails for other tools and other forms
	return in.Command
}

// Background lists an agent's background work for a client with states: updates for the
// terminals and tool calls that the client does not know, and one item for each task.
func (t *translator) Background(tasks []domain.BackgroundTask) (updates, items []any) {
	items = []any{} // never nil, which means not reported
	for _, b := range tasks {
		item := acp.BackgroundWork{Type: b.Kind}
		switch b.Kind {
		case domain.BackgroundTerminal:
			item.TerminalID = b.ID
			if !t.listed[b.ID] {
				updates = append(updates, t.list(b.ID, b.Title))
			}
			if t.beginsToStop(b.ID, b.Stoppable) {
				updates = append(updates,
					acp.TerminalUpdate{Kind: acp.KindTerminal, TerminalID: b.ID, Capabilities: &acp.WorkCapabilities{Cancel: &acp.Empty{}}})
			}
		case domain.BackgroundToolCall:
			item.ToolCallID = cmp.Or(t.latest[b.ID], b.ID)
			if !t.calls[item.ToolCallID] {
				updates = append(updates,
					acp.ToolCall{Kind: acp.KindToolUpdate, ToolCallID: item.ToolCallID, Title: b.Title, Status: acp.ToolInProgress})
				t.noteCall(item.ToolCallID)
			}
			if t.beginsToStop(item.ToolCallID, b.Stoppable) {
				updates = append(updates,
					acp.ToolCall{Kind: acp.KindToolUpdate, ToolCallID: item.ToolCallID, Capabilities: &acp.WorkCapabilities{Cancel: &acp.Empty{}}})
			}
		default:
			item.Type, item.ProcessID, item.Title = acp.WorkProcess, b.ID, b.Title
		}
		items = append(items, item)
	}
	return updates, items
}

// beginsToStop reports whether a task has become cancellable since the last report to the client.
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

// BackgroundTask returns the hub's id of a background task, by the client's id of its terminal or
// tool call; "" if there is none.
func (t *translator) BackgroundTask(tasks []domain.BackgroundTask, id string) string {
	for _, b := range tasks {
		if b.Kind == domain.BackgroundTerminal && b.ID == id || b.Kind == domain.BackgroundToolCall && cmp.Or(t.latest[b.ID], b.ID) == id {
			return b.ID
		}
	}
	return ""
}

// Question returns the tool call of a question, with its diffs.
func (t *translator) Question(a hubclient.Approval) acp.ToolCall {
	u := acp.ToolCall{ToolCallID: cmp.Or(
		a.ToolUseID, a.ApprovalID,
	), Name: a.ToolName, ToolKind: toolKind(a.ToolKind), Status: acp.ToolPending, RawInput: object(a.ToolInput)}
	u.ToolCallID = t.callID(a.TurnUUID, u.ToolCallID)
	if !t.calls[u.ToolCallID] {
		u.Title = cmp.Or(a.Title, a.Subject, a.ToolName, "a question")
	}
	if known := t.tools[u.ToolCallID]; known != nil {
		u.Meta = known.meta
	}
	if a.ToolUseID != "" {
		t.noteCall(u.ToolCallID)
	}
	content, texts := diffs(a.Diffs), []string{a.Plan, a.Details, a.Reopened}
	if t.Client.HasStates() {
		texts = texts[:1] // the question contains the others
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

// toolKind returns a kind of the protocol, or "".
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
		if t.Client.HasStates() {
			return s
		}
	case acp.ToolPending, acp.ToolInProgress, acp.ToolCompleted, acp.ToolFailed:
		return s
	}
	return ""
}

// object returns valid JSON other than null, or nil.
func object(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || string(raw) == "null" || !json.Valid(raw) {
		return nil
	}
	return raw
}

// parentID returns the client's id of the parent tool call of an item; "" without one.
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

// metaOf returns the _meta of a tool call: the agent's, merged with Duet's.
func metaOf(agents map[string]any, parentID string) map[string]any {
	if len(agents) == 0 {
		return parent(parentID)
	}
	all := maps.Clone(agents)
	maps.Copy(all, parent(parentID))
	return all
}

// parent returns the _meta that names the parent tool call, of a sub-agent.
func parent(id string) map[string]any {
	if id == "" {
		return nil
	}
	return map[string]any{"duet": map[string]any{"parentToolCallId": id}}
}

const (
	// mostPrinted limits the output that is sent of a program, in bytes: its end.
	mostPrinted = 32 << 10
	// printedEvery is the minimum time between two updates, each of which repeats the whole
	// output.
	printedEvery = 500 * time.Millisecond
)

// A terminal is the output of an agent's program.
type terminal struct {
	printed []byte
	cut     bool
	sent    time.Time
	exit    *acp.ExitStatus // for a client that shows terminals
}

// text returns the output as displayable text.
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

// output stores output of a program, and returns the update of its tool call. It limits the rate,
// since each update repeats the whole output.
func (t *translator) output(d *protocol.TerminalOutputEvent, at time.Time) []any {
	text := []byte(d.Data)
	if d.Encoding == "base64" {
		text, _ = base64.StdEncoding.DecodeString(d.Data) // invalid base64 counts as no output
	}
	if t.listed[d.TerminalID] {
		return []any{acp.TerminalChunk{Kind: acp.KindTerminalChunk, TerminalID: d.TerminalID, Data: text}}
	}
	p := t.terminal(d.TerminalID)
	if call := t.callOf(d.TerminalID); t.Client.Can.Meta.TerminalOutput && call != "" && t.tools[call].shown {
		return []any{terminalUpdate(call, "terminal_output",
			map[string]any{"terminal_id": d.TerminalID, "data": strings.ToValidUTF8(string(text), "\uFFFD")})}
	}
	p.printed = append(p.printed, text...)
	if over := len(p.printed) - mostPrinted; over > 0 {
		p.printed, p.cut = append([]byte(nil), p.printed[over:]...), true
	}
	if t.Client.HasTerminals() || at.Sub(p.sent) < printedEvery {
		return nil
	}
	p.sent = at
	return t.terminalUpdate(d.TerminalID)
}

// terminal returns the output of a program so far.
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

// exited returns the updates for the rest of a program's output and its end.
func (t *translator) exited(d *protocol.TerminalExitedEvent) []any {
	if t.Client.HasTerminals() {
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
	if call := t.callOf(d.TerminalID); t.Client.Can.Meta.TerminalOutput && call != "" && t.tools[call].shown {
		return []any{terminalUpdate(call, "terminal_exit", map[string]any{"terminal_id": d.TerminalID, "exit_code": d.ExitCode, "signal": nil})}
	}
	if t.terminals[d.TerminalID] == nil {
		return nil
	}
	return t.terminalUpdate(d.TerminalID)
}

// list returns the update that begins a terminal for a client that shows terminals, with its output so
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

// callOf returns the tool call with a terminal, or "".
func (t *translator) callOf(terminal string) string {
	for call, known := range t.tools {
		if known.terminal == terminal {
			return call
		}
	}
	return ""
}

// terminalUpdate returns an update of a terminal for a client that shows an agent's terminals.
func terminalUpdate(call, what string, data map[string]any) acp.ToolCall {
	return acp.ToolCall{Kind: acp.KindToolUpdate, ToolCallID: call, Meta: map[string]any{what: data}}
}

// show adds to an update that the client must show the call's terminal, with its earlier output.
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

// terminalUpdate returns the update of a terminal's tool call with the terminal's output.
func (t *translator) terminalUpdate(id string) []any {
	call := t.callOf(id)
	if call == "" {
		return nil
	}
	return []any{acp.ToolCall{Kind: acp.KindToolUpdate, ToolCallID: call, Content: append(diffs(t.tools[call].diffs), t.printed(id)...)}}
}

// printed returns the output of a terminal as content.
func (t *translator) printed(id string) []acp.ToolContent {
	text := t.terminals[id].text()
	if id == "" || text == "" {
		return nil
	}
	return []acp.ToolContent{textContent(fencedText(text))}
}

// fencedText returns a text as Markdown that shows it unchanged.
func fencedText(text string) string {
	fence := visible.Fence(text)
	return fence + "console\n" + strings.TrimRight(text, "\n") + "\n" + fence
}
