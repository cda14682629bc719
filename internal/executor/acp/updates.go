package acp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/rawjson"
)

// update reports a session/update of the agent. An unknown or malformed update is reported
// unchanged; repaired means that it was not valid UTF-8. Updates about settings except the mode
// are also reported unchanged, beside their own reports, for clients older than those reports.
func (t *turn) update(kind string, raw []byte, repaired bool) { t.updateOf("", kind, raw, repaired) }

// updateOf is update for a sub-agent with the tool call parent, or "" for the agent itself.
func (t *turn) updateOf(parent, kind string, raw []byte, repaired bool) {
	known := false
	switch kind {
	case "agent_message_chunk":
		t.delivered(t.answers.agentActed())
		known = t.chunk(parent, raw, t.text) || t.content(parent, raw, false)
	case "agent_thought_chunk":
		t.delivered(t.answers.agentActed())
		known = t.chunk(parent, raw, t.thought) || t.content(parent, raw, true)
	case "agent_message", "agent_thought":
		t.delivered(t.answers.agentActed())
		known = t.message(parent, raw, kind == "agent_thought")
	case "user_message_chunk", "user_message":
		t.accepts()
		known = true // the hub already has it
	case "tool_call", "tool_call_update":
		var u toolUpdate
		if known = u.UnmarshalJSON(raw) == nil && u.ToolCallID != ""; known {
			u.repaired, u.parent = repaired, parent
			t.toolUpdate(&u, kind == "tool_call")
			known = !u.strange
		}
	case "tool_call_content_chunk":
		known = t.toolContent(parent, raw, repaired)
	case "terminal_update", "terminal_output_chunk":
		known = t.shown.update(raw, t.ID, nil)
	case "state_update":
		known = true
	case "subagent_update":
		known = t.subagentUpdate(raw, "")
	case "session_message":
		known = t.sessionMessage(raw)
	case "plan_update":
		known = t.plan(rawjson.Member(raw, "plan"))
	case "plan_removed":
		known = t.planRemoved(raw)
	case "notice":
		known = t.notice(raw)
	case "compaction_update":
		known = t.compaction(raw)
	case "compaction_summary_chunk":
		known = true // its compaction_update reports the end
	case "plan":
		known = t.plan(raw)
	case "current_mode_update":
		var mode string
		known = json.Unmarshal(rawjson.Member(raw, "currentModeId"), &mode) == nil && mode != ""
	case "usage_update":
		known = t.contextUsage(raw)
	}
	if !known {
		t.Event(catalog.EventRaw, json.RawMessage(bytes.Clone(raw)))
	}
}

// A chunk is an update whose kind ends in _chunk. Its fields are parts of the received line.
type chunk struct {
	id      []byte // of the message, or nil
	meta    []byte
	content []byte // raw
	text    []byte
	isText  bool
}

// readChunk reads a chunk without a full decoder, because agents send thousands of chunks a
// second. The line was already checked to be valid JSON.
func readChunk(raw []byte) (c chunk) {
	for quoted, value := range rawjson.Members(raw) {
		switch name, _ := rawjson.Text(quoted); string(name) {
		case "content":
			c.content = value
		case "messageId":
			c.id, _ = rawjson.Text(value)
		case "_meta":
			c.meta = value
		}
	}
	if kind, _ := rawjson.Text(rawjson.Member(c.content, "type")); string(kind) == "text" {
		c.text, c.isText = rawjson.Text(rawjson.Member(c.content, "text"))
	}
	return c
}

func (t *turn) chunk(parent string, raw []byte, take func(catalog.ContentDelta)) bool {
	c := readChunk(raw)
	if c.isText {
		id, text := string(c.id), string(c.text)
		if id != "" {
			t.noteMessage(id)
			t.said.add(id, text, false)
		}
		take(catalog.ContentDelta{
			MessageID: id, ParentID: cmp.Or(parent, parentOf(c.meta)), Delta: catalog.Delta{Text: text}, Meta: boundedMeta(c.meta),
		})
	}
	return c.isText
}

// message reports a whole message, which replaces its chunks. A continuation of the chunks is
// reported as more of the message, and any other text as a new message.
func (t *turn) message(parent string, raw []byte, thought bool) bool {
	id, _ := rawjson.Text(rawjson.Member(raw, "messageId"))
	content, known := contentOf(raw), true
	if len(content) == 0 { // its chunks follow
		return true
	}
	take := t.text
	if thought {
		take = t.thought
	}
	t.noteMessage(string(id))
	meta := rawjson.Member(raw, "_meta")
	parent = cmp.Or(parent, parentOf(meta))
	if whole := textOf(content); whole != "" {
		more, goesOn := strings.CutPrefix(whole, t.said.of(string(id)))
		if !goesOn {
			t.EndMessage()
		}
		if more != "" {
			t.said.add(string(id), more, !goesOn)
			take(catalog.ContentDelta{MessageID: string(id), ParentID: parent, Delta: catalog.Delta{Text: more}, Meta: boundedMeta(meta)})
		}
	}
	for _, item := range content {
		if kind, _ := rawjson.Text(rawjson.Member(item, "type")); string(kind) == "text" {
			continue
		}
		block, ok := readBlock(item)
		if known = known && ok; ok {
			t.Content(catalog.MessageContent{Content: block, ParentID: parent, Thought: thought})
		}
	}
	return known
}

// contentOf returns the content list of an update.
func contentOf(update []byte) (list []json.RawMessage) {
	if raw := rawjson.Member(update, "content"); raw != nil {
		_ = json.Unmarshal(raw, &list)
	}
	return list
}

// textOf returns the text in a list of content.
func textOf(content []json.RawMessage) string {
	var b strings.Builder
	for _, item := range content {
		if kind, _ := rawjson.Text(rawjson.Member(item, "type")); string(kind) == "text" {
			text, _ := rawjson.Text(rawjson.Member(item, "text"))
			b.Write(text)
		}
	}
	return b.String()
}

// saidText is the text of the agent's current message, for comparison with a whole one. The zero
// value is empty.
type saidText struct {
	id   string
	text []byte
}

// maxSaid limits the stored text, in bytes. A longer whole message is reported again.
const maxSaid = 8 << 20

func (s *saidText) of(id string) string {
	if s.id != id {
		return ""
	}
	return string(s.text)
}

// add appends to the message with that id; isNew replaces the earlier text.
func (s *saidText) add(id, text string, isNew bool) {
	if isNew || s.id != id || len(s.text)+len(text) > maxSaid {
		s.id, s.text = id, s.text[:0]
	}
	s.text = append(s.text, text...)
}

// content reports a chunk that is not text.
func (t *turn) content(parent string, raw []byte, thought bool) bool {
	block, ok := readBlock(rawjson.Member(raw, "content"))
	if ok {
		t.Content(catalog.MessageContent{Content: block, ParentID: cmp.Or(parent, parentOf(rawjson.Member(raw, "_meta"))), Thought: thought})
	}
	return ok
}

func (t *turn) notice(raw json.RawMessage) bool {
	n, ok := readNotice(raw)
	if ok {
		t.Event(catalog.EventNotice, n)
	}
	return ok
}

func readNotice(raw json.RawMessage) (n catalog.Notice, ok bool) {
	ok = json.Unmarshal(raw, &n) == nil && n.Title != ""
	return n, ok
}

func (t *turn) compaction(raw json.RawMessage) bool {
	c, ok := readCompaction(raw)
	if ok {
		t.Event(catalog.EventCompaction, c)
	}
	return ok
}

func readCompaction(raw json.RawMessage) (c catalog.Compaction, ok bool) {
	var said struct {
		Status, Error string
		Summary       []json.RawMessage
	}
	ok = json.Unmarshal(raw, &said) == nil && said.Status != ""
	return catalog.Compaction{Status: said.Status, Summary: textOf(said.Summary), Error: said.Error}, ok
}

// text reports text of the agent.
func (t *turn) text(d catalog.ContentDelta) {
	t.mu.Lock()
	t.trouble.text(d.Delta.Text)
	t.mu.Unlock()
	t.Delta(d)
}

func (t *turn) thought(d catalog.ContentDelta) {
	if d.Delta.Text != "" {
		t.Event(catalog.EventThinkingChunk, d)
	}
}

// boundedMeta returns the _meta of an update. It returns nil if there is none, if it is not an
// object or if it is longer than catalog.MaxMeta.
func boundedMeta(meta json.RawMessage) json.RawMessage {
	if len(meta) > catalog.MaxMeta || !bytes.HasPrefix(meta, []byte("{")) {
		return nil
	}
	return meta
}

func (t *turn) contextUsage(raw []byte) bool {
	usage, ok := readUsage(raw, &t.spent, t.spentBefore)
	if ok {
		t.Event(catalog.EventUsage, usage)
	}
	return ok
}

// readUsage reads a usage_update. It stores the session's cost so far in spent. The reported cost
// is the increase since before.
func readUsage(raw []byte, spent *spending, before float64) (usage catalog.Usage, ok bool) {
	var u struct {
		Used, Size *figure
		Cost       json.RawMessage
	}
	if json.Unmarshal(raw, &u) != nil || u.Used == nil {
		return usage, false
	}
	usage.ContextUsed, usage.Meta = int64(*u.Used), boundedMeta(rawjson.Member(raw, "_meta"))
	if u.Size != nil {
		usage.ContextSize = int64(*u.Size)
	}
	var cost struct {
		Amount   float64
		Currency string
	}
	if json.Unmarshal(u.Cost, &cost) == nil && strings.EqualFold(cost.Currency, "USD") {
		if amount := (catalog.Usage{CostUSD: cost.Amount}).Bounded().CostUSD; amount > 0 {
			spent.set(amount)
			usage.CostUSD = max(amount-before, 0)
		}
	}
	return usage.Bounded(), true
}

// toolContent adds content to a tool call. It reports text when the call has ended, and other
// content at once.
func (t *turn) toolContent(parent string, raw json.RawMessage, repaired bool) bool {
	id, _ := rawjson.Text(rawjson.Member(raw, "toolCallId"))
	item := bytes.Clone(rawjson.Member(raw, "content"))
	u := toolUpdate{ToolReport: acp.ToolReport{ToolCallID: string(id)}, repaired: repaired, parent: parent}
	if !t.tools.addPiece(u.ToolCallID, item) || u.takeContent([]json.RawMessage{item}) != nil {
		return false
	}
	if u.text == "" && len(u.shown) == 0 {
		t.toolUpdate(&u, false)
	}
	return true
}

func (t *turn) toolUpdate(u *toolUpdate, first bool) {
	t.delivered(t.answers.toolCallUpdated(u.ToolCallID, u.Status))
	t.EndMessage()
	first = first || !t.tools.has(u.ToolCallID) // some agents send no tool_call
	ended := u.Status == "completed" || u.Status == "failed"
	if ended {
		t.tools.addPieces(u)
	}
	if t.settings.isProgram(kimiCode) {
		u.takeArguments()
	}
	t.locate(u)
	call := u.call()
	call.Terminal = t.shown.hubID(call.Terminal)
	known := t.tools.update(u, call)
	if t.isReplay {
		call.Terminal = ""
	}
	if plan := todos(call.Input); known.todo && plan != nil {
		t.Event(catalog.EventPlan, *plan)
	}
	if command := backgroundCommand(call.Input); command != "" {
		t.background.backgroundCommand(command)
	}
	t.Files.Mention(known.kind, u.Status, call.Paths, call.Diffs)
	if ended && u.text == "" && known.terminal != "" {
		u.text = t.shown.printed(known.terminal)
	}
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

// locate notes where in their files the changes of a tool call begin. A diff without a patch does not
// say it, and agents send parts of files.
func (t *turn) locate(u *toolUpdate) {
	for i := range u.Content {
		if c := &u.Content[i]; c.Type == "diff" && c.Line == 0 && c.OldText != nil {
			c.Line = t.Files.Line(c.Path, *c.OldText, c.NewText)
		}
	}
}
