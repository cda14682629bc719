package acp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"math"
	"strings"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor/blocks"
)

// update reports a session/update of the agent. What is not known, or does
// not look as it should, goes on as it came; repaired tells that it came as no
// UTF-8. So do those about settings, but for the mode, which have reports of their
// own beside: clients read them from the time before there were any.
func (t *turn) update(kind string, raw []byte, repaired bool) {
	known := false
	switch kind {
	case "agent_message_chunk":
		t.delivered(t.answers.agentActed())
		known = t.chunk(raw, t.text) || t.content(raw, false)
	case "agent_thought_chunk":
		t.delivered(t.answers.agentActed())
		known = t.chunk(raw, t.thought) || t.content(raw, true)
	case "user_message_chunk":
		known = true // the hub has it
	case "tool_call", "tool_call_update":
		var u toolUpdate
		if known = u.UnmarshalJSON(raw) == nil && u.ToolCallID != ""; known {
			u.repaired = repaired
			t.toolUpdate(&u, kind == "tool_call")
			known = !u.strange
		}
	case "plan":
		var p struct {
			Entries []catalog.PlanEntry `json:"entries"`
		}
		if known = json.Unmarshal(raw, &p) == nil && p.Entries != nil; known {
			t.Event(catalog.EventPlan, catalog.Plan{Entries: p.Entries})
		}
	case "current_mode_update":
		var mode string
		known = json.Unmarshal(frame.Member(raw, "currentModeId"), &mode) == nil && mode != ""
	case "usage_update":
		known = t.contextUsage(raw)
	}
	if !known {
		t.Event(catalog.EventRaw, json.RawMessage(bytes.Clone(raw)))
	}
}

// A chunk is the update of the kinds that end in _chunk. Its fields are parts of the
// line that it came on.
type chunk struct {
	id      []byte // of the message; nil: it has none
	meta    []byte
	content []byte // raw
	text    []byte
	isText  bool
}

// readChunk reads a chunk by its bytes: agents send thousands of them a second, and
// the line has been seen to be valid JSON.
func readChunk(raw []byte) (c chunk) {
	for quoted, value := range frame.Members(raw) {
		switch name, _ := frame.Text(quoted); string(name) {
		case "content":
			c.content = value
		case "messageId":
			c.id, _ = frame.Text(value)
		case "_meta":
			c.meta = value
		}
	}
	if kind, _ := frame.Text(frame.Member(c.content, "type")); string(kind) == "text" {
		c.text, c.isText = frame.Text(frame.Member(c.content, "text"))
	}
	return c
}

func (t *turn) chunk(raw []byte, take func(id, parent, text string)) bool {
	c := readChunk(raw)
	if c.isText {
		take(string(c.id), parentOf(c.meta), string(c.text))
	}
	return c.isText
}

// content reports a chunk that is no text.
func (t *turn) content(raw []byte, thought bool) bool {
	block, ok := blocks.Read(frame.Member(raw, "content"))
	if ok {
		t.Content(catalog.MessageContent{Content: block, ParentID: parentOf(frame.Member(raw, "_meta")), Thought: thought})
	}
	return ok
}

// text reports a text of the agent.
func (t *turn) text(id, parent, text string) {
	t.mu.Lock()
	t.trouble.text(text)
	t.mu.Unlock()
	t.Text(id, parent, text)
}

func (t *turn) thought(id, parent, text string) {
	if text != "" {
		t.Event(catalog.EventThinkingChunk, catalog.ContentDelta{MessageID: id, ParentID: parent, Delta: catalog.Delta{Text: text}})
	}
}

func (t *turn) contextUsage(raw []byte) bool {
	var u struct {
		Used, Size *figure
		Cost       json.RawMessage
	}
	if json.Unmarshal(raw, &u) != nil || u.Used == nil {
		return false
	}
	usage := catalog.Usage{ContextUsed: int64(*u.Used)}
	if u.Size != nil {
		usage.ContextSize = int64(*u.Size)
	}
	var cost struct {
		Amount   float64
		Currency string
	}
	if json.Unmarshal(u.Cost, &cost) == nil && strings.EqualFold(cost.Currency, "USD") {
		if amount := (catalog.Usage{CostUSD: cost.Amount}).Bounded().CostUSD; amount > 0 {
			t.spent.Store(math.Float64bits(amount))
			usage.CostUSD = max(amount-t.spentBefore, 0)
		}
	}
	t.Event(catalog.EventUsage, usage.Bounded())
	return true
}

// backgroundCommand is the command of a tool call that is to run in the background, as
// claude and qwen say it, or "".
func backgroundCommand(input json.RawMessage) string {
	var in struct {
		Command      string
		Background   bool `json:"run_in_background"`
		IsBackground bool `json:"is_background"`
	}
	if !bytes.Contains(input, []byte("background")) || json.Unmarshal(input, &in) != nil || !in.Background && !in.IsBackground {
		return ""
	}
	return in.Command
}

func (t *turn) toolUpdate(u *toolUpdate, first bool) {
	t.delivered(t.answers.toolCallUpdated(u.ToolCallID, u.Status))
	t.EndMessage()
	call := u.call()
	known := t.tools.update(u, call)
	if plan := blocks.Todos(call.Input); known.todo && plan != nil {
		t.Event(catalog.EventPlan, *plan)
	}
	if command := backgroundCommand(call.Input); command != "" {
		t.background.backgroundCommand(command)
	}
	t.Files.Mention(known.kind, u.Status, call.Paths, call.Diffs)
	ended := u.Status == "completed" || u.Status == "failed"
	t.silence.Tool(u.ToolCallID, cmp.Or(known.title, known.name()), ended)
	if first || u.Title != "" || u.Kind != "" {
		call.Tool = known.name()
	}
	switch {
	case first:
		call.Tool = known.name()
		t.Event(catalog.EventToolCall, call)
		if !ended {
			return
		}
		t.Event(catalog.EventToolResult, catalog.ToolCall{ToolID: u.ToolCallID, Tool: known.name(), Status: u.Status, Result: u.result()})
	case ended:
		call.Tool = known.name()
		call.Result = u.result()
		t.Event(catalog.EventToolResult, call)
	default:
		t.Event(catalog.EventToolUpdate, call)
	}
	if ended {
		t.background.callEnded(u.ToolCallID)
		t.Files.Settle(known.paths...)
	}
}
