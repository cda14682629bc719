package acp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/executor/task"
	"github.com/duet-rpc/duet-rpc/internal/toolinput"
)

const (
	// maxToolCalls is how many tool calls of a turn are remembered.
	maxToolCalls = 10_000
	// maxDetails is the most bytes that are remembered of what a tool call shows before it
	// runs. A permission request may show more.
	maxDetails = 64 << 10
	// maxPieces is the most bytes of content that are kept of a tool call while they come in
	// pieces.
	maxPieces = 4 << 20
)

// A toolCall is what is known of a tool call so far.
type toolCall struct {
	named       string // what claude calls the tool in _meta
	said        string // what the agent calls it in the protocol's own member
	title, kind string
	input       json.RawMessage
	paths       []string
	diffs       []domain.Diff
	text        string            // what it shows until it runs: of a plan the plan, else what the agent says about the call
	running     bool              // its last status is in_progress
	todo        bool              // it is opencode's todowrite, by its first title: later ones count what is done
	repaired    bool              // what the agent said of it was no UTF-8, so it is not what it runs
	meta        json.RawMessage   // the latest _meta
	terminal    string            // the hub's id of the terminal that it shows
	pieces      []json.RawMessage // content that came in pieces, which replaces nothing
	piecesSize  int               // of pieces, in bytes
}

// name is what the agent calls the tool, or else what tools of its kind are
// called. The title is for people: rules are never held against it.
func (t *toolCall) name() string {
	return cmp.Or(t.ownName(), catalog.ToolOfKind(t.kind))
}

// ownName is the agent's name of the tool, if rules know such names: those of Claude Code
// begin with a capital, those of MCP with mcp__. Another one, such as codex's exec_command,
// stands for a tool of its kind: rules for Bash hold for it.
func (t *toolCall) ownName() string {
	first, _ := utf8.DecodeRuneInString(t.said)
	switch {
	case t.named != "":
		return t.named
	case unicode.IsUpper(first), strings.HasPrefix(t.said, "mcp__"), len(catalog.ToolsOfKind(t.kind)) == 0:
		return t.said
	}
	return ""
}

// asPlan is the call as one that may ask whether a plan is carried out.
func (t *toolCall) asPlan() planCall {
	return planCall{Tool: t.ownName(), Kind: t.kind, Title: t.title, Input: t.input, Text: t.text}
}

// details is what the agent says about the call beside its title and its input: all that is
// known of it where the agent sends no input.
func (t *toolCall) details() string {
	text := strings.TrimSpace(t.text)
	if text == strings.TrimSpace(t.title) {
		return ""
	}
	members, err := toolinput.Members(t.input)
	if err != nil {
		return text
	}
	for _, raw := range members {
		var said string
		if json.Unmarshal(raw, &said) == nil && strings.TrimSpace(said) == text {
			return ""
		}
	}
	return text
}

// merge adds what an update says. Text over maxText bytes is not kept.
func (t *toolCall) merge(u *toolUpdate, call catalog.ToolCall, maxText int) {
	if u.Title != "" {
		t.title = u.Title
	}
	if u.Status != "" {
		t.running = u.Status == "in_progress"
	}
	t.todo = t.todo || strings.EqualFold(u.Title, "todowrite")
	if u.Kind != "" {
		t.kind = u.Kind
	}
	if call.Input != nil && !(toolinput.Empty(call.Input) && t.input != nil) { // it was said before
		t.input = call.Input
	}
	if len(call.Paths) > 0 {
		t.paths = call.Paths
	}
	if len(call.Diffs) > 0 {
		t.diffs = call.Diffs
	}
	if call.Meta != nil {
		t.meta = call.Meta
	}
	if call.Terminal != "" {
		t.terminal = call.Terminal
	}
	if name := strings.TrimSpace(metaString(u.Meta, "claudeCode", "toolName")); name != "" {
		t.named = name
	}
	if name := strings.TrimSpace(u.Name); name != "" {
		t.said = name
	}
	switch started, isPlan := u.hasStarted(), t.asPlan().Asked(); {
	case u.text != "" && (isPlan || !started && len(u.text) <= maxText):
		t.text = u.text
	case !isPlan && (started || u.text != ""): // what it shows once it runs is its result
		t.text = ""
	}
	t.repaired = u.repaired || t.repaired && (call.Input == nil || toolinput.Empty(call.Input))
}

// toolCalls are the tool calls of a turn by the agent's own ids. The zero value
// has none.
type toolCalls struct {
	mu        sync.Mutex
	calls     map[string]*toolCall
	questions map[string][]*openQuestion
	asked     int // counts questions
}

// An openQuestion is a permission request that waits for a decision.
type openQuestion struct {
	id      string // no other question of the turn has it
	request permissionRequest
	known   bool            // the agent had reported the tool call before
	meta    json.RawMessage // the latest _meta of the call before
	changed chan struct{}   // has room for one: the tool call has changed since
	call    toolCall        // as it was asked about, with the updates since; guarded by toolCalls.mu
}

// update adds an update to what is known of a tool call, and to the questions that are
// open about it. It returns all that is known.
func (c *toolCalls) update(u *toolUpdate, call catalog.ToolCall) toolCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.note(u, call)
	if u.Status == "completed" || u.Status == "failed" {
		return known
	}
	for _, q := range c.questions[u.ToolCallID] {
		asked := *u
		if u.hasStarted() && !q.call.asPlan().Asked() { // its text is a result
			asked.Status, asked.text = "", ""
		}
		q.call.merge(&asked, call, math.MaxInt)
		select {
		case q.changed <- struct{}{}:
		default:
		}
	}
	return known
}

// has reports whether a tool call is one of the turn's.
func (c *toolCalls) has(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[id] != nil
}

// isRunning reports whether a tool call has begun to run and not ended.
func (c *toolCalls) isRunning(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.calls[id]
	return t != nil && t.running
}

// addPiece keeps an item of content that is added to a tool call's. It returns false if there
// is no such call, or no room.
func (c *toolCalls) addPiece(id string, item json.RawMessage) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.calls[id]
	if t == nil || t.piecesSize+len(item) > maxPieces {
		return false
	}
	t.pieces, t.piecesSize = append(t.pieces, item), t.piecesSize+len(item)
	return true
}

// addPieces adds to the last update of a tool call the content that came in pieces, unless it
// has content of its own, which replaces that.
func (c *toolCalls) addPieces(u *toolUpdate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t := c.calls[u.ToolCallID]; t != nil && len(u.Content) == 0 && len(t.pieces) > 0 {
		_ = u.takeContent(t.pieces) // one that cannot be read ends the list
		t.pieces, t.piecesSize = nil, 0
	}
}

// titles are those of the turn's tool calls, by id.
func (c *toolCalls) titles() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	titles := make(map[string]string, len(c.calls))
	for id, t := range c.calls {
		titles[id] = bounded(cmp.Or(t.title, t.name()))
	}
	return titles
}

// note adds to what is known of a tool call, and returns all of it; mu is held.
func (c *toolCalls) note(u *toolUpdate, call catalog.ToolCall) toolCall {
	t := c.calls[u.ToolCallID]
	if t == nil {
		t = &toolCall{}
		if len(c.calls) < maxToolCalls {
			if c.calls == nil {
				c.calls = make(map[string]*toolCall)
			}
			c.calls[u.ToolCallID] = t
		}
	}
	t.merge(u, call, maxDetails)
	return *t
}

// ask opens the question of a permission request, which close ends, and returns all that
// is known of its tool call.
func (c *toolCalls) ask(p permissionRequest) (*openQuestion, toolCall) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var before json.RawMessage
	earlier := c.calls[p.ToolCallID]
	if earlier != nil {
		before = earlier.meta
	}
	known := c.note(&p.toolUpdate, p.call())
	known.text = cmp.Or(p.text, known.text)
	c.asked++
	q := &openQuestion{id: strconv.Itoa(c.asked), request: p, known: earlier != nil, meta: before, changed: make(chan struct{}, 1), call: known}
	if c.questions == nil {
		c.questions = make(map[string][]*openQuestion)
	}
	c.questions[p.ToolCallID] = append(c.questions[p.ToolCallID], q)
	return q, known
}

func (c *toolCalls) close(q *openQuestion) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := q.request.ToolCallID
	c.questions[id] = slices.DeleteFunc(c.questions[id], func(other *openQuestion) bool { return other == q })
	if len(c.questions[id]) == 0 {
		delete(c.questions, id)
	}
}

// state is the tool call that a question is about, as it is now.
func (c *toolCalls) state(q *openQuestion) toolCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	return q.call
}

// names are the names of tools of which what q asks about may be part: besides
// q's own, those that the agent has given calls of its own, and of others that
// do the same.
func (c *toolCalls) names(q catalog.RequestPermissionParams) []string {
	names := append([]string{q.ToolName}, q.Unasked...)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.calls {
		same := len(q.Paths) == 0
		for _, p := range t.paths {
			same = same || slices.Contains(q.Paths, filepath.Clean(p))
		}
		if t.kind == q.ToolKind && same {
			names = appendNew(names, t.ownName())
		}
	}
	return names
}

// toolUpdate is a tool_call, a tool_call_update, or the toolCall of a
// permission request. Names count as they are spelled: what people are asked
// about is what the agent said, in whichever way that is read.
type toolUpdate struct {
	ToolCallID string
	Name       string // what the agent calls the tool
	Title      string
	Kind       string
	Status     string
	Content    []toolContent
	Locations  []string // paths
	RawInput   json.RawMessage
	RawOutput  json.RawMessage
	Meta       json.RawMessage

	text     string                 // what its content says, "" if there is no text in it
	shown    []catalog.ContentBlock // its content that is no text
	parent   string                 // the tool call of the sub-agent that it comes from, if that has a session of its own
	repaired bool                   // it came as no UTF-8
	strange  bool                   // it has content that nobody knows
}

// toolContent is what a tool call shows.
type toolContent struct {
	Type       string
	Content    json.RawMessage
	Path       string
	OldText    *string
	NewText    string
	TerminalID string
}

// touched is the type of content that names a file and shows nothing of it.
const touched = "touched file"

// UnmarshalJSON implements json.Unmarshaler. A message in which a name stands
// twice, or in two cases, is an error.
func (u *toolUpdate) UnmarshalJSON(raw []byte) error {
	m, err := toolinput.Members(bytes.Clone(raw)) // it is borrowed
	if err != nil {
		return err
	}
	*u = toolUpdate{RawInput: m["rawInput"], RawOutput: m["rawOutput"], Meta: m["_meta"]}
	var content, locations []json.RawMessage
	err = errors.Join(
		toolinput.Take(m, "toolCallId", &u.ToolCallID), toolinput.Take(m, "name", &u.Name), toolinput.Take(m, "title", &u.Title), toolinput.Take(m, "kind", &u.Kind),
		toolinput.Take(m, "status", &u.Status), toolinput.Take(m, "content", &content), toolinput.Take(m, "locations", &locations),
	)
	if err != nil {
		return err
	}
	if u.Status == "cancelled" { // of version 2
		u.Status = "failed"
	}
	for _, item := range locations {
		path := ""
		if m, err = toolinput.Members(item); err == nil {
			err = toolinput.Take(m, "path", &path)
		}
		if err != nil {
			return err
		}
		u.Locations = append(u.Locations, path)
	}
	return u.takeContent(content)
}

// takeContent reads what the tool call shows.
func (u *toolUpdate) takeContent(content []json.RawMessage) error {
	u.Content = make([]toolContent, 0, len(content))
	for _, item := range content {
		m, err := toolinput.Members(item)
		if err != nil {
			return err
		}
		c := toolContent{Content: m["content"]}
		var changes []fileChange
		var patch struct{ Format, Text string }
		err = errors.Join(
			toolinput.Take(m, "type", &c.Type), toolinput.Take(m, "path", &c.Path), toolinput.Take(m, "oldText", &c.OldText),
			toolinput.Take(m, "newText", &c.NewText), toolinput.Take(m, "terminalId", &c.TerminalID),
			toolinput.Take(m, "changes", &changes), toolinput.Take(m, "patch", &patch),
		)
		if err != nil {
			return err
		}
		if changes == nil {
			u.Content = append(u.Content, c)
			continue
		}
		u.Content = append(u.Content, contentOfDiff(changes, patch.Text)...)
	}
	u.readContent()
	return nil
}

// readContent takes apart what the tool call shows.
func (u *toolUpdate) readContent() {
	var texts []string
	for i := range u.Content {
		c := &u.Content[i]
		if c.Type != "content" {
			continue
		}
		if kind, _ := frame.Text(frame.Member(c.Content, "type")); string(kind) == "text" {
			if text, ok := frame.Text(frame.Member(c.Content, "text")); ok {
				texts = append(texts, string(text))
			}
			continue
		}
		var known bool
		u.shown, known = addBlock(u.shown, c.Content)
		u.strange = u.strange || !known
	}
	u.text = strings.Join(texts, "\n")
}

// call is the update in the hub's terms.
func (u *toolUpdate) call() catalog.ToolCall {
	c := catalog.ToolCall{
		ToolID: u.ToolCallID, Title: u.Title, Kind: u.Kind, Status: u.Status,
		Input: present(u.RawInput), ParentID: cmp.Or(u.parent, parentOf(u.Meta)), Content: u.shown,
	}
	c.Meta = boundedMeta(u.Meta)
	for _, l := range u.Locations {
		c.Paths = appendNew(c.Paths, l)
	}
	for i := range u.Content {
		switch b := &u.Content[i]; b.Type {
		case "diff":
			c.Paths = appendNew(c.Paths, b.Path)
			c.Diffs = append(c.Diffs, domain.Diff{Path: b.Path, OldText: b.OldText, NewText: b.NewText})
		case touched:
			c.Paths = appendNew(c.Paths, b.Path)
		case "terminal":
			c.Terminal = b.TerminalID
		}
	}
	return c
}

// hasStarted reports whether the update says that the tool runs, or ran.
func (u *toolUpdate) hasStarted() bool { return u.Status != "" && u.Status != "pending" }

// result is the text of the tool's content, or else its raw output.
func (u *toolUpdate) result() json.RawMessage {
	if u.text != "" {
		raw, _ := task.JSON(u.text)
		return raw
	}
	if len(u.shown) > 0 { // the raw output would be its bytes again
		return nil
	}
	return present(u.RawOutput)
}

// parentOf is the tool call of the sub-agent that an update comes from, as claude
// says it, or empty.
func parentOf(meta json.RawMessage) string { return metaString(meta, "claudeCode", "parentToolUseId") }

// metaString is the string at meta.family.name, or empty.
func metaString(meta json.RawMessage, family, name string) string {
	if len(meta) == 0 {
		return ""
	}
	var s string
	json.Unmarshal(toolinput.At(meta, family, name), &s)
	return s
}
