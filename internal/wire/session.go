package wire

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

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

// StoreFull is the error code of a session that a full disk has ended.
const StoreFull = "STORE_FULL"

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

// A Session is one prompt and what an agent made of it.
type Session struct {
	ID                string                `json:"id"`
	TaskID            string                `json:"task_id"`
	ThreadID          string                `json:"thread_id"`
	ParentID          string                `json:"parent_session_id"`
	Status            string                `json:"status"`
	State             string                `json:"state"`
	Agent             string                `json:"agent"`
	Query             string                `json:"query"`
	Title             string                `json:"title"`
	ConversationTitle string                `json:"conversation_title"` // or its first words
	Summary           string                `json:"summary"`            // of what a human asked for
	Archived          bool                  `json:"archived"`
	Model             string                `json:"model"`
	Mode              string                `json:"permission_mode"`
	WorkingDir        string                `json:"working_dir"`
	UnansweredServers []string              `json:"unanswered_mcp_servers"`
	CreatedAt         string                `json:"created_at"`
	CompletedAt       string                `json:"completed_at"`
	LastActivity      string                `json:"last_activity_at"`
	Error             string                `json:"error"`
	ErrorCode         string                `json:"error_code"`
	AuthMethods       []domain.AuthMethod   `json:"auth_methods"` // of one that failed because somebody has to sign in
	StopReason        string                `json:"stop_reason"`
	AgentSessionID    string                `json:"claude_session_id"`
	Milliseconds      int64                 `json:"duration_ms"`
	AgentMode         string                `json:"agent_mode"`
	RequestedAgent    string                `json:"requested_agent"`
	RequestedMode     string                `json:"requested_mode"`
	RequestedModel    string                `json:"requested_model"`
	AgentSession      protocol.AgentSession `json:"agent_session"`
	Modes             []domain.Choice       `json:"modes"`
	Directories       []string              `json:"additional_directories"`
	RequestedOptions  map[string]string     `json:"requested_options"`
	Metadata          json.RawMessage       `json:"metadata"`

	InputTokens  int64   `json:"input_tokens"`
	OutputTokens int64   `json:"output_tokens"`
	CacheRead    int64   `json:"cache_read_input_tokens"`
	CacheWrite   int64   `json:"cache_creation_input_tokens"`
	TotalTokens  int64   `json:"total_tokens"`
	ContextUsed  int64   `json:"effective_context_tokens"`
	ContextSize  int64   `json:"context_limit"`
	CostUSD      float64 `json:"cost_usd"`

	Gates      *protocol.Gates         `json:"gates"`      // nil: it has none
	Background []domain.BackgroundTask `json:"background"` // of its conversation

	Silence
	Result *struct {
		Result string `json:"result"`
	} `json:"result"`
}

// Kinds of background tasks.
const (
	BackgroundToolCall = "tool_call"
	BackgroundTerminal = "terminal"
	BackgroundProcess  = "process"
)

// BackgroundTitles are the titles of what its agent does in the background, or "".
func (s Session) BackgroundTitles() string {
	titles := make([]string, len(s.Background))
	for i, b := range s.Background {
		titles[i] = cmp.Or(b.Title, b.Kind)
	}
	return strings.Join(titles, ", ")
}

// A Silence is that the agent of a session gives no sign of life.
type Silence struct {
	SilentSince time.Time `json:"silent_since"` // zero: it is not silent
	SilentNote  string    `json:"silent_note"`  // what it has complained of since
	SilentTool  string    `json:"silent_tool"`  // the tool call that it is in the middle of
}

// Called is what people know it by: its title, or what was asked for.
func (s Session) Called() string { return cmp.Or(s.Title, s.Summary, s.Query) }

// Outcome is how it ended, in words.
func (s Session) Outcome() string {
	if s.Status == Completed {
		switch s.StopReason { // of the Agent Client Protocol
		case "refusal":
			return Completed + ": the agent refused to go on"
		case "max_tokens":
			return Completed + ": cut off, it has reached its limit of tokens"
		case "max_turn_requests":
			return Completed + ": cut off, it has reached its limit of requests in a turn"
		}
	}
	if s.Status == Completed && s.Gates.Failed() {
		return "gates " + s.Gates.Words()
	}
	if s.Status == Completed && s.Gates != nil && s.Gates.State == GatesPassed {
		return Completed + ", gates " + s.Gates.Words()
	}
	if s.Status == Completed && s.Gates != nil && s.Gates.State == GatesStopped {
		return Completed + ", the check of the gates was " + s.Gates.Words()
	}
	return outcome(s.Status, s.Error, s.ErrorCode)
}

// outcome is how something ended, and why unless it completed.
func outcome(state, why, code string) string {
	if state == Completed || why == "" {
		return state
	}
	if code != "" {
		return fmt.Sprintf("%s: %s (%s)", state, why, code)
	}
	return state + ": " + why
}

// SessionState asks for a session, by any of its ids.
func SessionState(ctx context.Context, c *client.Client, id string) (Session, json.RawMessage, error) {
	r, raw, err := Call[struct{ Session Session }](ctx, c, "getSessionState", map[string]string{"session_id": id})
	return r.Session, raw, err
}

// Started is what the hub answers to whoever asked for a session or a task.
type Started struct {
	TaskID    string `json:"taskId"`  // of task.submit
	Task      string `json:"task_id"` // of others
	SessionID string `json:"session_id"`
	ThreadID  string `json:"thread_id"`
	Agent     string `json:"agent"`
	State     string `json:"state"`
	Status    string `json:"status"`
	Delivered string `json:"delivered"` // of continueSession
}

// Values of Started.Delivered: the agent that works has the prompt, or it is queued; else it
// has started.
const (
	DeliveredInjected = "injected"
	DeliveredQueued   = "queued"
)

// A Task is a session as the methods of tasks tell it.
type Task struct {
	ID        string          `json:"id"`
	Prompt    string          `json:"prompt"`
	Agent     string          `json:"agent"`
	Priority  int             `json:"priority"`
	State     string          `json:"state"`
	CreatedAt string          `json:"createdAt"`
	ErrorCode string          `json:"error_code"`
	Status    string          `json:"status"`  // as sessions have it
	Summary   string          `json:"summary"` // of what a human asked for
	Gates     *protocol.Gates `json:"gates"`   // nil: it has none
}

// StateInWords is the state of a task, of which one that waits for a human says so,
// and one that failed because of what.
func (t Task) StateInWords() string {
	switch {
	case t.Status == WaitingInput:
		return "waiting" + t.Gates.Short()
	case t.State == Completed || t.ErrorCode == "":
		return t.State + t.Gates.Short()
	}
	return t.State + ": " + t.ErrorCode
}

// A TaskState is all of a task.
type TaskState struct {
	Task
	SessionID   string `json:"session_id"`
	ThreadID    string `json:"thread_id"`
	CWD         string `json:"cwd"`
	Title       string `json:"title"`
	StartedAt   string `json:"startedAt"`
	CompletedAt string `json:"completedAt"`
	Output      string `json:"output"`
	Error       string `json:"error"`
}

// Outcome is how it ended, in words.
func (t TaskState) Outcome() string {
	if t.State == Completed && t.Gates != nil {
		return Completed + ", gates: " + t.Gates.Words()
	}
	return outcome(t.State, t.Error, t.ErrorCode)
}

// SessionID is the session that somebody means: by any of its ids, or as last.
func SessionID(ctx context.Context, c *client.Client, id string) (string, error) {
	if id != "last" {
		return id, nil
	}
	list, _, err := Call[struct{ Sessions []Session }](ctx, c, "listSessions", map[string]int{"limit": 1})
	if err != nil {
		return "", err
	}
	if len(list.Sessions) == 0 {
		return "", errors.New("there is no session yet to continue")
	}
	return list.Sessions[0].ID, nil
}

// An AgentDescription is what can be asked of an agent.
type AgentDescription struct {
	Agent        string                `json:"agent"`
	Modes        []domain.Choice       `json:"modes"`
	AgentSession protocol.AgentSession `json:"agent_session"`
}

// DescribeAgent asks what can be asked of an agent, or of the agent of a session if that
// is given; "" is the default agent.
func DescribeAgent(ctx context.Context, c *client.Client, agent, session string) (AgentDescription, error) {
	if session != "" {
		s, _, err := SessionState(ctx, c, session)
		return AgentDescription{s.Agent, s.Modes, s.AgentSession}, err
	}
	params := map[string]string{}
	if agent != "" {
		params["agent"] = agent
	}
	k, _, err := Call[AgentDescription](ctx, c, "agent.describe", params)
	return k, err
}

// An Agent is one that is configured or known.
type Agent struct {
	Name      string `json:"name"`
	Title     string `json:"title"`
	Available bool   `json:"available"`
}

// Agents are those that are configured or known.
func Agents(ctx context.Context, c *client.Client) ([]Agent, error) {
	r, _, err := Call[struct{ Agents []Agent }](ctx, c, "agent.list", nil)
	return r.Agents, err
}

// AddSettings adds to the parameters of a method those members that are not empty, and
// options of an agent, by their ids.
func AddSettings(params map[string]any, members, options map[string]string) {
	for name, value := range members {
		if value != "" {
			params[name] = value
		}
	}
	if len(options) > 0 {
		params["options"] = options
	}
}
