package handlers

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/internal/threadsettings"
	"github.com/duet-rpc/duet-rpc/server"
)

// registerSessions registers what starts, lists and ends sessions (HumanLayer).
func registerSessions(reg *server.Registry, d Domain) {
	s := sessions{d, &editorFiles{readers: d.EditorFiles}}
	f := sessionFamily
	handle(reg, d, f, "launchSession", s.launch,
		server.Doc("Starts a session: an agent works on a query in a new conversation."))
	handle(reg, d, f, "listSessions", s.list,
		server.Doc("Lists sessions, the newest first. If not all fit, next_before says how to go on."))
	handle(reg, d, f, "getSessionState", s.state, server.Doc("Tells everything about a session but its conversation."))
	handle(reg, d, f, "getSessionLeaves", s.leaves, server.Doc("Lists the last session of each conversation, the newest first."))
	handle(reg, d, f, "continueSession", s.continues,
		server.Doc("Continues a session's conversation with another query. If the session is the last one there, or has not ended, the query waits its turn in the same conversation; else, or with fork, it begins a new one, which shares all up to that session. A draft is launched: it keeps its ids, and what is given here replaces what it had. The new session may do what the one before might, but a fork never keeps a mode in which tools run unasked."))
	handle(reg, d, f, "interruptSession", s.interrupt,
		server.Doc("Begins to end a session, also while it waits for input. It can be continued. Of a session that has ended it ends what its agent does in the background; with background, that task alone, whether or not the session has ended."))
	handle(reg, d, f, "updateSessionSettings", s.update,
		server.Doc("Changes settings of a session's conversation. An agent that works on it is told its mode, its model and its options beside; what it does not take is told by the event task_error. session.set waits for it."))
	handle(reg, d, f, "updateSessionTitle", s.retitle, server.Doc("Gives a session's conversation a title."))
	handle(reg, d, f, "archiveSession", s.archive, server.Doc("Puts a session's conversation away, or takes it back. To continue one takes it back, too."))
	handle(reg, d, f, "bulkArchiveSessions", s.archiveMany, server.Doc("Puts many sessions' conversations away, or takes them back."))
	handle(reg, d, f, "session.delete", s.delete,
		server.Doc("Deletes a session's conversation with all that only it has, for good; everybody is told by the event session_deleted. It is refused while something of it runs. What others were forked from stays, in the archive. The log keeps its numbers: those of events that are no more are left out."))
	handle(reg, d, f, "getRecentPaths", s.recentPaths, server.Doc("Lists directories in which sessions worked, the last used first."))
}

type sessions struct {
	Domain
	files *editorFiles
}

// sessionParams name one session.
type sessionParams struct {
	SessionID string `json:"session_id" doc:"The session; every id of the run will do."`
}

func (p sessionParams) check() error { return need("session_id", p.SessionID) }

const (
	sessionsAtMost    = 1000
	sessionsByDefault = 500
)

type listSessionsParams struct {
	Limit    *uint                  `json:"limit,omitempty" doc:"How many; 500 unless told, 1000 at most."`
	Before   string                 `json:"before,omitempty" doc:"Only sessions older than this one, for paging."`
	Status   protocol.SessionStatus `json:"status,omitempty" doc:"Only sessions with this status; absent: all that were not discarded."`
	Archived *bool                  `json:"archived,omitempty" doc:"Only archived sessions, or only others."`
	Agent    string                 `json:"agent,omitempty" doc:"Only sessions of this agent."`
}

type sessionList struct {
	Sessions   []*session `json:"sessions"`
	NextBefore string     `json:"next_before,omitempty" doc:"There may be more: pass this as before."`
}

func (s sessions) list(ctx context.Context, h *hub.Hub, p listSessionsParams) (sessionList, error) {
	return s.listed(ctx, h, p.Before, domain.RunFilter{
		States: p.Status.States(), Agent: p.Agent, Archived: p.Archived, Limit: pageSize(p.Limit, sessionsByDefault, sessionsAtMost),
	})
}

func (s sessions) listed(ctx context.Context, h *hub.Hub, before string, f domain.RunFilter) (sessionList, error) {
	var err error
	if f.Before, err = beforeRow(ctx, h, before); err != nil {
		return sessionList{}, err
	}
	found, err := h.Query().Sessions(ctx, f)
	if err != nil {
		return sessionList{}, err
	}
	list := make([]*session, 0, len(found))
	gates, err := allGates(ctx, h, found)
	if err != nil {
		return sessionList{}, err
	}
	for _, one := range found {
		view := s.session(h, one)
		view.Gates = gates[one.Run.ID]
		list = append(list, view)
	}
	r := sessionList{Sessions: fit(list, room(ctx))}
	if n := len(r.Sessions); n > 0 && (n < len(list) || n == f.Limit) {
		r.NextBefore = r.Sessions[n-1].ID
	}
	return r, nil
}

// session is a session as it is now.
func (s sessions) session(h *hub.Hub, of domain.Session) *session {
	r := sessionOf(of, s.Now())
	if silence, is := h.Intake().Silence(of.Run.ID); is {
		r.silent(silence)
	}
	r.Background = h.Intake().Background(of.Thread.ID)
	return r
}

// A leafFilter chooses conversations (getSessionLeaves).
type leafFilter string

// Accepted implements schema.Enum.
func (leafFilter) Accepted() []string { return []string{"", "normal", "archived", "draft"} }

type leavesParams struct {
	Filter leafFilter `json:"filter,omitempty" doc:"Only some conversations; absent or empty: all."`
	Limit  *uint      `json:"limit,omitempty" doc:"How many; 500 unless told, 1000 at most."`
	Before string     `json:"before,omitempty" doc:"Only sessions older than this one, for paging."`
}

func (s sessions) leaves(ctx context.Context, h *hub.Hub, p leavesParams) (sessionList, error) {
	f := domain.RunFilter{Leaves: true, Limit: pageSize(p.Limit, sessionsByDefault, sessionsAtMost)}
	yes, no := true, false
	switch p.Filter {
	case "normal":
		f.Archived = &no
		f.States = protocol.StatesWhere(func(s domain.State) bool { return s != domain.Draft && s != domain.Discarded })
	case "archived":
		f.Archived = &yes
	case "draft":
		f.States = []domain.State{domain.Draft}
	default:
		f.States = protocol.SessionStatus("").States()
	}
	return s.listed(ctx, h, p.Before, f)
}

type stateResult struct {
	Session session `json:"session"`
}

func (s sessions) state(ctx context.Context, h *hub.Hub, p sessionParams) (stateResult, error) {
	found, err := h.Query().Session(ctx, p.SessionID)
	if err != nil {
		return stateResult{}, err
	}
	known, err := h.Settings().OfSession(ctx, found)
	if err != nil {
		return stateResult{}, err
	}
	one := []*session{s.session(h, found)}
	one[0].describe(known)
	one[0].UnansweredServers = h.UnansweredServers(found.Run.ID)
	if one[0].Gates, err = gatesOf(ctx, h, found); err != nil {
		return stateResult{}, err
	}
	fit(one, room(ctx))
	return stateResult{*one[0]}, nil
}

type interruptParams struct {
	SessionID string `json:"session_id" doc:"The session; every id of the run will do."`
	Reason    string `json:"reason,omitempty" doc:"Why, for the record."`

	Background string `json:"background,omitempty" doc:"Stop this task of the agent's background work alone, by its id in background of getSessionState. Agents of version 2 of the Agent Client Protocol may offer that; others stop all of it or none, and the error not_offered says so."`
}

func (p interruptParams) check() error { return need("session_id", p.SessionID) }

type interruptResult struct {
	Success   bool   `json:"success"`
	SessionID string `json:"session_id"`
	Status    string `json:"status" doc:"interrupting; interrupted if it had not been started."`
}

func (sessions) interrupt(ctx context.Context, h *hub.Hub, p interruptParams) (interruptResult, error) {
	if p.Background != "" {
		s, err := h.StopBackgroundTask(ctx, p.SessionID, p.Background)
		return interruptResult{err == nil, s.SessionID, protocol.StatusOf(s.State)}, err
	}
	// Interrupt also takes a session that has not been started.
	s, err := h.Interrupt(ctx, p.SessionID, p.Reason)
	return interruptResult{err == nil, s.SessionID, protocol.StatusOf(s.State)}, err
}

type updateParams struct {
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

func (p updateParams) check() error { return need("session_id", p.SessionID) }

func (sessions) update(ctx context.Context, h *hub.Hub, p updateParams) (success, error) {
	c := threadsettings.Change{
		Title: p.Title, Mode: p.PermissionMode, Model: p.Model, AutoAcceptEdits: p.AutoAcceptEdits,
		SkipPermissions: p.SkipPermissions, Archived: p.Archived, AdditionalDirectories: p.AdditionalDirectories, Options: p.Options,
	}
	if p.SkipTimeoutMillis != nil {
		timeout := milliseconds(*p.SkipTimeoutMillis)
		c.SkipPermissionsTimeout = &timeout
	}
	_, err := h.Settings().Update(ctx, p.SessionID, c)
	return success{err == nil}, err
}

type titleParams struct {
	SessionID string `json:"session_id" doc:"The session; every id of the run will do."`
	Title     string `json:"title" doc:"What to call it; empty: nothing."`
}

func (p titleParams) check() error { return need("session_id", p.SessionID) }

func (sessions) retitle(ctx context.Context, h *hub.Hub, p titleParams) (success, error) {
	_, err := h.Settings().Update(ctx, p.SessionID, threadsettings.Change{Title: &p.Title})
	return success{err == nil}, err
}

type deleteResult struct {
	ThreadID string `json:"thread_id"`
	Deleted  int    `json:"deleted" doc:"How many sessions are no more."`
	Kept     int    `json:"kept" doc:"How many are left, since others were forked from there."`
}

func (sessions) delete(ctx context.Context, h *hub.Hub, p sessionParams) (deleteResult, error) {
	r, err := h.Delete(ctx, p.SessionID)
	return deleteResult{r.Thread, r.Deleted, r.Kept}, err
}

type archiveParams struct {
	SessionID string `json:"session_id" doc:"The session; every id of the run will do."`
	Archived  *bool  `json:"archived,omitempty" doc:"False takes it back; absent: true."`
}

func (p archiveParams) check() error { return need("session_id", p.SessionID) }

func (sessions) archive(ctx context.Context, h *hub.Hub, p archiveParams) (success, error) {
	_, err := h.Settings().Update(ctx, p.SessionID, archived(p.Archived))
	return success{err == nil}, err
}

func archived(asked *bool) threadsettings.Change {
	yes := asked == nil || *asked
	return threadsettings.Change{Archived: &yes}
}

type archiveManyParams struct {
	SessionIDs []string `json:"session_ids" doc:"The sessions."`
	Archived   *bool    `json:"archived,omitempty" doc:"False takes them back; absent: true."`
}

func (p archiveManyParams) check() error {
	if len(p.SessionIDs) == 0 {
		return server.InvalidParam(server.ParamError{Param: "session_ids", Expected: "an array that is not empty", Received: "an empty array"})
	}
	return nil
}

type archiveManyResult struct {
	Success        bool     `json:"success" doc:"All were changed."`
	FailedSessions []string `json:"failed_sessions,omitempty" doc:"Those that could not be changed."`
}

func (sessions) archiveMany(ctx context.Context, h *hub.Hub, p archiveManyParams) (archiveManyResult, error) {
	var r archiveManyResult
	for _, id := range p.SessionIDs {
		if _, err := h.Settings().Update(ctx, id, archived(p.Archived)); err != nil {
			if hubKind(err) == "" || hubKind(err) == domain.KindUnavailable {
				return archiveManyResult{}, err
			}
			r.FailedSessions = append(r.FailedSessions, id)
		}
	}
	r.Success = len(r.FailedSessions) == 0
	return r, nil
}

const (
	pathsByDefault = 20
	pathsAtMost    = 1000
)

type recentPathsParams struct {
	Limit *uint `json:"limit,omitempty" doc:"How many; 20 unless told, 1000 at most."`
}

type recentPath struct {
	Path       string    `json:"path"`
	LastUsed   time.Time `json:"last_used"`
	UsageCount int       `json:"usage_count"`
}

type recentPathsResult struct {
	Paths []recentPath `json:"paths"`
}

func (sessions) recentPaths(ctx context.Context, h *hub.Hub, p recentPathsParams) (recentPathsResult, error) {
	list, err := h.Query().RecentPaths(ctx, pageSize(p.Limit, pathsByDefault, pathsAtMost))
	r := recentPathsResult{Paths: []recentPath{}}
	for _, path := range list {
		r.Paths = append(r.Paths, recentPath{path.Path, path.LastUsed.UTC(), path.Count})
	}
	return r, err
}

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
	Result                   *sessionResult `json:"result,omitempty" doc:"Once it has ended."`

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

	AgentMode        string                 `json:"agent_mode,omitempty" doc:"The mode that the agent says it is in."`
	RequestedAgent   string                 `json:"requested_agent,omitempty" doc:"The agent that the conversation goes on with, if it is not the one of this session."`
	RequestedMode    string                 `json:"requested_mode,omitempty" doc:"The mode that was asked for, if it is not the one in force."`
	RequestedModel   string                 `json:"requested_model,omitempty" doc:"The model that was asked for, if the agent says that it works with another one."`
	RequestedOptions map[string]string      `json:"requested_options,omitempty" doc:"Values of the agent's options that were asked for."`
	Modes            []mode                 `json:"modes,omitempty" doc:"All modes that can be asked for. Of getSessionState alone."`
	AgentSession     *protocol.AgentSession `json:"agent_session,omitempty" doc:"What the agent tells of its session. Of getSessionState alone."`

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
		Status: protocol.StatusOf(s.State), Query: s.Prompt, Summary: headline(summaryOf(s.Run), summaryShown), Title: titleOf(s), ConversationTitle: cmp.Or(titleOf(s), headline(domain.RequestOf(s.FirstWords), summaryShown)),
		Model: cmp.Or(s.Model, s.Thread.Model), WorkingDir: s.Thread.CWD,
		CreatedAt: s.Created.UTC(), StartTime: s.Created.UTC(), StartedAt: timeOrNil(s.Started), LastActivityAt: s.Active.UTC(),
		CompletedAt: timeOrNil(s.Ended), EndTime: timeOrNil(s.Ended),
		Error: protocol.ErrorText(s.Run), ErrorMessage: protocol.ErrorText(s.Run), ErrorCode: s.ErrorCode, StopReason: s.Stop, AuthMethods: s.SignIn,
		CostUSD: orNil(tokens.CostUSD), InputTokens: orNil(tokens.Input), OutputTokens: orNil(tokens.Output),
		CacheReadInputTokens: orNil(tokens.CacheRead), CacheCreationInputTokens: orNil(tokens.CacheWrite),
		TotalTokens: orNil(tokens.Input + tokens.Output), EffectiveContextTokens: orNil(contextTokens(s.Run)),
		ContextLimit: orNil(tokens.ContextSize), DurationMS: protocol.DurationMS(s.Run), NumTurns: orNil(s.Messages),
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
		Type: "result", Subtype: "session_" + protocol.StatusOf(s.State), TotalCostUSD: s.Tokens.CostUSD,
		IsError: protocol.StatusOf(s.State) == "failed", NumTurns: s.Messages, Result: s.Result, SessionID: s.Thread.NativeSession,
		Error: protocol.ErrorText(s.Run),
	}
	if took := protocol.DurationMS(s.Run); took != nil {
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
