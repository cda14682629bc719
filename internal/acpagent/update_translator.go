package acpagent

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash"
	"hash/fnv"
	"maps"
	"strings"

	"github.com/duet-rpc/duet-rpc/client/eventstream"
	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

// A translator makes the updates of one session. It must not be used concurrently.
type translator struct {
	// Bytes returns the bytes of an attachment.
	Bytes func(attachment string) ([]byte, error)
	// IsOurs reports whether this client began the turn. Then the client already has its own
	// prompt.
	IsOurs func(session string) bool
	// IsEcho reports whether this client sent a steered message, whose echo it does not need. It
	// is called once for each message.
	IsEcho func(text string) bool
	// Client gets the updates. With [acp.Client.HasTerminals], terminals have their own updates. Some
	// other clients show an agent's terminals by _meta (terminal_info, terminal_output,
	// terminal_exit). The rest show only their own terminals, and get the output as text.
	Client acp.Client
	// Since is the seq after which events come.
	Since int64

	messages  messages
	ids       toolIDs
	tools     map[string]*tool // those of the turn, by the client's ids
	terminals map[string]*terminal

	// Of a client with states, whose knowledge outlives a turn.
	calls  map[string]bool   // tool calls known to the client
	latest map[string]string // the agent's ids of tool calls to the client's ids
	listed map[string]bool   // terminals known to the client

	stoppable map[string]bool // terminals and tool calls that the client knows to be cancellable

	newest map[string]int64 // of replayed items that changed after Since: the seq of the change
}

// BeginsInside means that the first text may be the rest of a message.
func (t *translator) BeginsInside() { t.messages.leftOut() }

// Item returns the updates of an item of the session. All items come before the first event.
func (t *translator) Item(i *protocol.SessionItem) []any {
	t.note(i.Key, i.Seq)
	switch i.Type {
	case protocol.ItemMessage, protocol.ItemThought:
		if i.Open {
			t.messages.began(i.Key, i.Text)
		} else {
			t.messages.ended(i.Key, i.Text)
		}
		return t.said(&i.Item, metaOf(members(i.Meta), t.parentID(i.TurnUUID, i.ParentID)), i.Text)
	case protocol.ItemToolCall:
		updates := t.toolCall(call{
			turn: i.TurnUUID, id: i.Key, name: i.ToolName, title: i.Title, kind: i.ToolKind, status: string(i.Status), parent: i.ParentID,
			input: i.ToolInput, data: protocol.Value(i.Details), refusal: i.Refusal,
		})
		if i.Ended() || i.Result != "" {
			updates = append(updates,
				t.toolCall(call{turn: i.TurnUUID, id: i.Key, status: string(i.Status), result: i.Result, refusal: i.Refusal, ended: i.Ended()})...)
		}
		return updates
	case protocol.ItemNotice:
		key := ""
		if t.Client.HasStates() {
			key = i.Key
		}
		return []any{aside(key, i.Text)} // notices are for live events only
	case protocol.ItemPlan:
		return []any{plan(i.Entries)}
	}
	return nil
}

// note stores the seq of the last change of a replayed item.
func (t *translator) note(key string, seq int64) {
	if seq <= t.Since {
		return
	}
	if t.newest == nil {
		t.newest = make(map[string]int64)
	}
	t.newest[key] = max(t.newest[key], seq)
}

// wasSent reports whether the replay already contained the change in an event.
func (t *translator) wasSent(key string, seq int64) bool { return seq > 0 && seq <= t.newest[key] }

// Event returns the updates of an event.
func (t *translator) Event(e eventstream.Event, data any) []any {
	switch d := data.(type) {
	case *protocol.TextEvent:
		kind := acp.KindAgentMessageChunk
		if e.Kind == protocol.KindThought {
			kind = acp.KindAgentThoughtChunk
		}
		return t.delta(e.TurnUUID, kind, d)
	case *protocol.Item:
		return t.item(e.TurnUUID, e.Seq, d)
	case *protocol.PlanEvent:
		return []any{plan(d.Entries)}
	case *protocol.UsageEvent:
		if d.ContextUsed > 0 && d.ContextSize > 0 {
			u := usageUpdate(d.ContextUsed, d.ContextSize, d.CostUSD)
			u.Meta = members(d.Meta)
			return []any{u}
		}
	case *protocol.TerminalOutputEvent:
		return t.output(d, e.Time)
	case *protocol.TerminalExitedEvent:
		return t.exited(d)
	case *protocol.AgentUpdateEvent:
		return t.passed(d.Update)
	case *protocol.LaggedEvent:
		t.messages.leftOut()
	case *protocol.TurnStateEvent:
		if d.State.Ended() {
			t.messages.turnEnded()
			maps.DeleteFunc(t.tools, func(_ string, known *tool) bool { return known.ended || !t.Client.HasStates() })
			t.terminals = nil
		}
	}
	return nil
}

// delta returns the update for a piece of a message or thought.
func (t *translator) delta(turn, kind string, d *protocol.TextEvent) []any {
	text := t.messages.piece(d.Key, d.Text)
	if text == "" {
		return nil
	}
	return []any{chunk(kind, d.Key, metaOf(members(d.Meta), t.parentID(turn, d.ParentID)), acp.TextContent(text))}
}

// item returns the updates of an item in an event.
func (t *translator) item(turn string, seq int64, d *protocol.Item) []any {
	switch d.Type {
	case protocol.ItemMessage, protocol.ItemThought:
		switch isSteered := d.Subtype == "steered"; {
		case t.wasSent(d.Key, seq),
			d.Role == "user" && !isSteered && t.IsOurs(turn),
			d.Role == "user" && isSteered && t.IsEcho != nil && t.IsEcho(d.Text):
			return nil
		}
		if d.Role == "user" {
			return t.said(d, nil, d.Text)
		}
		return t.said(d, metaOf(members(d.Meta), t.parentID(turn, d.ParentID)), t.messages.whole(d.Key, d.Text))
	case protocol.ItemToolCall:
		if t.wasSent(d.Key, seq) {
			return nil
		}
		return t.toolCall(call{
			turn: turn, id: d.Key, name: d.ToolName, title: d.Title, kind: d.ToolKind, status: string(d.Status), parent: d.ParentID,
			input: d.ToolInput, data: protocol.Value(d.Details), result: d.Result, refusal: d.Refusal, ended: d.Ended(), live: true,
		})
	case protocol.ItemNotice:
		switch {
		case t.wasSent(d.Key, seq):
		case t.Client.HasStates():
			return []any{notice(d.Subtype, d.Text)}
		default:
			return []any{aside("", d.Text)}
		}
	}
	return nil
}

// aside returns a message of the hub in a session, as a thought apart from the agent's text.
func aside(key, text string) acp.MessageChunk {
	return chunk(acp.KindAgentThoughtChunk, key, nil, acp.TextContent("["+text+"]\n"))
}

// notice returns a message of the hub in a session, for a client with states.
func notice(subtype, text string) acp.Notice {
	title, rest, _ := strings.Cut(strings.TrimSpace(text), "\n")
	n := acp.Notice{
		Kind: acp.KindNotice, Severity: acp.SeverityInfo, Title: cmp.Or(title, subtype, "Duet"), Description: strings.TrimSpace(rest),
	}
	switch subtype {
	case "background_cut", "session_replaced", "forked_later", "mcp_server_failed", "content_refused", "rules_not_asked", "setting_ignored", "budget_near", "denial_ended_turn":
		n.Severity = acp.SeverityWarning
	}
	return n
}

// said returns a message, or a thought, as chunks. For attachments it adds text, for clients that
// do not show them.
func (t *translator) said(i *protocol.Item, meta map[string]any, text string) (updates []any) {
	as := kindOf(i.Type == protocol.ItemThought, i.Role)
	if text != "" && (len(i.Attachments) == 0 || i.Role == "user") {
		updates = append(updates, chunk(as, i.Key, meta, acp.TextContent(text)))
	}
	for _, a := range i.Attachments {
		updates = append(updates, chunk(as, i.Key, meta, t.block(a)))
	}
	return updates
}

func kindOf(thought bool, role string) string {
	switch {
	case thought:
		return acp.KindAgentThoughtChunk
	case role == "user":
		return acp.KindUserMessageChunk
	}
	return acp.KindAgentMessageChunk
}

func chunk(kind, key string, meta map[string]any, content acp.Content) acp.MessageChunk {
	return acp.MessageChunk{Kind: kind, MessageID: key, Content: content, Meta: meta}
}

// words returns a message of Duet itself.
func words(format string, args ...any) acp.MessageChunk {
	return chunk(acp.KindAgentMessageChunk, "", nil, acp.TextContent(fmt.Sprintf(format, args...)))
}

// usageUpdate reports how full the context is.
func usageUpdate(used, size int64, dollars float64) acp.UsageUpdate {
	u := acp.UsageUpdate{Kind: acp.KindUsage, Used: used, Size: size}
	if dollars > 0 {
		u.Cost = &acp.Cost{Amount: dollars, Currency: "USD"}
	}
	return u
}

func plan(entries []domain.PlanEntry) acp.PlanUpdate {
	p := acp.PlanUpdate{Kind: acp.KindPlan, Entries: make([]acp.PlanEntry, len(entries))}
	for i, e := range entries {
		if e.Priority == "" {
			e.Priority = "medium"
		}
		if e.Status == "" {
			e.Status = acp.ToolPending
		}
		p.Entries[i] = acp.PlanEntry(e)
	}
	return p
}

// passed returns an update of the agent whose form Duet does not know, because clients may.
// Updates about settings are left out: they come from other events.
func (t *translator) passed(raw json.RawMessage) []any {
	var u struct {
		Kind string          `json:"sessionUpdate"`
		Meta json.RawMessage `json:"_meta"`
	}
	_ = json.Unmarshal(raw, &u) // an unreadable update is not passed on
	if t.Client.Passes(u.Kind) {
		return []any{raw}
	}
	if u.Kind == acp.KindInfo && len(u.Meta) <= catalog.MaxMeta {
		if meta := members(u.Meta); len(meta) > 0 { // the title comes with another event
			return []any{acp.InfoUpdate{Kind: acp.KindInfo, Meta: meta}}
		}
	}
	if strings.HasPrefix(u.Kind, "_") {
		return []any{raw}
	}
	return nil
}

// messages tracks how much of each open message was sent. A client only appends to a message. If
// a piece in the middle is missing, the later pieces wait for the whole message.
type messages struct {
	open map[string]*messageUpdate
	// unsure means that pieces are missing, perhaps the first ones of an unknown message.
	unsure bool
	// last is the latest completed message, by its key: late text of an agent extends it, and it
	// comes whole again.
	last    *messageUpdate
	lastKey string
}

// A messageUpdate is an open message.
type messageUpdate struct {
	sent   int         // bytes sent
	digest hash.Hash64 // of the sent bytes
	held   bool        // a piece after them is missing
}

func (m *messages) get(key string) *messageUpdate {
	if m.open == nil {
		m.open = make(map[string]*messageUpdate)
	}
	one := m.open[key]
	if one == nil && m.last != nil && key == m.lastKey {
		one = m.last
		m.open[key] = one
	}
	if one == nil {
		one = &messageUpdate{digest: fnv.New64a(), held: m.unsure}
		m.open[key] = one
	}
	return one
}

// piece returns the part of a piece to send.
func (m *messages) piece(key, text string) string {
	one := m.get(key)
	if one.held {
		return ""
	}
	one.add(text)
	return text
}

// whole returns the unsent part of a complete message.
func (m *messages) whole(key, text string) string {
	one := m.get(key)
	delete(m.open, key)
	m.unsure = false
	rest := one.rest(text)
	one.add(rest)
	one.held = false
	m.last, m.lastKey = one, key
	return rest
}

// ended stores a complete message that has been sent.
func (m *messages) ended(key, text string) {
	m.last, m.lastKey = &messageUpdate{digest: fnv.New64a()}, key
	m.last.add(text)
}

// began stores a message whose text was partly sent; the rest comes with the whole message.
func (m *messages) began(key, text string) {
	one := m.get(key)
	one.add(text)
	one.held = true
}

// leftOut notes that pieces are missing.
func (m *messages) leftOut() {
	m.unsure = true
	for _, one := range m.open {
		one.held = true
	}
}

// turnEnded drops messages that were never completed.
func (m *messages) turnEnded() { m.open, m.unsure = nil, false }

func (o *messageUpdate) add(text string) {
	o.sent += len(text)
	o.digest.Write([]byte(text))
}

// rest returns the missing part of a text. It returns "" if the sent text is not a prefix, for
// example because a key was redacted since.
func (o *messageUpdate) rest(text string) string {
	if o.sent == 0 {
		return text
	}
	if o.sent >= len(text) {
		return ""
	}
	begin := fnv.New64a()
	begin.Write([]byte(text[:o.sent]))
	if begin.Sum64() != o.digest.Sum64() {
		return ""
	}
	return text[o.sent:]
}

// The translator turns events of the hub, and entries of a replayed session, into updates
// of the Agent Client Protocol. update_tools.go has tool calls and terminals.

// block returns an attachment as a content block, or as text if its bytes are not available.
func (t *translator) block(a protocol.Attachment) acp.Content {
	if a.Type == "resource_link" || a.ID == "" && a.URI != "" {
		return acp.Content{Type: "resource_link", URI: a.URI, Name: cmp.Or(a.Name, a.URI), Title: a.Title, MIMEType: a.MIMEType, Size: a.Size}
	}
	bytes, err := t.Bytes(a.ID)
	if err != nil {
		return acp.TextContent(a.Label() + "\n")
	}
	data := base64.StdEncoding.EncodeToString(bytes)
	switch a.Type {
	case "image", "audio":
		return acp.Content{Type: a.Type, Data: data, MIMEType: a.MIMEType, URI: a.URI}
	case "resource":
		r := &acp.Resource{URI: a.URI, MIMEType: a.MIMEType}
		if strings.HasPrefix(a.MIMEType, "text/") {
			text := string(bytes)
			r.Text = &text
		} else {
			r.Blob = data
		}
		return acp.Content{Type: "resource", Resource: r}
	}
	return acp.TextContent(a.Label() + "\n")
}

func diffs(list []domain.Diff) (content []acp.ToolContent) {
	for _, d := range list {
		text := d.NewText
		content = append(content, acp.ToolContent{Type: "diff", Path: d.Path, OldText: d.OldText, NewText: &text})
	}
	return content
}

func textContent(text string) acp.ToolContent {
	block := acp.TextContent(text)
	return acp.ToolContent{Type: "content", Content: &block}
}
