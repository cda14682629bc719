package handlers

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/dialect"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// A session is a run as HumanLayer shows it: with the members of getSessionState
// and of listSessions, of its first clients and of today's, and ours.
type session struct {
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

	AuthMethods []dialect.AuthMethod `json:"auth_methods,omitempty" doc:"It failed because somebody has to sign in, or to give the agent its key: the ways that the agent offers."`

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
	Result                   *sessionResult `json:"result,omitempty" doc:"Once it has ended."`

	AutoAcceptEdits          bool       `json:"auto_accept_edits"`
	SkipPermissions          bool       `json:"dangerously_skip_permissions"`
	SkipPermissionsExpiresAt *time.Time `json:"dangerously_skip_permissions_expires_at,omitempty"`
	Archived                 bool       `json:"archived"`
	ProxyEnabled             bool       `json:"proxy_enabled"`
	AdditionalDirectories    []string   `json:"additional_directories,omitempty"`

	Agent          string                   `json:"agent"`
	ThreadID       string                   `json:"thread_id" doc:"The conversation."`
	TaskID         string                   `json:"task_id" doc:"The same run under its name as a task."`
	CallerTaskID   string                   `json:"caller_task_id,omitempty" doc:"The id that the caller of execute_prompt gave it."`
	PermissionMode string                   `json:"permission_mode" doc:"The one in force."`
	Source         string                   `json:"source" doc:"What asked for it: task, chat, session, execute or decision; trigger; gate, where gates that failed are the query; agent, where the agent went on by itself, without a query; adopted; question or kept_question of a program that asks by askUser or requestPermission."`
	Priority       int                      `json:"priority"`
	State          string                   `json:"state" doc:"The run's own state, which tells queued from starting and timed_out from failed."`
	SilentSince    *time.Time               `json:"silent_since,omitempty" doc:"The agent gives no sign of life, and nobody else has to do something first: when its last one was."`
	SilentNote     string                   `json:"silent_note,omitempty" doc:"What it has complained of since then."`
	SilentTool     string                   `json:"silent_tool,omitempty" doc:"The tool call that it is in the middle of. Then it need not be trouble."`
	Background     []dialect.BackgroundTask `json:"background,omitempty" doc:"What the agent of the conversation does in the background, while no prompt runs there. interruptSession ends it."`
	Progress       json.RawMessage          `json:"progress,omitempty"`
	Metadata       json.RawMessage          `json:"metadata,omitempty"`

	AgentMode        string                `json:"agent_mode,omitempty" doc:"The mode that the agent says it is in."`
	RequestedAgent   string                `json:"requested_agent,omitempty" doc:"The agent that the conversation goes on with, if it is not the one of this session."`
	RequestedMode    string                `json:"requested_mode,omitempty" doc:"The mode that was asked for, if it is not the one in force."`
	RequestedModel   string                `json:"requested_model,omitempty" doc:"The model that was asked for, if the agent says that it works with another one."`
	RequestedOptions map[string]string     `json:"requested_options,omitempty" doc:"Values of the agent's options that were asked for."`
	Modes            []mode                `json:"modes,omitempty" doc:"All modes that can be asked for. Of getSessionState alone."`
	AgentSession     *dialect.AgentSession `json:"agent_session,omitempty" doc:"What the agent tells of its session. Of getSessionState alone."`

	UnansweredServers []string `json:"unanswered_mcp_servers,omitempty" doc:"MCP servers of the agent that were tried when it got them and have not answered yet. Of getSessionState alone."`

	Gates *gates `json:"gates,omitempty" doc:"Of work that has gates (\"Gates\"): where it stands."`

	described int // about how many bytes what only getSessionState has is
}

// silent adds that the agent gives no sign of life.
func (r *session) silent(s domain.AgentSilent) {
	since := s.Since.UTC()
	r.SilentSince, r.SilentNote, r.SilentTool = &since, s.Note, s.Tool
}

// A sessionResult is what Claude Code prints last, and so what HumanLayer's
// clients know a result by.
type sessionResult struct {
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

func (s *session) texts() []*string {
	list := []*string{&s.Query, &s.Error, &s.ErrorMessage}
	if s.Result != nil {
		list = append(list, &s.Result.Result, &s.Result.Error)
	}
	return list
}

func (s *session) atMost() int {
	total := 4096 + 2*s.described + textAtMost(s.texts()...) + textAtMost(&s.Summary, &s.Title, &s.ConversationTitle, &s.Model, &s.WorkingDir, &s.ClaudeSessionID, &s.CallerTaskID, &s.Agent, &s.StopReason)
	for _, text := range slices.Concat(s.AdditionalDirectories, s.UnansweredServers) {
		total += textAtMost(&text)
	}
	return total + authMethodsAtMost(s.AuthMethods) + gatesAtMost(s.Gates)
}

const summaryShown = 80

// summaryOf describes a run in lists: the user's request, or why its agent continued.
func summaryOf(run domain.Run) string {
	if run.Source != domain.SourceAgent {
		return domain.RequestOf(run.Prompt)
	}
	var own struct {
		Trigger struct {
			Kind  string `json:"kind"`
			Label string `json:"label"`
		} `json:"turn_trigger"`
	}
	_ = json.Unmarshal(run.Metadata, &own) // zero if the agent did not say why
	return domain.TurnTrigger(own.Trigger).String()
}

// sessionOf is a run as it stands at the time now.
func sessionOf(s domain.Session, now time.Time) *session {
	tokens, settings := s.Tokens, s.Thread.Settings
	r := &session{
		ID: s.SessionID, RunID: s.RunID, ClaudeSessionID: s.Thread.NativeSession, ParentSessionID: s.ParentSession,
		Status: dialect.StatusOf(s.State), Query: s.Prompt, Summary: headline(summaryOf(s.Run), summaryShown), Title: titleOf(s), ConversationTitle: cmp.Or(titleOf(s), headline(domain.RequestOf(s.FirstWords), summaryShown)),
		Model: cmp.Or(s.Model, s.Thread.Model), WorkingDir: s.Thread.CWD,
		CreatedAt: s.Created.UTC(), StartTime: s.Created.UTC(), StartedAt: timeOrNil(s.Started), LastActivityAt: s.Active.UTC(),
		CompletedAt: timeOrNil(s.Ended), EndTime: timeOrNil(s.Ended),
		Error: dialect.ErrorText(s.Run), ErrorMessage: dialect.ErrorText(s.Run), ErrorCode: s.ErrorCode, StopReason: s.Stop, AuthMethods: dialect.AuthMethods(s.SignIn),
		CostUSD: orNil(tokens.CostUSD), InputTokens: orNil(tokens.Input), OutputTokens: orNil(tokens.Output),
		CacheReadInputTokens: orNil(tokens.CacheRead), CacheCreationInputTokens: orNil(tokens.CacheWrite),
		TotalTokens: orNil(tokens.Input + tokens.Output), EffectiveContextTokens: orNil(contextTokens(s.Run)),
		ContextLimit: orNil(tokens.ContextSize), DurationMS: dialect.DurationMS(s.Run), NumTurns: orNil(s.Messages),
		AutoAcceptEdits: settings.AutoAcceptEdits, SkipPermissions: settings.SkipPermissions,
		Archived: s.Thread.Archived, AdditionalDirectories: settings.AdditionalDirectories,
		Agent: s.Agent, ThreadID: s.Thread.UUID, TaskID: domain.TaskName(s.Task), CallerTaskID: s.CallerID, PermissionMode: modeInForce(s),
		Source: s.Source, Priority: s.Priority, State: string(s.State), Progress: s.Progress, Metadata: s.Metadata,
		AgentMode: s.AgentMode, RequestedOptions: settings.Options,
	}
	if r.PermissionMode != cmp.Or(s.Thread.Mode, "default") {
		r.RequestedMode = s.Thread.Mode
	}
	if s.Thread.Agent != s.Agent {
		r.RequestedAgent = s.Thread.Agent
	}
	if r.Model != s.Thread.Model {
		r.RequestedModel = s.Thread.Model
	}
	if until := settings.SkipPermissionsUntil; r.SkipPermissions && until != nil {
		r.SkipPermissions = until.After(now)
		r.SkipPermissionsExpiresAt = timeOrNil(*until)
	}
	if s.State.Ended() {
		r.Result = resultOf(s)
	}
	return r
}

// contextTokens is how full the context is: what the agent says, else what it
// used.
func contextTokens(r domain.Run) int64 {
	if r.Tokens.ContextUsed > 0 {
		return r.Tokens.ContextUsed
	}
	return r.Tokens.Input + r.Tokens.Output
}

func resultOf(s domain.Session) *sessionResult {
	r := &sessionResult{
		Type: "result", Subtype: "session_" + dialect.StatusOf(s.State), TotalCostUSD: s.Tokens.CostUSD,
		IsError: dialect.StatusOf(s.State) == "failed", NumTurns: s.Messages, Result: s.Result, SessionID: s.Thread.NativeSession,
		Error: dialect.ErrorText(s.Run),
	}
	if took := dialect.DurationMS(s.Run); took != nil {
		r.DurationMS = *took
	}
	return r
}

// modeInForce is the permission mode of a session's conversation. An agent that has
// left plan mode, or has entered it, is in another one than people have asked for.
func modeInForce(s domain.Session) string {
	asked, is := s.Thread.Mode, s.Thread.AgentModeAfter(s.Run)
	switch {
	case asked == "", asked == catalog.ModePlan && is != "" && is != catalog.ModePlan:
		return catalog.ModeDefault
	case is == catalog.ModePlan:
		return is
	}
	return asked
}
