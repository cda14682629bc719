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
	named       string // what the agent calls the tool; "" if it has not said
	title, kind string
	input       json.RawMessage
	paths       []string
	diffs       []catalog.FileDiff
	mended      bool // what the agent said of it was no UTF-8, so it is not what it runs
}

// name is what the agent calls the tool, or else what tools of its kind are
// called. The title is for people: rules are never held against it.
func (t *tool) name() string {
	if t.named != "" {
		return t.named
	}
	return catalog.ToolOfKind(t.kind)
}

// chunk is the update of the kinds that end in _chunk.
type chunk struct {
	MessageID *string `json:"messageId"`
	Content   struct {
		Type string  `json:"type"`
		Text *string `json:"text"`
	} `json:"content"`
}

// update reports a session/update of the agent. What is not known, or does
// not look as it should, goes on as it came; mended tells that it came as no
// UTF-8. It returns the mode that the agent is in now, if the update says so.
func (r *run) update(raw []byte, mended bool) (mode string) {
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
			u.mended = mended
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
		call.Tool = t.name()
	}
	switch {
	case first:
		call.Tool = t.name()
		r.report(catalog.EventToolCall, call)
		if !ended {
			return
		}
		r.report(catalog.EventToolResult, catalog.ToolCall{ToolID: u.ToolCallID, Tool: t.name(), Status: u.Status, Result: u.result()})
	case ended:
		call.Tool = t.name()
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
	if name := strings.TrimSpace(metaString(u.Meta, "claudeCode", "toolName")); name != "" {
		t.named = name
	}
	t.mended = u.mended || t.mended && call.Input == nil
	return t
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
