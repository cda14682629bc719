package hubclient

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

// States of a task or a session.
const (
	Draft        = "draft"
	Queued       = "queued"
	Starting     = "starting"
	Running      = "running"
	WaitingInput = "waiting_input"

	Completed   = "completed"
	Failed      = "failed"
	TimedOut    = "timed_out"
	Cancelled   = "cancelled"
	Interrupted = "interrupted"
	Discarded   = "discarded"
)

// AuthRequired is the error code of a session whose agent requires a sign-in, or its key.
const AuthRequired = "AGENT_AUTH_REQUIRED"

// Ended reports whether a state is final.
func Ended(state string) bool {
	switch state {
	case Completed, Failed, TimedOut, Cancelled, Interrupted, Discarded:
		return true
	}
	return false
}

// DuetModes are Duet's own; an agent may have others.
var DuetModes = []string{"default", "acceptEdits", "bypassPermissions", "plan"}

// SessionState returns a session by any of its ids.
func SessionState(ctx context.Context, c *client.Client, id string) (protocol.Session, json.RawMessage, error) {
	r, raw, err := Call[protocol.SessionStateResult](ctx, c, "getSessionState", protocol.SessionParams{SessionID: id})
	return r.Session, raw, err
}

// Started is the result of the methods that start a session or a task.
type Started struct {
	TaskID    string   `json:"taskId"`  // of task.submit
	Task      string   `json:"task_id"` // of others
	SessionID string   `json:"session_id"`
	ThreadID  string   `json:"thread_id"`
	Agent     string   `json:"agent"`
	State     string   `json:"state"`
	Status    string   `json:"status"`
	Delivered string   `json:"delivered"` // of continueSession
	Beside    []string `json:"beside"`    // tasks that work in the same directory
}

// BesideWords warns of the sessions that may change the same files, or is "".
func (s Started) BesideWords() string {
	switch len(s.Beside) {
	case 0:
		return ""
	case 1:
		return s.Beside[0] + " works in this directory, too: both may change the same files"
	}
	return strings.Join(s.Beside, ", ") + " work in this directory, too: they may change the same files"
}

// Values of Started.Delivered: the working agent has the prompt, or it is queued. Else it started.
const (
	DeliveredInjected = "injected"
	DeliveredQueued   = "queued"
)

// SessionID returns the session of an id, or the last one for "last".
func SessionID(ctx context.Context, c *client.Client, id string) (string, error) {
	if id != "last" {
		return id, nil
	}
	list, _, err := Call[struct{ Sessions []protocol.Session }](ctx, c, "listSessions", protocol.ListSessionsParams{Limit: new(uint(1))})
	if err != nil {
		return "", err
	}
	if len(list.Sessions) == 0 {
		return "", errors.New("there is no session yet to continue")
	}
	return list.Sessions[0].ID, nil
}

// DescribeAgent returns the settings of an agent, or of a session's agent if session is given. "" is
// the default agent.
func DescribeAgent(ctx context.Context, c *client.Client, agent, session string) (protocol.AgentDescription, error) {
	if session != "" {
		s, _, err := SessionState(ctx, c, session)
		return protocol.AgentDescription{Agent: s.Agent, Modes: s.Modes, AgentSession: s.AgentSession}, err
	}
	k, _, err := Call[protocol.AgentDescription](ctx, c, "agent.describe", protocol.AgentParams{Agent: agent})
	return k, err
}

// Agents lists the configured and built-in agents.
func Agents(ctx context.Context, c *client.Client) ([]domain.Agent, error) {
	r, _, err := Call[protocol.AgentList](ctx, c, "agent.list", nil)
	return r.Agents, err
}

// Terminals lists the hub's terminals.
func Terminals(ctx context.Context, c *client.Client) ([]protocol.Terminal, json.RawMessage, error) {
	r, raw, err := Call[struct{ Terminals []protocol.Terminal }](ctx, c, "terminal.list", nil)
	return r.Terminals, raw, err
}
