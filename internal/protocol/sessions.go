package protocol

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/server"
)

// SessionParams name one session.
type SessionParams struct {
	SessionID string `json:"session_id" doc:"The session; every id of the run will do."`
}

func (p SessionParams) Check() error { return NotEmpty("session_id", p.SessionID) }

type ListSessionsParams struct {
	Limit    *uint         `json:"limit,omitempty" doc:"How many; 500 unless told, 1000 at most."`
	Before   string        `json:"before,omitempty" doc:"Only sessions older than this one, for paging."`
	Status   SessionStatus `json:"status,omitempty" doc:"Only sessions with this status; absent: all that were not discarded."`
	Archived *bool         `json:"archived,omitempty" doc:"Only archived sessions, or only others."`
	Agent    string        `json:"agent,omitempty" doc:"Only sessions of this agent."`
}

type SessionList struct {
	Sessions   []*Session `json:"sessions"`
	NextBefore string     `json:"next_before,omitempty" doc:"There may be more: pass this as before."`
}

// A LeafFilter chooses conversations (getSessionLeaves).
type LeafFilter string

// Accepted implements schema.Enum.
func (LeafFilter) Accepted() []string { return []string{"", "normal", "archived", "draft"} }

type SessionLeavesParams struct {
	Filter LeafFilter `json:"filter,omitempty" doc:"Only some conversations; absent or empty: all."`
	Limit  *uint      `json:"limit,omitempty" doc:"How many; 500 unless told, 1000 at most."`
	Before string     `json:"before,omitempty" doc:"Only sessions older than this one, for paging."`
}

type SessionStateResult struct {
	Session Session `json:"session"`
}

type InterruptParams struct {
	SessionID string `json:"session_id" doc:"The session; every id of the run will do."`
	Reason    string `json:"reason,omitempty" doc:"Why, for the record."`

	Background string `json:"background,omitempty" doc:"Stop this task of the agent's background work alone, by its id in background of getSessionState. Agents of version 2 of the Agent Client Protocol may offer that; others stop all of it or none, and the error not_offered says so."`
}

func (p InterruptParams) Check() error { return NotEmpty("session_id", p.SessionID) }

type InterruptResult struct {
	Success   bool   `json:"success"`
	SessionID string `json:"session_id"`
	Status    string `json:"status" doc:"interrupting; interrupted if it had not been started."`
}

type UpdateSettingsParams struct {
	SessionID             string            `json:"session_id" doc:"The session; every id of the run will do."`
	AutoAcceptEdits       *bool             `json:"auto_accept_edits,omitempty" doc:"Edits need no approval."`
	SkipPermissions       *bool             `json:"dangerously_skip_permissions,omitempty" doc:"Nothing needs approval. True also approves what is pending."`
	SkipTimeoutMillis     *uint             `json:"dangerously_skip_permissions_timeout_ms,omitempty" doc:"For how long, in milliseconds; 0: without end."`
	PermissionMode        *string           `json:"permission_mode,omitempty" doc:"What the agent may do without asking: default, acceptEdits, bypassPermissions, plan, or a mode of the agent's own (\"Modes\"). One that it is known not to have is refused; a plain command cannot be held to plan, which is refused."`
	Model                 *string           `json:"model,omitempty" doc:"A model that the agent has; one that it is known not to have is refused."`
	Options               map[string]string `json:"options,omitempty" doc:"Values of the agent's own options, by their ids; an empty one is not asked for any more. What it is known not to have is refused."`
	Title                 *string           `json:"title,omitempty" doc:"What to call the session."`
	Archived              *bool             `json:"archived,omitempty" doc:"Whether it is put away."`
	AdditionalDirectories *[]string         `json:"additional_directories,omitempty" doc:"Directories beside working_dir that the agent may use."`
}

func (p UpdateSettingsParams) Check() error { return NotEmpty("session_id", p.SessionID) }

type UpdateTitleParams struct {
	SessionID string `json:"session_id" doc:"The session; every id of the run will do."`
	Title     string `json:"title" doc:"What to call it; empty: nothing."`
}

func (p UpdateTitleParams) Check() error { return NotEmpty("session_id", p.SessionID) }

type DeleteSessionResult struct {
	ThreadID string `json:"thread_id"`
	Deleted  int    `json:"deleted" doc:"How many sessions are no more."`
	Kept     int    `json:"kept" doc:"How many are left, since others were forked from there."`
}

type ArchiveParams struct {
	SessionID string `json:"session_id" doc:"The session; every id of the run will do."`
	Archived  *bool  `json:"archived,omitempty" doc:"False takes it back; absent: true."`
}

func (p ArchiveParams) Check() error { return NotEmpty("session_id", p.SessionID) }

type ArchiveManyParams struct {
	SessionIDs []string `json:"session_ids" doc:"The sessions."`
	Archived   *bool    `json:"archived,omitempty" doc:"False takes them back; absent: true."`
}

func (p ArchiveManyParams) Check() error {
	if len(p.SessionIDs) == 0 {
		return server.InvalidParam(server.ParamError{Param: "session_ids", Expected: "an array that is not empty", Received: "an empty array"})
	}
	return nil
}

type ArchiveManyResult struct {
	Success        bool     `json:"success" doc:"All were changed."`
	FailedSessions []string `json:"failed_sessions,omitempty" doc:"Those that could not be changed."`
}

type RecentPathsParams struct {
	Limit *uint `json:"limit,omitempty" doc:"How many; 20 unless told, 1000 at most."`
}

type RecentPath struct {
	Path       string    `json:"path"`
	LastUsed   time.Time `json:"last_used"`
	UsageCount int       `json:"usage_count"`
}

type RecentPathsResult struct {
	Paths []RecentPath `json:"paths"`
}

// A Session is a run as HumanLayer shows it: with the members of getSessionState
// and of listSessions, of its first clients and of today's, and ours.
type Session struct {
	ID              string `json:"id"`
	RunID           string `json:"run_id"`
	ClaudeSessionID string `json:"claude_session_id,omitempty" doc:"The agent's own id of the conversation, whatever the agent is."`
	ParentSessionID string `json:"parent_session_id,omitempty"`
	Status          string `json:"status" doc:"draft, starting, running, waiting_input, interrupting, interrupted, completed, failed or discarded."`
	Query           string `json:"query"`
	Summary         string `json:"summary" doc:"The query's first 80 characters."`
	Title           string `json:"title"`

	ConversationTitle string `json:"conversation_title" doc:"What the conversation is called: its title, or the first 80 characters of its first query."`

	Model      string `json:"model,omitempty"`
	WorkingDir string `json:"working_dir"`

	CreatedAt      time.Time  `json:"created_at"`
	StartTime      time.Time  `json:"start_time" doc:"The same as created_at."`
	StartedAt      *time.Time `json:"started_at,omitempty" doc:"When the agent began."`
	LastActivityAt time.Time  `json:"last_activity_at"`
	CompletedAt    *time.Time `json:"completed_at,omitempty" doc:"When it ended, however it ended."`
	EndTime        *time.Time `json:"end_time,omitempty" doc:"The same as completed_at."`

	Error        string `json:"error,omitempty"`
	ErrorMessage string `json:"error_message,omitempty" doc:"The same as error."`
	ErrorCode    string `json:"error_code,omitempty" doc:"In capitals: TIMEOUT, ORPHANED, ..."`

	AuthMethods []domain.AuthMethod `json:"auth_methods,omitempty" doc:"It failed because somebody has to sign in, or to give the agent its key: the ways that the agent offers."`

	StopReason string `json:"stop_reason,omitempty" doc:"The agent's own."`

	CostUSD                  *float64       `json:"cost_usd,omitempty"`
	InputTokens              *int64         `json:"input_tokens,omitempty"`
	OutputTokens             *int64         `json:"output_tokens,omitempty"`
	CacheReadInputTokens     *int64         `json:"cache_read_input_tokens,omitempty"`
	CacheCreationInputTokens *int64         `json:"cache_creation_input_tokens,omitempty"`
	TotalTokens              *int64         `json:"total_tokens,omitempty" doc:"Input and output."`
	EffectiveContextTokens   *int64         `json:"effective_context_tokens,omitempty" doc:"Tokens in the context."`
	ContextLimit             *int64         `json:"context_limit,omitempty" doc:"Tokens that fit into the context, where the agent tells."`
	DurationMS               *int64         `json:"duration_ms,omitempty"`
	NumTurns                 *int           `json:"num_turns,omitempty" doc:"Messages of the agent."`
	Result                   *SessionResult `json:"result,omitempty" doc:"Once it has ended."`

	AutoAcceptEdits          bool       `json:"auto_accept_edits"`
	SkipPermissions          bool       `json:"dangerously_skip_permissions"`
	SkipPermissionsExpiresAt *time.Time `json:"dangerously_skip_permissions_expires_at,omitempty"`
	Archived                 bool       `json:"archived"`
	ProxyEnabled             bool       `json:"proxy_enabled"`
	AdditionalDirectories    []string   `json:"additional_directories,omitempty"`

	Agent          string                  `json:"agent"`
	ThreadID       string                  `json:"thread_id" doc:"The conversation."`
	TaskID         string                  `json:"task_id" doc:"The same run under its name as a task."`
	CallerTaskID   string                  `json:"caller_task_id,omitempty" doc:"The id that the caller of execute_prompt gave it."`
	PermissionMode string                  `json:"permission_mode" doc:"The one in force."`
	Source         string                  `json:"source" doc:"What asked for it: task, chat, session, execute or decision; trigger; gate, where gates that failed are the query; agent, where the agent went on by itself, without a query; adopted; question or kept_question of a program that asks by askUser or requestPermission."`
	Priority       int                     `json:"priority"`
	State          string                  `json:"state" doc:"The run's own state, which tells queued from starting and timed_out from failed."`
	SilentSince    *time.Time              `json:"silent_since,omitempty" doc:"The agent gives no sign of life, and nobody else has to do something first: when its last one was."`
	SilentNote     string                  `json:"silent_note,omitempty" doc:"What it has complained of since then."`
	SilentTool     string                  `json:"silent_tool,omitempty" doc:"The tool call that it is in the middle of. Then it need not be trouble."`
	Background     []domain.BackgroundTask `json:"background,omitempty" doc:"What the agent of the conversation does in the background, while no prompt runs there. interruptSession ends it."`
	Progress       json.RawMessage         `json:"progress,omitempty"`
	Metadata       json.RawMessage         `json:"metadata,omitempty"`

	AgentMode        string            `json:"agent_mode,omitempty" doc:"The mode that the agent says it is in."`
	RequestedAgent   string            `json:"requested_agent,omitempty" doc:"The agent that the conversation goes on with, if it is not the one of this session."`
	RequestedMode    string            `json:"requested_mode,omitempty" doc:"The mode that was asked for, if it is not the one in force."`
	RequestedModel   string            `json:"requested_model,omitempty" doc:"The model that was asked for, if the agent says that it works with another one."`
	RequestedOptions map[string]string `json:"requested_options,omitempty" doc:"Values of the agent's options that were asked for."`
	Modes            []Mode            `json:"modes,omitempty" doc:"All modes that can be asked for. Of getSessionState alone."`
	AgentSession     *AgentSession     `json:"agent_session,omitempty" doc:"What the agent tells of its session. Of getSessionState alone."`

	UnansweredServers []string `json:"unanswered_mcp_servers,omitempty" doc:"MCP servers of the agent that were tried when it got them and have not answered yet. Of getSessionState alone."`

	Gates *Gates `json:"gates,omitempty" doc:"Of work that has gates (\"Gates\"): where it stands."`
}

// A SessionResult is what Claude Code prints last, and so what HumanLayer's
// clients know a result by.
type SessionResult struct {
	Type          string  `json:"type" doc:"result"`
	Subtype       string  `json:"subtype" doc:"session_completed, session_failed or session_interrupted."`
	TotalCostUSD  float64 `json:"total_cost_usd"`
	IsError       bool    `json:"is_error"`
	DurationMS    int64   `json:"duration_ms"`
	DurationAPIMS int64   `json:"duration_api_ms"`
	NumTurns      int     `json:"num_turns"`
	Result        string  `json:"result" doc:"The agent's last message."`
	SessionID     string  `json:"session_id" doc:"The agent's own id of the conversation."`
	Error         string  `json:"error,omitempty"`
}

func (s *Session) Texts() []*string {
	list := []*string{&s.Query, &s.Error, &s.ErrorMessage}
	if s.Result != nil {
		list = append(list, &s.Result.Result, &s.Result.Error)
	}
	return list
}

// AgentSettings are what launchSession and continueSession have in common.
type AgentSettings struct {
	SystemPrompt          string          `json:"system_prompt,omitempty" doc:"Replaces the agent's system prompt, where it has one."`
	AppendSystemPrompt    string          `json:"append_system_prompt,omitempty" doc:"Follows the system prompt."`
	CustomInstructions    string          `json:"custom_instructions,omitempty" doc:"Further instructions."`
	MCPConfig             json.RawMessage `json:"mcp_config,omitempty" doc:"{mcpServers:{name:{command,args?,env?}}} or {…:{type,url,headers?}}; also as a string that holds this JSON."`
	PermissionPromptTool  string          `json:"permission_prompt_tool,omitempty" doc:"Kept for old clients; permissions are asked by approvals."`
	AllowedTools          []string        `json:"allowed_tools,omitempty" doc:"The only tools the agent may use, and without being asked for; empty: all, or as the session before might."`
	DisallowedTools       []string        `json:"disallowed_tools,omitempty" doc:"Tools the agent may not use."`
	AdditionalDirectories []string        `json:"additional_directories,omitempty" doc:"Directories beside working_dir that the agent may use."`
	ReadsFiles            bool            `json:"reads_files,omitempty" doc:"This connection has files otherwise than the disk: where the agent reads a text file through Duet, the connection is asked for it (\"Files\")."`
	MaxTurns              int             `json:"max_turns,omitempty" doc:"How many turns the agent may take: rounds of tool calls; 0: as configured. Then it is interrupted."`
	Budget                *RunBudget      `json:"budget,omitempty" doc:"How much each run of the conversation may use, in the place of what is configured ([budget.run]); absent: as the session before."`
}

// A MCPServerConfig is how HumanLayer's clients configure a server: its name stands
// before it.
type MCPServerConfig struct {
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
	Type    string            `json:"type"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
}

type LaunchParams struct {
	Query      string `json:"query" doc:"What the agent is to do."`
	Title      string `json:"title,omitempty" doc:"What to call the session."`
	Model      string `json:"model,omitempty" doc:"A model that the agent has. One that it is known not to have is refused; an agent that does not say which it has is left alone."`
	WorkingDir string `json:"working_dir,omitempty" doc:"The directory in which the agent works; ~ is expanded; absent: the project's root."`
	AgentSettings
	PromptContent
	Verbose           bool   `json:"verbose,omitempty" doc:"Kept for old clients."`
	AutoAcceptEdits   bool   `json:"auto_accept_edits,omitempty" doc:"Edits need no approval."`
	SkipPermissions   bool   `json:"dangerously_skip_permissions,omitempty" doc:"Nothing needs approval."`
	SkipTimeout       *int64 `json:"dangerously_skip_permissions_timeout,omitempty" doc:"For how long, in milliseconds; absent or 0: without end."`
	SkipTimeoutMillis *int64 `json:"dangerously_skip_permissions_timeout_ms,omitempty" doc:"Another name for dangerously_skip_permissions_timeout."`

	Agent          string            `json:"agent,omitempty" doc:"The agent's name in the configuration; absent: the default one."`
	PermissionMode string            `json:"permission_mode,omitempty" doc:"What the agent may do without asking: default, acceptEdits, bypassPermissions, plan, or a mode of the agent's own (\"Modes\"). One that it is known not to have is refused; a plain command cannot be held to plan, which is refused."`
	Options        map[string]string `json:"options,omitempty" doc:"Values of the agent's own options, by their ids. What it is known not to have is refused."`
	Priority       int               `json:"priority,omitempty" doc:"Higher first."`
	TimeoutMS      *uint             `json:"timeout_ms,omitempty" doc:"How long it may run, in milliseconds; absent or 0: as configured."`
	ConversationID string            `json:"conversation_id,omitempty" doc:"A UUID that the caller has chosen to be the thread_id of the conversation. Where there is one with that id the session follows in it."`
	Gated
	Draft    bool            `json:"draft,omitempty" doc:"Only keep it; continueSession launches it."`
	Metadata json.RawMessage `json:"metadata,omitempty" doc:"An object to keep with the session."`
}

type LaunchResult struct {
	SessionID string `json:"session_id"`
	RunID     string `json:"run_id"`
	TaskID    string `json:"task_id" doc:"The same under its name as a task."`
	ThreadID  string `json:"thread_id" doc:"The conversation."`
	Agent     string `json:"agent" doc:"The agent that was taken."`
	Status    string `json:"status"`
}

type ContinueParams struct {
	SessionID string  `json:"session_id" doc:"The session to go on from; every id of the run will do."`
	Query     *string `json:"query,omitempty" doc:"What the agent is to do. Needed, unless the session is a draft, which has its own."`
	AgentSettings
	PromptContent
	Fork     bool            `json:"fork,omitempty" doc:"Begins another conversation there, also behind the last session of one."`
	ForkID   string          `json:"conversation_id,omitempty" doc:"With fork: a UUID that the caller has chosen to be the thread_id of the new conversation."`
	Priority int             `json:"priority,omitempty" doc:"Higher first."`
	Metadata json.RawMessage `json:"metadata,omitempty" doc:"An object to keep with the session."`
	Deliver  string          `json:"deliver,omitempty" doc:"queue (the default): the prompt waits until the turn that is under way has ended. steer: the agent gets it while it works, if it can take it; else it waits, too. A prompt with content, other settings or gates waits in any case."`

	TimeoutMS *uint `json:"timeout_ms,omitempty" doc:"How long it may run, in milliseconds; absent or 0: as the session before."`
	Gated
}

type ContinueResult struct {
	LaunchResult
	ClaudeSessionID string `json:"claude_session_id" doc:"The agent's own id of the conversation; empty before its first turn."`
	ParentSessionID string `json:"parent_session_id"`
	Delivered       string `json:"delivered" doc:"injected: the agent that works has the prompt, and session_id is its session; started; or queued."`
}

type EditQueuedParams struct {
	SessionID string `json:"session_id" doc:"The queued session; every id of the run will do."`
	Query     string `json:"query" doc:"What the agent is to do instead."`
}

func (p EditQueuedParams) Check() error {
	return cmp.Or(NotEmpty("session_id", p.SessionID), NotEmpty("query", p.Query))
}

type MoveQueuedParams struct {
	SessionID string `json:"session_id" doc:"The queued session; every id of the run will do."`
	Before    string `json:"before,omitempty" doc:"The queued session of the same conversation before which it is to run; absent: it runs last."`
}

func (p MoveQueuedParams) Check() error { return NotEmpty("session_id", p.SessionID) }

type QueueResult struct {
	Queued []*QueuedPrompt `json:"queued" doc:"The next one first."`
}

type QueuedPrompt struct {
	SessionID string    `json:"session_id"`
	TaskID    string    `json:"task_id"`
	Query     string    `json:"query"`
	Truncated bool      `json:"truncated,omitempty" doc:"The query is cut, so that the list fits into a message; getConversation has all of it."`
	CreatedAt time.Time `json:"created_at"`
	Editable  bool      `json:"editable" doc:"False: no client has written it, such as what gates complain of. It can be cancelled, but neither edited nor moved."`
}

func (p *QueuedPrompt) Texts() []*string { return []*string{&p.Query} }
