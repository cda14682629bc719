package acp

import (
	"context"
	"encoding/json"
)

// Requests to agents, in the form of the version that an agent has chosen. Callers know the form of
// version 2 only.

// Login returns the method that signs in.
func (i *Initialized) Login() string {
	if i.isVersion2() {
		return MethodAuthLogin
	}
	return MethodAuthenticate
}

// Logout returns the method that signs out.
func (i *Initialized) Logout() string {
	if i.isVersion2() {
		return MethodAuthLogout
	}
	return MethodLogout
}

// CanResume reports whether the agent continues its earlier sessions.
func (i *Initialized) CanResume() bool { return i.canLoad || Has(i.Session.Resume) }

// Resume returns the method and the parameters for a request to resume a session. replays reports
// that the agent will send the history of the session: some always do, and some cannot.
func (i *Initialized) Resume(r OpenSessionRequest) (method string, params OpenSessionRequest, replays bool) {
	wantsHistory := r.ReplayFrom != nil
	if i.isVersion2() {
		return MethodSessionResume, r, wantsHistory
	}
	r.ReplayFrom = nil
	if i.canLoad && (wantsHistory || !Has(i.Session.Resume)) {
		return MethodSessionLoad, r, true
	}
	return MethodSessionResume, r, false
}

// Program returns an MCP server that the agent has to start. path is the absolute path of the
// program, or "".
func (i *Initialized) Program(s MCPServer, path string) MCPServer {
	if i.isVersion2() {
		s.Type = "stdio"
		if path != "" {
			s.Command = path
		}
	}
	return s
}

// SetOption returns the parameters that set an option of a session to a value, a string or a bool.
func (i *Initialized) SetOption(session, option string, value any) any {
	params := object{"sessionId": session, "configId": option, "value": value}
	if _, isBool := value.(bool); isBool {
		params["type"] = ValueBoolean
	} else if i.isVersion2() {
		params["type"] = ValueID
	}
	return params
}

// TakesPromptsAtWork reports whether the agent takes a prompt while it works by itself, and reports
// when it has read it.
func (i *Initialized) TakesPromptsAtWork() bool { return i.isVersion2() }

// MemberEnds is a member of the state that [Prompt] makes of an answer: the turn ends, even if
// sub-agents still work.
const MemberEnds = "_duet_ends"

// Prompt sends a prompt, and returns when the agent has taken it. A state_update tells the end of its
// work: for an agent that answers at the end (version 1), Prompt passes it to Handler.Update.
func Prompt(ctx context.Context, c *Conn, i *Initialized, session string, params any) error {
	type answer struct { // of version 1
		StopReason string          `json:"stopReason"`
		Usage      json.RawMessage `json:"usage,omitempty"`
	}
	if i.isVersion2() {
		_, err := Call[json.RawMessage](ctx, c, MethodSessionPrompt, params)
		return err
	}
	_, err := CallInOrder(ctx, c, MethodSessionPrompt, params, func(a answer) {
		c.tellState(session, object{"state": StateRunning})
		c.tellState(session, object{"state": StateIdle, "stopReason": a.StopReason, "usage": a.Usage, MemberEnds: true})
	})
	return err
}

// tellState passes a state of an agent to the handler, as an update. The goroutine that reads the
// agent calls it.
func (c *Conn) tellState(session string, state object) {
	state["sessionUpdate"] = KindState
	update, err := json.Marshal(state)
	if err != nil {
		return // its values were JSON
	}
	id, _ := json.Marshal(session)
	c.handler.Update(id, update, false)
}
