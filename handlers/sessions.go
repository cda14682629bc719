package handlers

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/dialect"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/server"
)

// registerSessions registers what starts, lists and ends sessions (HumanLayer).
func registerSessions(reg *server.Registry, d Domain) {
	s := sessions{d}
	f := dialect.Session
	handle(reg, d, f, "launchSession", s.launch,
		server.Doc("Starts a session: an agent works on a query in a new conversation."))
	handle(reg, d, f, "listSessions", s.list,
		server.Doc("Lists sessions, the newest first. If not all fit, next_before says how to go on."))
	handle(reg, d, f, "getSessionState", s.state, server.Doc("Tells everything about a session but its conversation."))
	handle(reg, d, f, "getSessionLeaves", s.leaves, server.Doc("Lists the last session of each conversation, the newest first."))
	handle(reg, d, f, "continueSession", s.continues,
		server.Doc("Continues a session's conversation with another query. If the session is the last one there, or has not ended, the query waits its turn in the same conversation; else, or with fork, it begins a new one, which shares all up to that session. A draft is launched: it keeps its ids, and what is given here replaces what it had. The new session may do what the one before might, but a fork never keeps a mode in which tools run unasked."))
	handle(reg, d, f, "interruptSession", s.interrupt,
		server.Doc("Begins to end a session, also while it waits for input. It can be continued."))
	handle(reg, d, f, "updateSessionSettings", s.update,
		server.Doc("Changes settings of a session's conversation. An agent that works on it is told its mode, its model and its options beside; what it does not take is told by the event task_error. session.set waits for it."))
	handle(reg, d, f, "updateSessionTitle", s.retitle, server.Doc("Gives a session's conversation a title."))
	handle(reg, d, f, "archiveSession", s.archive, server.Doc("Puts a session's conversation away, or takes it back. To continue one takes it back, too."))
	handle(reg, d, f, "bulkArchiveSessions", s.archiveMany, server.Doc("Puts many sessions' conversations away, or takes them back."))
	handle(reg, d, f, "getRecentPaths", s.recentPaths, server.Doc("Lists directories in which sessions worked, the last used first."))
}

type sessions struct{ Domain }

// sessionParams name one session.
type sessionParams struct {
	SessionID string `json:"session_id" doc:"The session; every id of the run will do."`
}

func (p sessionParams) check() error { return need("session_id", p.SessionID) }

// agentSettings are what launchSession and continueSession have in common.
type agentSettings struct {
	SystemPrompt          string          `json:"system_prompt,omitempty" doc:"Replaces the agent's system prompt, where it has one."`
	AppendSystemPrompt    string          `json:"append_system_prompt,omitempty" doc:"Follows the system prompt."`
	CustomInstructions    string          `json:"custom_instructions,omitempty" doc:"Further instructions."`
	MCPConfig             json.RawMessage `json:"mcp_config,omitempty" doc:"{mcpServers:{name:{command,args?,env?}}} or {…:{type,url,headers?}}; also as a string that holds this JSON."`
	PermissionPromptTool  string          `json:"permission_prompt_tool,omitempty" doc:"Kept for old clients; permissions are asked by approvals."`
	AllowedTools          []string        `json:"allowed_tools,omitempty" doc:"The only tools the agent may use, and without being asked for; empty: all, or as the session before might."`
	DisallowedTools       []string        `json:"disallowed_tools,omitempty" doc:"Tools the agent may not use."`
	AdditionalDirectories []string        `json:"additional_directories,omitempty" doc:"Directories beside working_dir that the agent may use."`
	MaxTurns              int             `json:"max_turns,omitempty" doc:"How many turns the agent may take; 0: its own limit."`
}

func (a agentSettings) check() error {
	_, err := mcpServers(a.MCPConfig)
	return err
}

// apply changes settings: what was not given stays.
func (a agentSettings) apply(s *domain.Settings) {
	set(&s.SystemPrompt, a.SystemPrompt)
	set(&s.AppendSystemPrompt, a.AppendSystemPrompt)
	set(&s.CustomInstructions, a.CustomInstructions)
	set(&s.PermissionPromptTool, a.PermissionPromptTool)
	setList(&s.AllowedTools, a.AllowedTools)
	setList(&s.DisallowedTools, a.DisallowedTools)
	setList(&s.AdditionalDirectories, a.AdditionalDirectories)
	s.MaxTurns = a.MaxTurns // HumanLayer: of each session its own
	if servers, err := mcpServers(a.MCPConfig); err == nil && servers != nil {
		s.MCPServers = servers
	}
}

func set(field *string, value string) {
	if value != "" {
		*field = value
	}
}

func setList(field *[]string, value []string) {
	if len(value) > 0 {
		*field = value
	}
}

// An mcpServer is how HumanLayer's clients configure a server: its name stands
// before it.
type mcpServer struct {
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
	Type    string            `json:"type"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
}

// mcpServers is the list that the hub keeps, in the order of the names; nil if
// there is none.
func mcpServers(config json.RawMessage) ([]domain.MCPServer, error) {
	wrong := func(received string) error {
		return server.InvalidParam(server.ParamError{
			Param: "mcp_config", Expected: "an object {mcpServers:{name:{command,args?,env?}}}, or a string that holds one", Received: received,
		})
	}
	if len(config) == 0 || string(config) == "null" {
		return nil, nil
	}
	if config[0] == '"' {
		var text string
		if json.Unmarshal(config, &text) != nil {
			return nil, wrong("a string that cannot be read")
		}
		if text == "" {
			return nil, nil
		}
		config = json.RawMessage(text)
	}
	var c struct {
		Servers map[string]mcpServer `json:"mcpServers"`
		Snake   map[string]mcpServer `json:"mcp_servers"`
	}
	if json.Unmarshal(config, &c) != nil {
		return nil, wrong("something else")
	}
	if c.Servers == nil {
		c.Servers = c.Snake
	}
	if c.Servers == nil {
		return nil, nil
	}
	list := []domain.MCPServer{}
	for name, s := range c.Servers {
		if s.Command == "" && s.URL == "" {
			return nil, server.InvalidParam(server.ParamError{
				Param: "mcp_config.mcpServers." + headline(name, promptShown), Expected: "an object with command or url", Received: "one without",
			})
		}
		list = append(list, domain.MCPServer{Name: name, Command: s.Command, Args: s.Args, Env: s.Env, Type: s.Type, URL: s.URL, Headers: s.Headers})
	}
	slices.SortFunc(list, func(a, b domain.MCPServer) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

type launchParams struct {
	Query      string `json:"query" doc:"What the agent is to do."`
	Title      string `json:"title,omitempty" doc:"What to call the session."`
	Model      string `json:"model,omitempty" doc:"A model that the agent has. One that it is known not to have is refused; an agent that does not say which it has is left alone."`
	WorkingDir string `json:"working_dir,omitempty" doc:"The directory in which the agent works; ~ is expanded; absent: the project's root."`
	agentSettings
	promptContent
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
	Draft          bool              `json:"draft,omitempty" doc:"Only keep it; continueSession launches it."`
	Metadata       json.RawMessage   `json:"metadata,omitempty" doc:"An object to keep with the session."`
}

func (p launchParams) check() error {
	return first(need("query", p.Query), p.agentSettings.check(), p.promptContent.check(), objectOrNone("metadata", p.Metadata))
}

// objectOrNone refuses what is not an object.
func objectOrNone(param string, raw json.RawMessage) error {
	if len(raw) == 0 || raw[0] == '{' || string(raw) == "null" {
		return nil
	}
	return server.InvalidParam(server.ParamError{Param: param, Expected: "object", Received: "something else"})
}

type launchResult struct {
	SessionID string `json:"session_id"`
	RunID     string `json:"run_id"`
	TaskID    string `json:"task_id" doc:"The same under its name as a task."`
	ThreadID  string `json:"thread_id" doc:"The conversation."`
	Agent     string `json:"agent" doc:"The agent that was taken."`
	Status    string `json:"status"`
}

func (s sessions) launch(ctx context.Context, h *hub.Hub, p launchParams) (launchResult, error) {
	session, err := h.Launch(ctx, p.spec(s.Now()))
	return launched(session), err
}

func (p launchParams) spec(now time.Time) hub.LaunchSpec {
	prompt, _ := p.with(p.Query) // it was checked
	spec := hub.LaunchSpec{
		Prompt: prompt.text, Content: prompt.content, Title: p.Title, Agent: p.Agent, CWD: p.WorkingDir, Source: domain.SourceSession, Model: p.Model,
		Mode: p.PermissionMode, Priority: p.Priority, Tools: p.AllowedTools, Draft: p.Draft, Metadata: p.Metadata,
		Settings: domain.Settings{Verbose: p.Verbose, AutoAcceptEdits: p.AutoAcceptEdits, SkipPermissions: p.SkipPermissions, Options: p.Options},
	}
	p.apply(&spec.Settings)
	if p.TimeoutMS != nil {
		spec.Timeout = milliseconds(*p.TimeoutMS)
	}
	timeout := p.SkipTimeout
	if timeout == nil {
		timeout = p.SkipTimeoutMillis
	}
	if p.SkipPermissions && timeout != nil && *timeout > 0 {
		until := now.Add(milliseconds(*timeout))
		spec.Settings.SkipPermissionsUntil = &until
	}
	return spec
}

func launched(s domain.Session) launchResult {
	return launchResult{s.SessionID, s.RunID, domain.TaskName(s.Task), s.Thread.UUID, s.Agent, dialect.StatusOf(s.State)}
}

const (
	sessionsAtMost    = 1000
	sessionsByDefault = 500
)

type listSessionsParams struct {
	Limit    *uint                 `json:"limit,omitempty" doc:"How many; 500 unless told, 1000 at most."`
	Before   string                `json:"before,omitempty" doc:"Only sessions older than this one, for paging."`
	Status   dialect.SessionStatus `json:"status,omitempty" doc:"Only sessions with this status; absent: all that were not discarded."`
	Archived *bool                 `json:"archived,omitempty" doc:"Only archived sessions, or only others."`
	Agent    string                `json:"agent,omitempty" doc:"Only sessions of this agent."`
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
	for _, one := range found {
		list = append(list, s.session(h, one))
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
		f.States = dialect.StatesWhere(func(s domain.State) bool { return s != domain.Draft && s != domain.Discarded })
	case "archived":
		f.Archived = &yes
	case "draft":
		f.States = []domain.State{domain.Draft}
	default:
		f.States = dialect.SessionStatus("").States()
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
	known, err := h.AgentSession(ctx, found)
	if err != nil {
		return stateResult{}, err
	}
	one := []*session{s.session(h, found)}
	one[0].describe(known)
	fit(one, room(ctx))
	return stateResult{*one[0]}, nil
}

type continueParams struct {
	SessionID string  `json:"session_id" doc:"The session to go on from; every id of the run will do."`
	Query     *string `json:"query,omitempty" doc:"What the agent is to do. Needed, unless the session is a draft, which has its own."`
	agentSettings
	promptContent
	Fork     bool            `json:"fork,omitempty" doc:"Begins another conversation there, also behind the last session of one."`
	Priority int             `json:"priority,omitempty" doc:"Higher first."`
	Metadata json.RawMessage `json:"metadata,omitempty" doc:"An object to keep with the session."`

	TimeoutMS *uint `json:"timeout_ms,omitempty" doc:"How long it may run, in milliseconds; absent or 0: as the session before."`
}

func (p continueParams) check() error {
	return first(need("session_id", p.SessionID), needIfGiven("query", p.Query), p.agentSettings.check(), p.promptContent.check(), objectOrNone("metadata", p.Metadata))
}

// needIfGiven refuses a parameter that is there and empty.
func needIfGiven(param string, value *string) error {
	if value == nil {
		return nil
	}
	return need(param, *value)
}

type continueResult struct {
	launchResult
	ClaudeSessionID string `json:"claude_session_id" doc:"The agent's own id of the conversation; empty before its first turn."`
	ParentSessionID string `json:"parent_session_id"`
}

func (sessions) continues(ctx context.Context, h *hub.Hub, p continueParams) (continueResult, error) {
	spec := hub.ContinueSpec{
		From: p.SessionID, Fork: p.Fork, Source: domain.SourceSession, Settings: p.apply, Tools: p.AllowedTools, Priority: p.Priority, Metadata: p.Metadata,
	}
	if p.TimeoutMS != nil {
		spec.Timeout = milliseconds(*p.TimeoutMS)
	}
	query := ""
	if p.Query != nil {
		query = *p.Query
	}
	prompt, _ := p.with(query) // it was checked
	spec.Prompt, spec.Content = prompt.text, prompt.content
	s, err := h.Continue(ctx, spec)
	return continueResult{launched(s), s.Thread.NativeSession, s.ParentSession}, err
}

type interruptParams struct {
	SessionID string `json:"session_id" doc:"The session; every id of the run will do."`
	Reason    string `json:"reason,omitempty" doc:"Why, for the record."`
}

func (p interruptParams) check() error { return need("session_id", p.SessionID) }

type interruptResult struct {
	Success   bool   `json:"success"`
	SessionID string `json:"session_id"`
	Status    string `json:"status" doc:"interrupting; interrupted if it had not been started."`
}

func (sessions) interrupt(ctx context.Context, h *hub.Hub, p interruptParams) (interruptResult, error) {
	// Interrupt also takes a session that has not been started.
	s, err := h.Interrupt(ctx, p.SessionID, p.Reason)
	return interruptResult{err == nil, s.SessionID, dialect.StatusOf(s.State)}, err
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
	c := hub.SettingsChange{
		Title: p.Title, Mode: p.PermissionMode, Model: p.Model, AutoAcceptEdits: p.AutoAcceptEdits,
		SkipPermissions: p.SkipPermissions, Archived: p.Archived, AdditionalDirectories: p.AdditionalDirectories, Options: p.Options,
	}
	if p.SkipTimeoutMillis != nil {
		timeout := milliseconds(*p.SkipTimeoutMillis)
		c.SkipPermissionsTimeout = &timeout
	}
	_, err := h.UpdateSettings(ctx, p.SessionID, c)
	return success{err == nil}, err
}

type titleParams struct {
	SessionID string `json:"session_id" doc:"The session; every id of the run will do."`
	Title     string `json:"title" doc:"What to call it; empty: nothing."`
}

func (p titleParams) check() error { return need("session_id", p.SessionID) }

func (sessions) retitle(ctx context.Context, h *hub.Hub, p titleParams) (success, error) {
	_, err := h.UpdateSettings(ctx, p.SessionID, hub.SettingsChange{Title: &p.Title})
	return success{err == nil}, err
}

type archiveParams struct {
	SessionID string `json:"session_id" doc:"The session; every id of the run will do."`
	Archived  *bool  `json:"archived,omitempty" doc:"False takes it back; absent: true."`
}

func (p archiveParams) check() error { return need("session_id", p.SessionID) }

func (sessions) archive(ctx context.Context, h *hub.Hub, p archiveParams) (success, error) {
	_, err := h.UpdateSettings(ctx, p.SessionID, archived(p.Archived))
	return success{err == nil}, err
}

func archived(asked *bool) hub.SettingsChange {
	yes := asked == nil || *asked
	return hub.SettingsChange{Archived: &yes}
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
		if _, err := h.UpdateSettings(ctx, id, archived(p.Archived)); err != nil {
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
