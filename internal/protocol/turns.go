package protocol

import (
	"cmp"
	"encoding/json"
	"strconv"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// A Turn is one prompt and the work on it, with what clients show of its session.
type Turn struct {
	Name        string `json:"turn" doc:"The turn's number in the project, such as 12.3: the third of session 12."`
	Session     int64  `json:"session" doc:"The session's number in the project."`
	ID          string `json:"turn_uuid"`
	SessionUUID string `json:"session_uuid"`
	Parent      string `json:"parent,omitempty" doc:"The turn before, such as 12.2; of the first turn of a fork, one of another session. Only in turn.get and session.get."`

	State   domain.State `json:"state" doc:"cancelled: it had not started."`
	Prompt  string       `json:"prompt"`
	Summary string       `json:"summary" doc:"The first 80 characters of the prompt, or why the agent continued by itself."`
	Title   string       `json:"title"`

	SessionTitle string `json:"session_title" doc:"The title of the session, or the first 80 characters of its first prompt."`

	Agent          string `json:"agent"`
	AgentSessionID string `json:"agent_session_id,omitempty" doc:"The agent's own id of the session."`
	Model          string `json:"model,omitempty"`
	Mode           string `json:"mode" doc:"The mode in force."`
	WorkingDir     string `json:"working_dir"`
	Source         string `json:"source" doc:"What started the turn: session, task, chat, execute, decision, trigger, gate, agent, adopted, question or kept_question. gate: the prompt lists the gates that failed. agent: the agent continued by itself, without a prompt. question and kept_question: a program asks, without an agent."`
	Priority       int    `json:"priority"`
	CallerID       string `json:"caller_id,omitempty" doc:"The id that the client gave the turn."`

	CreatedAt time.Time  `json:"created_at"`
	StartedAt *time.Time `json:"started_at,omitempty" doc:"When the agent started."`
	ActiveAt  time.Time  `json:"active_at" doc:"The time of the last activity."`
	EndedAt   *time.Time `json:"ended_at,omitempty" doc:"When the turn ended, in any state."`

	Error      string `json:"error,omitempty"`
	ErrorCode  string `json:"error_code,omitempty" doc:"In capitals, such as TIMEOUT or ORPHANED."`
	StopReason string `json:"stop_reason,omitempty" doc:"The agent's stop reason."`
	Result     string `json:"result,omitempty" doc:"The agent's last message, when the turn has ended."`

	AuthMethods []domain.AuthMethod `json:"auth_methods,omitempty" doc:"The sign-in methods that the agent offers. Present if the turn failed because the user must sign in or give the agent its key."`

	CostUSD          *float64 `json:"cost_usd,omitempty"`
	InputTokens      *int64   `json:"input_tokens,omitempty"`
	OutputTokens     *int64   `json:"output_tokens,omitempty"`
	CacheReadTokens  *int64   `json:"cache_read_tokens,omitempty"`
	CacheWriteTokens *int64   `json:"cache_write_tokens,omitempty"`
	TotalTokens      *int64   `json:"total_tokens,omitempty" doc:"Input plus output."`
	ContextTokens    *int64   `json:"context_tokens,omitempty" doc:"Tokens in the context."`
	ContextSize      *int64   `json:"context_size,omitempty" doc:"Size of the context in tokens, if the agent reports it."`
	DurationMS       *int64   `json:"duration_ms,omitempty"`
	Messages         *int     `json:"messages,omitempty" doc:"Number of the agent's messages."`

	AutoAcceptEdits       bool       `json:"auto_accept_edits"`
	SkipPermissions       bool       `json:"skip_permissions"`
	SkipPermissionsUntil  *time.Time `json:"skip_permissions_until,omitempty"`
	Sandbox               string     `json:"sandbox,omitempty" doc:"The sandbox of the session: workspace or offline. Absent: none."`
	Archived              bool       `json:"archived"`
	AdditionalDirectories []string   `json:"additional_directories,omitempty"`

	SilentSince *time.Time              `json:"silent_since,omitempty" doc:"Time of the agent's last sign of life. Present while the agent is silent and the turn does not wait for a person."`
	SilentNote  string                  `json:"silent_note,omitempty" doc:"The agent's error output since then."`
	SilentTool  string                  `json:"silent_tool,omitempty" doc:"The tool call in progress. The silence is then often normal."`
	Background  []domain.BackgroundTask `json:"background,omitempty" doc:"The agent's background work while no prompt runs in the session. turn.interrupt ends it."`
	Progress    json.RawMessage         `json:"progress,omitempty"`
	Metadata    json.RawMessage         `json:"metadata,omitempty"`

	AgentMode        string            `json:"agent_mode,omitempty" doc:"The mode that the agent reports."`
	RequestedAgent   string            `json:"requested_agent,omitempty" doc:"The agent for the session's next prompt, if it differs from agent."`
	RequestedMode    string            `json:"requested_mode,omitempty" doc:"The requested mode, if it is not in force."`
	RequestedModel   string            `json:"requested_model,omitempty" doc:"The requested model, if the agent reports another one."`
	RequestedOptions map[string]string `json:"requested_options,omitempty" doc:"The requested values of the agent's options."`
	Modes            []Mode            `json:"modes,omitempty" doc:"All modes that a client can request. Only in turn.get."`
	AgentSession     *AgentSession     `json:"agent_session,omitempty" doc:"The agent's report about its session. Only in turn.get."`

	UnansweredServers []string `json:"unanswered_mcp_servers,omitempty" doc:"The agent's MCP servers that Duet has tested and that have not answered yet. Only in turn.get."`

	Gates    *Gates         `json:"gates,omitempty" doc:"The state of the gates (\"Gates\"). Absent without gates."`
	Attempts string         `json:"attempts,omitempty" doc:"The id that all attempts at the same prompt have."`
	Worktree *WorktreeState `json:"worktree,omitempty" doc:"The git worktree in which the session works."`

	Of domain.TurnInSession `json:"-"` // for dialects, whose ids it has
}

// Texts returns the texts that may be cut if a message is too long.
func (t *Turn) Texts() []*string { return []*string{&t.Prompt, &t.Error, &t.Result} }

// A Ref names a session or a turn in parameters: by its number, such as 12 or "12.3", by its uuid or
// another id of it, or as "last", which is the session that was used last. The number of a session
// means its last turn where a turn is needed.
type Ref string

// UnmarshalJSON takes a string, or the number of a session.
func (r *Ref) UnmarshalJSON(b []byte) error {
	var n int64
	if json.Unmarshal(b, &n) == nil {
		*r = Ref(strconv.FormatInt(n, 10))
		return nil
	}
	return json.Unmarshal(b, (*string)(r))
}

// JSONTypes implements schema.Typed.
func (Ref) JSONTypes() []string { return []string{"string", "integer"} }

type TurnParams struct {
	Turn Ref `json:"turn" doc:"The turn, such as 12.3; a session means its last turn."`
}

func (p TurnParams) Check() error { return NotEmpty("turn", string(p.Turn)) }

type ListTurnsParams struct {
	Session  Ref            `json:"session,omitempty" doc:"Only turns of this session."`
	States   []domain.State `json:"states,omitempty" doc:"Only turns in one of these states. Absent: all except discarded ones."`
	Agent    string         `json:"agent,omitempty" doc:"Only turns of this agent."`
	Archived *bool          `json:"archived,omitempty" doc:"true: only turns of archived sessions; false: only of the others."`
	Limit    *uint          `json:"limit,omitempty" doc:"Default 500, at most 1000."`
	Before   Ref            `json:"before,omitempty" doc:"Only turns older than this one, for paging."`
}

type TurnList struct {
	Turns      []*Turn `json:"turns"`
	NextBefore string  `json:"next_before,omitempty" doc:"Present if there may be more: pass it as before."`
}

// TurnCounts is the result of turn.count.
type TurnCounts struct {
	Total  int                  `json:"total"`
	States map[domain.State]int `json:"states" doc:"The number of turns in each state; absent: 0."`
}

type TurnResult struct {
	Turn Turn `json:"turn"`
}

// A WaitingPrompt is a queued prompt.
type WaitingPrompt struct {
	Turn      string    `json:"turn"`
	TurnUUID  string    `json:"turn_uuid"`
	Prompt    string    `json:"prompt"`
	Truncated bool      `json:"truncated,omitempty" doc:"The prompt is cut so that the list fits into a message. turn.get has all of it."`
	CreatedAt time.Time `json:"created_at"`
	Editable  bool      `json:"editable" doc:"false: no client wrote the prompt, such as one that reports failed gates. It can be cancelled, but not edited or moved."`
}

// Texts returns the texts that may be cut if a message is too long.
func (p *WaitingPrompt) Texts() []*string { return []*string{&p.Prompt} }

type QueuedTurns struct {
	Queued []*WaitingPrompt `json:"queued" doc:"The queued prompts of the session, the next one first."`
}

type InterruptTurnParams struct {
	Turn       Ref    `json:"turn" doc:"The turn, such as 12.3; a session means the turn at work, or else its last turn."`
	Reason     string `json:"reason,omitempty" doc:"The reason, stored with the turn."`
	Background string `json:"background,omitempty" doc:"Stop only this background task, by its id in background of turn.get. Agents of version 2 of the Agent Client Protocol may support this. Others stop all tasks or none, and the error not_offered says so."`
}

func (p InterruptTurnParams) Check() error { return NotEmpty("turn", string(p.Turn)) }

type InterruptTurnResult struct {
	Turn  string       `json:"turn"`
	State domain.State `json:"state" doc:"interrupting; cancelled if the turn had not started; or its final state."`

	Of domain.TurnInSession `json:"-"` // for dialects
}

type Empty struct{}

type EditTurnParams struct {
	Turn   Ref    `json:"turn" doc:"The queued turn."`
	Prompt string `json:"prompt" doc:"The new prompt."`
}

func (p EditTurnParams) Check() error {
	return cmp.Or(NotEmpty("turn", string(p.Turn)), NotEmpty("prompt", p.Prompt))
}

type MoveTurnParams struct {
	Turn   Ref `json:"turn" doc:"The queued turn."`
	Before Ref `json:"before,omitempty" doc:"Move the turn before this queued turn of the same session. Absent: to the end of the queue."`
}

func (p MoveTurnParams) Check() error { return NotEmpty("turn", string(p.Turn)) }
