// Package humanlayer has the dialect of HumanLayer's clients (hld, specification 001): the names, shapes
// and states of their methods over the native ones of package protocol. See docs/protocol.md.
package humanlayer

import (
	"encoding/json"
	"math"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/server"
)

type ListSessionsParams struct {
	Limit    *uint         `json:"limit,omitempty" doc:"Default 500, at most 1000."`
	Before   string        `json:"before,omitempty" doc:"Only sessions older than this session, for paging."`
	Status   SessionStatus `json:"status,omitempty" doc:"Only sessions with this status. Absent: all except discarded ones."`
	Archived *bool         `json:"archived,omitempty" doc:"true: only archived sessions; false: only the others."`
	Agent    string        `json:"agent,omitempty" doc:"Only sessions of this agent."`
}

type SessionLeavesParams struct {
	Filter protocol.LeafFilter `json:"filter,omitempty" doc:"Absent or empty: all conversations."`
	Limit  *uint               `json:"limit,omitempty" doc:"Default 500, at most 1000."`
	Before string              `json:"before,omitempty" doc:"Only sessions older than this session, for paging."`
}

type SessionList struct {
	Sessions   []*Session `json:"sessions"`
	NextBefore string     `json:"next_before,omitempty" doc:"Present if there may be more: pass it as before."`
}

type SessionStateResult struct {
	Session Session `json:"session"`
}

// A Session is a run in HumanLayer's form: the members of getSessionState and listSessions for its
// first and current clients, and ours.
type Session struct {
	ID              string `json:"id"`
	RunID           string `json:"run_id"`
	ClaudeSessionID string `json:"claude_session_id,omitempty" doc:"The agent's id of its session, for every agent."`
	ParentSessionID string `json:"parent_session_id,omitempty"`
	Status          string `json:"status" doc:"draft, starting, running, waiting_input, interrupting, interrupted, completed, failed or discarded."`
	Query           string `json:"query"`
	Summary         string `json:"summary" doc:"The first 80 characters of the query."`
	Title           string `json:"title"`

	ConversationTitle string `json:"conversation_title" doc:"The title of the conversation, or the first 80 characters of its first query."`

	Model      string `json:"model,omitempty"`
	WorkingDir string `json:"working_dir"`

	CreatedAt      time.Time  `json:"created_at"`
	StartTime      time.Time  `json:"start_time" doc:"Same as created_at."`
	StartedAt      *time.Time `json:"started_at,omitempty" doc:"When the agent started."`
	LastActivityAt time.Time  `json:"last_activity_at"`
	CompletedAt    *time.Time `json:"completed_at,omitempty" doc:"When the run ended, in any state."`
	EndTime        *time.Time `json:"end_time,omitempty" doc:"Same as completed_at."`

	Error        string `json:"error,omitempty"`
	ErrorMessage string `json:"error_message,omitempty" doc:"Same as error."`
	ErrorCode    string `json:"error_code,omitempty" doc:"In capitals, such as TIMEOUT or ORPHANED."`

	AuthMethods []domain.AuthMethod `json:"auth_methods,omitempty" doc:"The sign-in methods that the agent offers. Present if the run failed because the user must sign in or give the agent its key."`

	StopReason string `json:"stop_reason,omitempty" doc:"The agent's stop reason."`

	CostUSD                  *float64       `json:"cost_usd,omitempty"`
	InputTokens              *int64         `json:"input_tokens,omitempty"`
	OutputTokens             *int64         `json:"output_tokens,omitempty"`
	CacheReadInputTokens     *int64         `json:"cache_read_input_tokens,omitempty"`
	CacheCreationInputTokens *int64         `json:"cache_creation_input_tokens,omitempty"`
	TotalTokens              *int64         `json:"total_tokens,omitempty" doc:"Input plus output."`
	EffectiveContextTokens   *int64         `json:"effective_context_tokens,omitempty" doc:"Tokens in the context."`
	ContextLimit             *int64         `json:"context_limit,omitempty" doc:"Size of the context in tokens, if the agent reports it."`
	DurationMS               *int64         `json:"duration_ms,omitempty"`
	NumTurns                 *int           `json:"num_turns,omitempty" doc:"Number of the agent's messages."`
	Result                   *SessionResult `json:"result,omitempty" doc:"Present when the run has ended."`

	AutoAcceptEdits          bool       `json:"auto_accept_edits"`
	SkipPermissions          bool       `json:"dangerously_skip_permissions"`
	SkipPermissionsExpiresAt *time.Time `json:"dangerously_skip_permissions_expires_at,omitempty"`
	Archived                 bool       `json:"archived"`
	ProxyEnabled             bool       `json:"proxy_enabled"`
	AdditionalDirectories    []string   `json:"additional_directories,omitempty"`

	Agent          string                  `json:"agent"`
	ThreadID       string                  `json:"thread_id" doc:"The conversation's id."`
	TaskID         string                  `json:"task_id" doc:"The task id of the same run."`
	CallerTaskID   string                  `json:"caller_task_id,omitempty" doc:"The task_id that the client passed to execute_prompt."`
	PermissionMode string                  `json:"permission_mode" doc:"The mode in force."`
	Source         string                  `json:"source" doc:"What started the run: task, chat, session, execute, decision, trigger, gate, agent, adopted, question or kept_question. gate: the query lists the gates that failed. agent: the agent continued by itself, without a query. question and kept_question: a program called askUser or requestPermission."`
	Priority       int                     `json:"priority"`
	State          string                  `json:"state" doc:"The run's state. It distinguishes queued from starting, and timed_out from failed."`
	SilentSince    *time.Time              `json:"silent_since,omitempty" doc:"Time of the agent's last sign of life. Present while the agent is silent and the run does not wait for a person."`
	SilentNote     string                  `json:"silent_note,omitempty" doc:"The agent's error output since then."`
	SilentTool     string                  `json:"silent_tool,omitempty" doc:"The tool call in progress. The silence is then often normal."`
	Background     []domain.BackgroundTask `json:"background,omitempty" doc:"The agent's background work while no prompt runs in the conversation. interruptSession ends it."`
	Progress       json.RawMessage         `json:"progress,omitempty"`
	Metadata       json.RawMessage         `json:"metadata,omitempty"`

	AgentMode        string                 `json:"agent_mode,omitempty" doc:"The mode that the agent reports."`
	RequestedAgent   string                 `json:"requested_agent,omitempty" doc:"The agent for the conversation's next prompt, if it differs from agent."`
	RequestedMode    string                 `json:"requested_mode,omitempty" doc:"The requested mode, if it is not in force."`
	RequestedModel   string                 `json:"requested_model,omitempty" doc:"The requested model, if the agent reports another one."`
	RequestedOptions map[string]string      `json:"requested_options,omitempty" doc:"The requested values of the agent's options."`
	Modes            []protocol.Mode        `json:"modes,omitempty" doc:"All modes that a client can request. Only in getSessionState."`
	AgentSession     *protocol.AgentSession `json:"agent_session,omitempty" doc:"The agent's report about its session. Only in getSessionState."`

	UnansweredServers []string `json:"unanswered_mcp_servers,omitempty" doc:"The agent's MCP servers that Duet has tested and that have not answered yet. Only in getSessionState."`

	Gates *protocol.Gates `json:"gates,omitempty" doc:"The state of the gates (\"Gates\"). Absent without gates."`

	Attempts string `json:"attempts,omitempty" doc:"The id that all attempts at the same prompt have."`

	Worktree *protocol.WorktreeState `json:"worktree,omitempty" doc:"The git worktree in which the conversation works. Only in getSessionState, listSessions and getSessionLeaves."`
}

// A SessionResult is the last output of Claude Code, the form of a result that HumanLayer's clients
// know.
type SessionResult struct {
	Type          string  `json:"type" doc:"result"`
	Subtype       string  `json:"subtype" doc:"session_completed, session_failed or session_interrupted."`
	TotalCostUSD  float64 `json:"total_cost_usd"`
	IsError       bool    `json:"is_error"`
	DurationMS    int64   `json:"duration_ms"`
	DurationAPIMS int64   `json:"duration_api_ms"`
	NumTurns      int     `json:"num_turns"`
	Result        string  `json:"result" doc:"The agent's last message."`
	SessionID     string  `json:"session_id" doc:"The agent's id of its session."`
	Error         string  `json:"error,omitempty"`
}

func (s *Session) Texts() []*string {
	list := []*string{&s.Query, &s.Error, &s.ErrorMessage}
	if s.Result != nil {
		list = append(list, &s.Result.Result, &s.Result.Error)
	}
	return list
}

// SessionOf returns a turn in HumanLayer's form.
func SessionOf(t *protocol.Turn) *Session {
	of := t.Of
	s := &Session{
		ID: of.HumanLayerSession, RunID: of.HumanLayerRun, ClaudeSessionID: t.AgentSessionID, ParentSessionID: of.ParentHumanLayerSession,
		Status: StatusOf(of.State), Query: t.Prompt, Summary: t.Summary, Title: t.Title, ConversationTitle: t.SessionTitle,
		Model: t.Model, WorkingDir: t.WorkingDir,
		CreatedAt: t.CreatedAt, StartTime: t.CreatedAt, StartedAt: t.StartedAt, LastActivityAt: t.ActiveAt, CompletedAt: t.EndedAt,
		EndTime: t.EndedAt,
		Error:   t.Error, ErrorMessage: t.Error, ErrorCode: t.ErrorCode, AuthMethods: t.AuthMethods, StopReason: t.StopReason,
		CostUSD: t.CostUSD, InputTokens: t.InputTokens, OutputTokens: t.OutputTokens, CacheReadInputTokens: t.CacheReadTokens,
		CacheCreationInputTokens: t.CacheWriteTokens, TotalTokens: t.TotalTokens, EffectiveContextTokens: t.ContextTokens,
		ContextLimit: t.ContextSize,
		DurationMS:   t.DurationMS, NumTurns: t.Messages,
		AutoAcceptEdits: t.AutoAcceptEdits, SkipPermissions: t.SkipPermissions, SkipPermissionsExpiresAt: t.SkipPermissionsUntil,
		Archived: t.Archived, AdditionalDirectories: t.AdditionalDirectories,
		Agent: t.Agent, ThreadID: t.SessionUUID, TaskID: domain.TaskName(of.Task), CallerTaskID: t.CallerID, PermissionMode: t.Mode,
		Source:   t.Source,
		Priority: t.Priority, State: string(t.State), SilentSince: t.SilentSince, SilentNote: t.SilentNote, SilentTool: t.SilentTool,
		Background: t.Background,
		Progress:   t.Progress, Metadata: t.Metadata, AgentMode: t.AgentMode, RequestedAgent: t.RequestedAgent, RequestedMode: t.RequestedMode,
		RequestedModel: t.RequestedModel, RequestedOptions: t.RequestedOptions, Modes: t.Modes, AgentSession: t.AgentSession,
		UnansweredServers: t.UnansweredServers, Gates: t.Gates, Attempts: t.Attempts, Worktree: t.Worktree,
	}
	if of.State.Ended() {
		s.Result = resultOf(t)
	}
	return s
}

func resultOf(t *protocol.Turn) *SessionResult {
	status := StatusOf(t.Of.State)
	return &SessionResult{
		Type: "result", Subtype: "session_" + status, TotalCostUSD: protocol.Value(t.CostUSD), IsError: status == string(domain.Failed),
		DurationMS: protocol.Value(t.DurationMS), NumTurns: protocol.Value(t.Messages), Result: t.Result, SessionID: t.AgentSessionID,
		Error: t.Error,
	}
}

// SessionParams name a session.
type SessionParams struct {
	SessionID string `json:"session_id" doc:"The session, by any id of the run."`
}

func (p SessionParams) Check() error { return protocol.NotEmpty("session_id", p.SessionID) }

type InterruptParams struct {
	SessionID string `json:"session_id" doc:"The session, by any id of the run."`
	Reason    string `json:"reason,omitempty" doc:"The reason, stored with the run."`

	Background string `json:"background,omitempty" doc:"Stop only this background task, by its id in background of getSessionState. Agents of version 2 of the Agent Client Protocol may support this. Others stop all tasks or none, and the error not_offered says so."`
}

func (p InterruptParams) Check() error { return protocol.NotEmpty("session_id", p.SessionID) }

type InterruptResult struct {
	Success   bool   `json:"success"`
	SessionID string `json:"session_id"`
	Status    string `json:"status" doc:"interrupting, or interrupted if the run had not started."`
}

type UpdateSettingsParams struct {
	SessionID             string            `json:"session_id" doc:"The session, by any id of the run."`
	AutoAcceptEdits       *bool             `json:"auto_accept_edits,omitempty" doc:"File edits need no approval."`
	SkipPermissions       *bool             `json:"dangerously_skip_permissions,omitempty" doc:"No tool call needs approval. true also approves pending questions."`
	SkipTimeoutMillis     *uint             `json:"dangerously_skip_permissions_timeout_ms,omitempty" doc:"Duration in milliseconds; 0: unlimited."`
	PermissionMode        *string           `json:"permission_mode,omitempty" doc:"What the agent may do without asking: default, acceptEdits, bypassPermissions, plan, or a mode of the agent (\"Modes\"). A mode that the agent is known not to have is refused, and so is plan for a plain command."`
	Model                 *string           `json:"model,omitempty" doc:"A model of the agent. A model that the agent is known not to have is refused."`
	Options               map[string]string `json:"options,omitempty" doc:"Values of the agent's options, by option id. An empty value ends the request for that option. A value that the agent is known not to have is refused."`
	Title                 *string           `json:"title,omitempty" doc:"The session's title."`
	Archived              *bool             `json:"archived,omitempty" doc:"true archives the conversation, false restores it."`
	AdditionalDirectories *[]string         `json:"additional_directories,omitempty" doc:"Directories in addition to working_dir that the agent may use."`
}

func (p UpdateSettingsParams) Check() error { return protocol.NotEmpty("session_id", p.SessionID) }

type UpdateTitleParams struct {
	SessionID string `json:"session_id" doc:"The session, by any id of the run."`
	Title     string `json:"title" doc:"The new title. Empty: none."`
}

func (p UpdateTitleParams) Check() error { return protocol.NotEmpty("session_id", p.SessionID) }

type ArchiveParams struct {
	SessionID string `json:"session_id" doc:"The session, by any id of the run."`
	Archived  *bool  `json:"archived,omitempty" doc:"Default true; false restores the conversation."`
}

func (p ArchiveParams) Check() error { return protocol.NotEmpty("session_id", p.SessionID) }

type ArchiveManyParams struct {
	SessionIDs []string `json:"session_ids" doc:"The sessions, by any id."`
	Archived   *bool    `json:"archived,omitempty" doc:"Default true; false restores the conversations."`
}

func (p ArchiveManyParams) Check() error {
	if len(p.SessionIDs) == 0 {
		return server.InvalidParam(server.ParamError{Param: "session_ids", Expected: "an array that is not empty", Received: "an empty array"})
	}
	return nil
}

type ArchiveManyResult struct {
	Success        bool     `json:"success" doc:"Whether all conversations were changed."`
	FailedSessions []string `json:"failed_sessions,omitempty" doc:"The sessions that could not be changed."`
}

type RecentPathsParams struct {
	Limit *uint `json:"limit,omitempty" doc:"Default 20, at most 1000."`
}

type RecentPath struct {
	Path       string    `json:"path"`
	LastUsed   time.Time `json:"last_used"`
	UsageCount int       `json:"usage_count"`
}

type RecentPathsResult struct {
	Paths []RecentPath `json:"paths"`
}

// AtMost returns an upper limit for the length of the session as JSON, in bytes.
func (s *Session) AtMost() int {
	if s.Modes != nil || s.AgentSession != nil {
		return math.MaxInt32
	}
	total := 4096 + protocol.TextAtMost(s.Texts()...) + protocol.TextAtMost(
		&s.Summary, &s.Title, &s.ConversationTitle, &s.Model, &s.WorkingDir, &s.ClaudeSessionID, &s.CallerTaskID, &s.Agent, &s.StopReason,
	)
	return total + protocol.ListsAtMost(s.AdditionalDirectories, s.UnansweredServers, s.Worktree, s.AuthMethods, s.Gates)
}

// Native returns the parameters of turn.list.
func (p ListSessionsParams) Native() protocol.ListTurnsParams {
	n := protocol.ListTurnsParams{Agent: p.Agent, Archived: p.Archived, Limit: p.Limit, Before: protocol.Ref(p.Before)}
	n.States = p.Status.States()
	return n
}
