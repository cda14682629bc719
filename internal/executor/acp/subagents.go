package acp

import (
	"cmp"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor/task"
	"github.com/duet-rpc/duet-rpc/internal/rawjson"
)

// A sub-agent may be a session of its own. The session that owns it
// announces it with subagent_update. The sub-agent's text, tool calls and questions come as
// updates and requests of its own session. Duet shows a sub-agent as a tool call, and assigns all
// of its updates to that call.
// https://agentclientprotocol.com/rfds/subagents

const (
	// maxSubagents limits the remembered sub-agents of an agent.
	maxSubagents = 1000
	// maxSubagentText limits the last message of a sub-agent, which is the result of its call, in
	// bytes.
	maxSubagentText = 64 << 10
)

// subagents are the sub-agents of an agent. The zero value is empty. Only the goroutine that
// reads the agent changes them.
type subagents struct {
	mu   sync.Mutex // guards the fields below
	byID map[string]*subagent
}

// A subagent is a session that another session owns.
type subagent struct {
	id       string // of its session
	parent   string // the tool call of the sub-agent that owns it, or ""
	title    string
	role     string // its kind of agent
	prompt   string
	cancels  bool   // its work can be cancelled alone
	isActive bool   // it works, or waits for an answer
	calls    int    // how often it has started to work
	call     string // its current or latest tool call
	task     string // the task of that call
	message  string // the agent's id of its last message
	said     []byte // the text of that message
}

// of returns the sub-agent whose session an update names as raw JSON, or nil.
func (s *subagents) of(session []byte) *subagent {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.byID) == 0 {
		return nil
	}
	id, _ := rawjson.Text(session)
	return s.byID[string(id)]
}

// callOf returns the tool call of the sub-agent whose session is named, or "".
func (s *subagents) callOf(session []byte) string {
	c := s.of(session)
	if c == nil {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return c.call
}

// active returns the sub-agents that work.
func (s *subagents) active() (list []*subagent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.byID {
		if c.isActive {
			list = append(list, c)
		}
	}
	return list
}

// describe returns the title of a sub-agent, or "", and whether it works. An unannounced
// sub-agent counts as working.
func (s *subagents) describe(id string) (title string, isActive bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.byID[id]; c != nil {
		return c.title, c.isActive
	}
	return "", true
}

// canCancel reports whether the work of a sub-agent can be cancelled alone.
func (s *subagents) canCancel(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.byID[id]
	return c != nil && c.cancels
}

// subagentUpdate has the known members of subagent_update. An absent member means no change.
type subagentUpdate struct {
	SessionID    string
	Title        string
	Description  string
	Capabilities *struct{ Cancel json.RawMessage }
	State        json.RawMessage
}

// announced merges a subagent_update from the session that owns the sub-agent: the main session,
// or the sub-agent with the tool call parent. It returns nil for an unreadable update.
func (s *subagents) announced(raw []byte, parent string) (c *subagent, state json.RawMessage) {
	var u subagentUpdate
	if json.Unmarshal(raw, &u) != nil || u.SessionID == "" {
		return nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c = s.byID[u.SessionID]; c == nil {
		if s.byID == nil || len(s.byID) >= maxSubagents {
			s.byID = make(map[string]*subagent)
		}
		c = &subagent{id: u.SessionID, parent: parent}
		s.byID[c.id] = c
	}
	c.title, c.role = cmp.Or(u.Title, c.title), cmp.Or(u.Description, c.role)
	if u.Capabilities != nil {
		c.cancels = acp.Has(u.Capabilities.Cancel)
	}
	return c, u.State
}

// input returns the input of the sub-agent's tool call.
func (c *subagent) input() json.RawMessage {
	raw, _ := task.JSON(map[string]string{"description": c.title, "prompt": c.prompt, "subagent_type": c.role})
	return raw
}

// subagentUpdate handles a subagent_update. The caller holds taking.
func (t *turn) subagentUpdate(raw []byte, parent string) bool {
	c, state := t.subagents.announced(raw, parent)
	if c == nil {
		return false
	}
	if state != nil {
		t.subagentState(c, readState(state))
	}
	return true
}

// subagentState handles the state of a sub-agent: it works, or has ended. An agent sends each
// state twice, to the sub-agent's session and to its parent's.
func (t *turn) subagentState(c *subagent, s state) {
	isActive := s.name == acp.StateRunning || s.name == acp.StateRequiresAction
	t.subagents.mu.Lock()
	changed := isActive != c.isActive
	c.isActive = isActive
	if changed && isActive {
		c.calls++
		c.call, c.task, c.said = fmt.Sprintf("subagent-%s-%d", c.id, c.calls), t.ID, nil
	}
	t.subagents.mu.Unlock()
	switch {
	case !changed:
	case isActive:
		t.EndMessage()
		t.silence.Tool(c.call, c.title, false)
		t.Event(catalog.EventToolCall, catalog.ToolCall{
			ToolID: c.call, Tool: "Task", Title: c.title, Kind: "think", Status: "in_progress", Input: c.input(), ParentID: c.parent,
		})
	default:
		t.silence.Tool(c.call, c.title, true)
		t.Event(catalog.EventToolResult, c.ended(s))
	}
}

// ended returns the end of the sub-agent's tool call.
func (c *subagent) ended(s state) catalog.ToolCall {
	status := "completed"
	if s.result.StopReason == acp.StopError || s.result.StopReason == "cancelled" {
		status = "failed"
	}
	result, _ := task.JSON(string(c.said))
	return catalog.ToolCall{ToolID: c.call, Tool: "Task", Status: status, Result: result}
}

// sessionMessage handles a message from one session to another. A message to a sub-agent is its
// prompt.
func (t *turn) sessionMessage(raw []byte) bool {
	to, _ := rawjson.Text(rawjson.Member(raw, "recipientSessionId"))
	t.subagents.mu.Lock()
	c := t.subagents.byID[string(to)]
	text := textOf(contentOf(raw))
	if c != nil {
		c.prompt = text
	}
	t.subagents.mu.Unlock()
	if c != nil && c.isActive {
		t.Event(catalog.EventToolUpdate, catalog.ToolCall{ToolID: c.call, Tool: "Task", Input: c.input()})
	}
	return true
}

// says stores the text of a sub-agent's last message.
func (c *subagent) says(raw []byte) {
	chunk := readChunk(raw)
	if !chunk.isText || len(chunk.text) == 0 {
		return
	}
	if c.message != string(chunk.id) {
		c.message, c.said = string(chunk.id), nil
	}
	if room := maxSubagentText - len(c.said); room > 0 {
		c.said = append(c.said, chunk.text[:min(room, len(chunk.text))]...)
	}
}

// subagentSays handles an update of a sub-agent's session. Only the goroutine that reads the
// agent calls it.
func (a *agent) subagentSays(c *subagent, kind string, update []byte, repaired bool) {
	if a.history.isLoading() {
		return
	}
	if t := a.turns.now(); t != nil {
		t.silence.Sign()
	}
	switch kind {
	case "state_update":
		a.subagentState(c, readState(update))
		return
	case "terminal_update", "terminal_output_chunk":
		a.terminalUpdate(update)
		return
	}
	if a.takeLate(kind, update, repaired) {
		return
	}
	none := func() *catalog.TurnTrigger { return nil }
	a.take(func() bool { return isWork(kind, update, codexStatus{}) }, none, func(t *turn) { t.subagentSays(c, kind, update, repaired) })
}

// subagentSays reports an update of a sub-agent's session. The sub-agent's settings, usage and
// plans do not apply to the main session.
func (t *turn) subagentSays(c *subagent, kind string, update []byte, repaired bool) {
	switch kind {
	case "config_option_update", "available_commands_update", "session_info_update", "usage_update",
		"session_message", "session_message_chunk", "plan", "plan_update", "plan_removed", "user_message", "user_message_chunk":
	case "state_update":
		t.subagentState(c, readState(update))
	case "subagent_update":
		t.subagentUpdate(update, c.call)
	case "agent_message_chunk":
		c.says(update)
		t.updateOf(c.call, kind, update, repaired)
	default:
		t.updateOf(c.call, kind, update, repaired)
	}
}

// subagentState handles a state_update of a sub-agent's session. The end of the last working
// sub-agent may end the turn.
func (a *agent) subagentState(c *subagent, s state) {
	isActive := s.name == acp.StateRunning || s.name == acp.StateRequiresAction
	none := func() *catalog.TurnTrigger { return nil }
	taken := a.take(func() bool { return isActive }, none, func(t *turn) {
		t.subagentState(c, s)
		a.endIdle(t)
	})
	if taken || isActive || !c.isActive { // no turn is left, as after an interruption
		return
	}
	a.subagents.mu.Lock()
	c.isActive = false
	a.subagents.mu.Unlock()
	if last := a.turns.latest(); last != nil && last.session != "" {
		a.reportLate(lastTask{session: last.session, task: c.task}, catalog.EventToolResult, c.ended(s))
	}
}

// endIdle ends a turn whose agent is idle, once none of its sub-agents works: their work belongs
// to the turn, unless the agent has ended it before them. The caller holds taking.
func (a *agent) endIdle(t *turn) {
	if t.idleResult == nil || !t.Stopped() && !t.idleResult.Ends && len(a.subagents.active()) > 0 {
		return
	}
	r := *t.idleResult
	t.idleResult = nil
	select {
	case t.idle <- r:
	default:
	}
	if t.Params.Unprompted {
		a.handleEndSignal(t)
	} else {
		t.ended = true
	}
}

// cancelSubagents cancels the work of sub-agents, and ends a turn that waits for them.
func (a *agent) cancelSubagents(t *turn) {
	for _, c := range a.subagents.active() {
		if c.cancels {
			_ = a.conn.Notify(acp.MethodSessionCancel, acp.SessionParams{SessionID: c.id})
		}
	}
	t.taking.Lock()
	defer t.taking.Unlock()
	if t.idleResult != nil {
		t.idleResult.StopReason = "cancelled"
		a.endIdle(t)
	}
}
