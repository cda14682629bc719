package acp

import (
	"cmp"
	"encoding/json"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/executor/task"
	"github.com/duet-rpc/duet-rpc/internal/rawjson"
	"github.com/duet-rpc/duet-rpc/internal/toolinput"
)

const (
	// maxToolCalls limits the remembered tool calls of a turn.
	maxToolCalls = 10_000
	// maxDetails limits the remembered content of a tool call before it runs, in bytes. A
	// permission request may have more.
	maxDetails = 64 << 10
	// maxPieces limits the content of a tool call that arrives in pieces, in bytes.
	maxPieces = 4 << 20
)

// A toolCall is everything known of a tool call so far.
type toolCall struct {
	named       string // see claudeTool
	said        string // the tool's name in the protocol's own member
	title, kind string
	input       json.RawMessage
	paths       []string
	diffs       []domain.Diff
	text        string            // its content before it runs: the plan of a plan, else the agent's description of the call
	running     bool              // its last status is in_progress
	todo        bool              // see isTodos
	repaired    bool              // an update of it was not valid UTF-8, so the text differs from what runs
	meta        json.RawMessage   // the latest _meta
	terminal    string            // the hub's id of its terminal
	pieces      []json.RawMessage // content that came in pieces; each adds to the others
	piecesSize  int               // of pieces, in bytes
}

// name returns the agent's name of the tool, or else the usual name of tools of its kind. It
// never uses the title, which is text for users: rules do not match it.
func (t *toolCall) name() string {
	return cmp.Or(t.ownName(), catalog.ToolOfKind(t.kind))
}

// ownName returns the agent's name of the tool, if rules know such names: those of Claude Code
// begin with a capital, those of MCP with mcp__. Rules match any other name, such as codex's
// exec_command, by the tool's kind: rules for Bash apply to it.
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

// asPlan returns the call as one that may ask for approval of a plan.
func (t *toolCall) asPlan() planCall {
	return planCall{Tool: t.ownName(), Kind: t.kind, Title: t.title, Input: t.input, Text: t.text}
}

// details returns the agent's text about the call beside its title and its input. It is all that
// is known of a call without input.
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

// merge adds an update. Text over maxText bytes is dropped.
func (t *toolCall) merge(u *toolUpdate, call catalog.ToolCall, maxText int) {
	if u.Title != "" {
		t.title = u.Title
	}
	if u.Status != "" {
		t.running = u.Status == "in_progress"
	}
	t.todo = t.todo || isTodos(u)
	if u.Kind != "" {
		t.kind = u.Kind
	}
	if call.Input != nil && !(toolinput.Empty(call.Input) && t.input != nil) { // an earlier update has the input
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
	if name := claudeTool(u.Meta); name != "" {
		t.named = name
	}
	if name := strings.TrimSpace(u.Name); name != "" {
		t.said = name
	}
	switch started, isPlan := u.hasStarted(), t.asPlan().Asked(); {
	case u.text != "" && (isPlan || !started && len(u.text) <= maxText):
		t.text = u.text
	case !isPlan && (started || u.text != ""): // the content of a running call is its result
		t.text = ""
	}
	t.repaired = u.repaired || t.repaired && (call.Input == nil || toolinput.Empty(call.Input))
}

// toolCalls are the tool calls of a turn by the agent's own ids. The zero value is empty.
type toolCalls struct {
	mu        sync.Mutex
	calls     map[string]*toolCall
	questions map[string][]*openQuestion
	asked     int // counts questions
}

// An openQuestion is a permission request that waits for a decision.
type openQuestion struct {
	id      string // unique in the turn
	request permissionRequest
	known   bool            // the agent had reported the tool call before
	meta    json.RawMessage // the latest _meta of the call before the question
	changed chan struct{}   // buffer of 1: the tool call has changed since
	call    toolCall        // the call when it was asked about, with later updates; guarded by toolCalls.mu
}

// update merges an update into a tool call, and into the open questions about it. It returns the
// whole call.
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

// has reports whether a tool call belongs to the turn.
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

// addPiece adds an item to the content of a tool call. It returns false if there is no such call,
// or if the content is too long.
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

// addPieces adds the content that came in pieces to the last update of a tool call. Content of
// the update itself replaces the pieces.
func (c *toolCalls) addPieces(u *toolUpdate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t := c.calls[u.ToolCallID]; t != nil && len(u.Content) == 0 && len(t.pieces) > 0 {
		_ = u.takeContent(t.pieces) // an unreadable item ends the list
		t.pieces, t.piecesSize = nil, 0
	}
}

// titles returns the titles of the turn's tool calls, by id.
func (c *toolCalls) titles() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	titles := make(map[string]string, len(c.calls))
	for id, t := range c.calls {
		titles[id] = bounded(cmp.Or(t.title, t.name()))
	}
	return titles
}

// note merges an update into a tool call, and returns the whole call. The caller holds mu.
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

// ask opens the question of a permission request, and returns it with its tool call. close ends
// the question.
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
	q := &openQuestion{
		id: strconv.Itoa(c.asked), request: p, known: earlier != nil, meta: before, changed: make(chan struct{}, 1), call: known,
	}
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

// state returns the current state of the tool call that a question is about.
func (c *toolCalls) state(q *openQuestion) toolCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	return q.call
}

// names returns the tool names under which rules are checked for q: q's own, q.Unasked, and the
// agent's names of its calls of the same kind on the same paths.
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

// A toolUpdate is a report about a tool call, with what the driver derives from it.
type toolUpdate struct {
	acp.ToolReport
	text     string                 // the text in its content, or ""
	shown    []catalog.ContentBlock // its content other than text
	parent   string                 // the tool call of the sub-agent that sent it, if that has a session of its own
	repaired bool                   // it was not valid UTF-8
	strange  bool                   // it has content of an unknown type
}

func newToolUpdate(r acp.ToolReport) toolUpdate {
	u := toolUpdate{ToolReport: r}
	u.readContent()
	return u
}

// UnmarshalJSON implements json.Unmarshaler, as [acp.ToolReport] does.
func (u *toolUpdate) UnmarshalJSON(raw []byte) error {
	var r acp.ToolReport
	err := r.UnmarshalJSON(raw)
	*u = newToolUpdate(r)
	return err
}

// takeContent reads the content of the tool call in place of its own.
func (u *toolUpdate) takeContent(content []json.RawMessage) (err error) {
	if u.Content, err = acp.ReadContent(content); err == nil {
		u.readContent()
	}
	return err
}

// readContent sorts the content into texts, diffs and other blocks.
func (u *toolUpdate) readContent() {
	var texts []string
	for i := range u.Content {
		c := &u.Content[i]
		if c.Type != "content" {
			continue
		}
		if kind, _ := rawjson.Text(rawjson.Member(c.Content, "type")); string(kind) == "text" {
			if text, ok := rawjson.Text(rawjson.Member(c.Content, "text")); ok {
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

// call converts the update to the hub's type.
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
			c.Diffs = append(c.Diffs, domain.Diff{Path: b.Path, OldText: b.OldText, NewText: b.NewText, Line: b.Line})
		case acp.Touched:
			c.Paths = appendNew(c.Paths, b.Path)
		case "terminal":
			c.Terminal = b.TerminalID
		}
	}
	return c
}

// hasStarted reports whether the update shows that the tool runs, or ran.
func (u *toolUpdate) hasStarted() bool { return u.Status != "" && u.Status != "pending" }

// result returns the text of the tool's content, or else its raw output.
func (u *toolUpdate) result() json.RawMessage {
	if u.text != "" {
		raw, _ := task.JSON(u.text)
		return raw
	}
	if len(u.shown) > 0 { // the raw output would repeat its bytes
		return nil
	}
	return present(u.RawOutput)
}

// metaString returns the string at meta.family.name, or "".
func metaString(meta json.RawMessage, family, name string) string {
	if len(meta) == 0 {
		return ""
	}
	var s string
	json.Unmarshal(toolinput.At(meta, family, name), &s)
	return s
}
