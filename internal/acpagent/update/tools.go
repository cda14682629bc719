package update

import (
	"encoding/json"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/acpagent/schema"
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
	diffs    []wire.FileDiff
	terminal string
	shown    bool // the client shows the terminal
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

// toolCall is the update for a tool call that begins, changes or ends.
func (t *Translator) toolCall(c call) schema.ToolCall {
	c.id, c.parent = t.ids.of(c.session, c.id), t.parentID(c.session, c.parent)
	known := t.tools[c.id]
	u := schema.ToolCall{Kind: schema.KindToolUpdate, ToolCallID: c.id, Title: c.title, ToolKind: toolKind(c.kind), Status: status(c.status), RawInput: object(c.input), Meta: parent(c.parent)}
	if known == nil {
		known = &tool{}
		if t.tools == nil {
			t.tools = make(map[string]*tool)
		}
		t.tools[c.id] = known
		u.Kind = schema.KindToolCall
		if u.Title == "" {
			u.Title = c.name
		}
		if u.Title == "" {
			u.Title = c.id
		}
	}
	if len(c.data.Diffs) > 0 {
		known.diffs = c.data.Diffs
	}
	if c.data.Terminal != "" {
		known.terminal = c.data.Terminal
	}
	for _, path := range c.data.Paths {
		u.Locations = append(u.Locations, schema.Location{Path: path})
	}
	content := diffs(known.diffs)
	if t.ShowsTerminals && c.live && known.terminal != "" && !known.shown {
		t.show(&u, known)
	}
	if known.shown {
		content = append(content, schema.ToolContent{Type: "terminal", TerminalID: known.terminal})
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
		content = append(content, schema.ToolContent{Type: "content", Content: &block})
	}
	if len(content) > 0 {
		u.Content = content
	}
	if c.ended {
		delete(t.terminals, known.terminal)
		known.diffs = nil
		if c.result != "" {
			u.RawOutput, _ = json.Marshal(c.result) // a text
		}
	}
	return u
}

// Question is the tool call that a question is about, with its diffs.
func (t *Translator) Question(a wire.Approval) schema.ToolCall {
	u := schema.ToolCall{ToolCallID: a.ToolUseID, Title: a.Title, ToolKind: toolKind(a.ToolKind), Status: schema.Pending, RawInput: object(a.Input)}
	if u.ToolCallID == "" {
		u.ToolCallID = a.ID
	}
	u.ToolCallID = t.ids.of(a.SessionID, u.ToolCallID)
	for _, text := range []string{a.Subject, a.Tool, "a question"} {
		if u.Title == "" {
			u.Title = text
		}
	}
	content := diffs(a.Diffs)
	for _, text := range []string{a.Plan, a.Details, a.Reopened} {
		if text != "" {
			content = append(content, textContent(text))
		}
	}
	if len(content) > 0 {
		u.Content = content
	}
	for _, path := range a.Paths {
		u.Locations = append(u.Locations, schema.Location{Path: path})
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

func status(s string) string {
	switch s {
	case schema.Pending, schema.InProgress, schema.Completed, schema.Failed:
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
func (t *Translator) parentID(session, id string) string {
	if id == "" {
		return ""
	}
	return t.ids.of(session, id)
}

// parent says of which tool call something is a part: of a sub-agent's.
func parent(id string) map[string]any {
	if id == "" {
		return nil
	}
	return map[string]any{"duet": map[string]any{"parentToolCallId": id}}
}
