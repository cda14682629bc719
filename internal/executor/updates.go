package executor

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// maxTools is how many tool calls of a run are remembered.
const maxTools = 10_000

// A tool is what is known of a tool call so far.
type tool struct {
	name, title, kind string
	input             json.RawMessage
	paths             []string
	diffs             []catalog.FileDiff
}

// chunk is the update of the kinds that end in _chunk.
type chunk struct {
	MessageID *string `json:"messageId"`
	Content   struct {
		Type string  `json:"type"`
		Text *string `json:"text"`
	} `json:"content"`
}

// toolUpdate is a tool_call, a tool_call_update, or the toolCall of a
// permission request.
type toolUpdate struct {
	ToolCallID string `json:"toolCallId"`
	Title      string `json:"title"`
	Kind       string `json:"kind"`
	Status     string `json:"status"`
	Content    []struct {
		Type       string          `json:"type"`
		Content    json.RawMessage `json:"content"`
		Path       string          `json:"path"`
		OldText    *string         `json:"oldText"`
		NewText    string          `json:"newText"`
		TerminalID string          `json:"terminalId"`
	} `json:"content"`
	Locations []struct {
		Path string `json:"path"`
	} `json:"locations"`
	RawInput  json.RawMessage `json:"rawInput"`
	RawOutput json.RawMessage `json:"rawOutput"`
	Meta      json.RawMessage `json:"_meta"`
}

// update reports a session/update of the agent. What is not known, or does
// not look as it should, goes on as it came. It returns the mode that the agent
// is in now, if the update says so.
func (r *run) update(raw []byte) (mode string) {
	var kind string
	json.Unmarshal(member(raw, `"sessionUpdate"`), &kind)
	known := false
	switch kind {
	case "agent_message_chunk":
		r.took(r.given.acts())
		known = r.chunk(raw, r.text)
	case "agent_thought_chunk":
		r.took(r.given.acts())
		known = r.chunk(raw, r.thought)
	case "user_message_chunk":
		known = true // the hub has it
	case "tool_call", "tool_call_update":
		var u toolUpdate
		if known = json.Unmarshal(raw, &u) == nil && u.ToolCallID != ""; known {
			r.toolUpdate(&u, kind == "tool_call")
		}
	case "plan":
		var p struct {
			Entries []catalog.PlanEntry `json:"entries"`
		}
		if known = json.Unmarshal(raw, &p) == nil && p.Entries != nil; known {
			r.report(catalog.EventPlan, catalog.Plan{Entries: p.Entries})
		}
	case "current_mode_update":
		var m struct {
			CurrentModeID string `json:"currentModeId"`
		}
		if known = json.Unmarshal(raw, &m) == nil && m.CurrentModeID != ""; known {
			mode = m.CurrentModeID
			r.report(catalog.EventMode, catalog.Mode{Current: mode})
		}
	case "usage_update":
		known = r.contextUsage(raw)
	}
	if !known {
		r.report(catalog.EventRaw, json.RawMessage(bytes.Clone(raw)))
	}
	return mode
}

func (r *run) chunk(raw []byte, take func(id, text string)) bool {
	var c chunk
	if json.Unmarshal(raw, &c) != nil || c.Content.Type != "text" || c.Content.Text == nil {
		return false
	}
	id := ""
	if c.MessageID != nil {
		id = *c.MessageID
	}
	take(id, *c.Content.Text)
	return true
}

func (r *run) thought(id, text string) {
	if text != "" {
		r.report(catalog.EventThinkingChunk, catalog.ContentDelta{MessageID: id, Delta: catalog.Delta{Text: text}})
	}
}

func (r *run) contextUsage(raw []byte) bool {
	var u struct {
		Used, Size *int64
		Cost       *struct {
			Amount   float64
			Currency string
		}
	}
	if json.Unmarshal(raw, &u) != nil || u.Used == nil {
		return false
	}
	usage := catalog.Usage{ContextUsed: *u.Used}
	if u.Size != nil {
		usage.ContextSize = *u.Size
	}
	if u.Cost != nil && strings.EqualFold(u.Cost.Currency, "USD") {
		r.spent.Store(math.Float64bits(u.Cost.Amount))
		usage.CostUSD = max(u.Cost.Amount-r.spentBefore, 0)
	}
	r.report(catalog.EventUsage, usage)
	return true
}

func (r *run) toolUpdate(u *toolUpdate, first bool) {
	r.took(r.given.calling(u.ToolCallID, u.Status))
	r.closeMessage()
	call := u.call()
	t := r.remember(u, call)
	r.files.mention(t.kind, u.Status, call.Paths, call.Diffs)
	ended := u.Status == "completed" || u.Status == "failed"
	if first || u.Title != "" || u.Kind != "" {
		call.Tool = t.name
	}
	switch {
	case first:
		call.Tool = t.name
		r.report(catalog.EventToolCall, call)
		if !ended {
			return
		}
		r.report(catalog.EventToolResult, catalog.ToolCall{ToolID: u.ToolCallID, Tool: t.name, Status: u.Status, Result: u.result()})
	case ended:
		call.Tool = t.name
		call.Result = u.result()
		r.report(catalog.EventToolResult, call)
	default:
		r.report(catalog.EventToolUpdate, call)
	}
	if ended {
		r.files.settle(t.paths...)
	}
}

// remember adds to what is known of a tool call.
func (r *run) remember(u *toolUpdate, call catalog.ToolCall) *tool {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.tools[u.ToolCallID]
	if t == nil {
		t = &tool{}
		if len(r.tools) < maxTools {
			r.tools[u.ToolCallID] = t
		}
	}
	if u.Title != "" {
		t.title = u.Title
	}
	if u.Kind != "" {
		t.kind = u.Kind
	}
	if call.Input != nil {
		t.input = call.Input
	}
	if len(call.Paths) > 0 {
		t.paths = call.Paths
	}
	if len(call.Diffs) > 0 {
		t.diffs = call.Diffs
	}
	if name := toolName(u.Meta, u.Kind, u.Title); name != "" && (t.name == "" || u.Kind != "" || u.Meta != nil) {
		t.name = name
	}
	if t.name == "" {
		t.name = "Tool"
	}
	return t
}

// call is the update in the hub's terms.
func (u *toolUpdate) call() catalog.ToolCall {
	c := catalog.ToolCall{
		ToolID: u.ToolCallID, Title: u.Title, Kind: u.Kind, Status: u.Status,
		Input: present(u.RawInput), ParentID: metaString(u.Meta, "claudeCode", "parentToolUseId"),
	}
	for _, l := range u.Locations {
		c.Paths = appendNew(c.Paths, l.Path)
	}
	for i := range u.Content {
		switch b := &u.Content[i]; b.Type {
		case "diff":
			c.Paths = appendNew(c.Paths, b.Path)
			c.Diffs = append(c.Diffs, catalog.FileDiff{Path: b.Path, OldText: b.OldText, NewText: b.NewText})
		case "terminal":
			c.Terminal = b.TerminalID
		}
	}
	return c
}

// result is the text of the tool's content, or else its raw output.
func (u *toolUpdate) result() json.RawMessage {
	var texts []string
	for _, b := range u.Content {
		var block struct {
			Type, Text string
		}
		if b.Type == "content" && json.Unmarshal(b.Content, &block) == nil && block.Type == "text" {
			texts = append(texts, block.Text)
		}
	}
	if len(texts) > 0 {
		text, _ := marshal(strings.Join(texts, "\n"))
		return text
	}
	return present(u.RawOutput)
}

// present is nil for null.
func present(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	return raw
}

func appendNew(list []string, s string) []string {
	if s == "" || slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// kindNames are the names under which tools of a kind are known to rules and
// to people.
var kindNames = map[string]string{
	"read": "Read", "edit": "Edit", "delete": "Delete", "move": "Move", "search": "Grep",
	"execute": "Bash", "think": "Think", "fetch": "WebFetch", "switch_mode": "ExitPlanMode",
}

// toolName is the name of a tool: what Claude says, what its kind says, or the
// first word of its title; empty if nothing says anything.
func toolName(meta json.RawMessage, kind, title string) string {
	if name := metaString(meta, "claudeCode", "toolName"); name != "" {
		return name
	}
	if name := kindNames[kind]; name != "" {
		return name
	}
	if words := strings.Fields(title); len(words) > 0 {
		return words[0]
	}
	return ""
}

// metaString is the string at meta.family.name, or empty.
func metaString(meta json.RawMessage, family, name string) string {
	var s string
	json.Unmarshal(metaValue(meta, family, name), &s)
	return s
}

func metaValue(meta json.RawMessage, family, name string) json.RawMessage {
	var outer map[string]json.RawMessage
	var inner map[string]json.RawMessage
	if len(meta) == 0 || json.Unmarshal(meta, &outer) != nil || json.Unmarshal(outer[family], &inner) != nil {
		return nil
	}
	return inner[name]
}
