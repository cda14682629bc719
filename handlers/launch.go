package handlers

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/server"
)

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
	ReadsFiles            bool            `json:"reads_files,omitempty" doc:"This connection has files otherwise than the disk: where the agent reads a text file through Duet, the connection is asked for it (\"Files\")."`
	MaxTurns              int             `json:"max_turns,omitempty" doc:"How many turns the agent may take: rounds of tool calls; 0: as configured. Then it is interrupted."`
	Budget                *runBudget      `json:"budget,omitempty" doc:"How much each run of the conversation may use, in the place of what is configured ([budget.run]); absent: as the session before."`
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
	if a.Budget != nil {
		s.Budget = a.Budget.value()
	}
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
	ConversationID string            `json:"conversation_id,omitempty" doc:"A UUID that the caller has chosen to be the thread_id of the conversation. Where there is one with that id the session follows in it."`
	gated
	Draft    bool            `json:"draft,omitempty" doc:"Only keep it; continueSession launches it."`
	Metadata json.RawMessage `json:"metadata,omitempty" doc:"An object to keep with the session."`
}

func (p launchParams) check() error {
	return first(need("query", p.Query), p.agentSettings.check(), p.promptContent.check(), objectOrNone("metadata", p.Metadata), uuidOrNone("conversation_id", p.ConversationID))
}

// uuidOrNone refuses an id that is not as those are that are given out here.
func uuidOrNone(param, id string) error {
	if parsed, err := uuid.Parse(id); id == "" || err == nil && parsed.String() == id {
		return nil
	}
	return server.InvalidParam(server.ParamError{Param: param, Expected: "a UUID in lower case, with hyphens", Received: "another text"})
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
	defer s.files.starting(p.ReadsFiles)()
	session, err := h.Launch(ctx, p.spec(s.Now()))
	if err == nil && p.ReadsFiles {
		s.files.offer(ctx, session)
	}
	return launched(session), err
}

func (p launchParams) spec(now time.Time) hub.LaunchSpec {
	prompt, _ := p.with(p.Query) // it was checked
	spec := hub.LaunchSpec{
		Prompt: prompt.text, Content: prompt.content, Title: p.Title, Agent: p.Agent, CWD: p.WorkingDir, Source: domain.SourceSession, Model: p.Model,
		Mode: p.PermissionMode, Priority: p.Priority, Tools: p.AllowedTools, Draft: p.Draft, Metadata: p.Metadata, ThreadUUID: p.ConversationID, ThreadAlias: p.ConversationID,
		Settings: domain.Settings{Verbose: p.Verbose, AutoAcceptEdits: p.AutoAcceptEdits, SkipPermissions: p.SkipPermissions, Options: p.Options},
	}
	spec.Gates = p.gated.spec()
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
	return launchResult{s.SessionID, s.RunID, domain.TaskName(s.Task), s.Thread.UUID, s.Agent, protocol.StatusOf(s.State)}
}

type continueParams struct {
	SessionID string  `json:"session_id" doc:"The session to go on from; every id of the run will do."`
	Query     *string `json:"query,omitempty" doc:"What the agent is to do. Needed, unless the session is a draft, which has its own."`
	agentSettings
	promptContent
	Fork     bool            `json:"fork,omitempty" doc:"Begins another conversation there, also behind the last session of one."`
	ForkID   string          `json:"conversation_id,omitempty" doc:"With fork: a UUID that the caller has chosen to be the thread_id of the new conversation."`
	Priority int             `json:"priority,omitempty" doc:"Higher first."`
	Metadata json.RawMessage `json:"metadata,omitempty" doc:"An object to keep with the session."`
	Deliver  string          `json:"deliver,omitempty" doc:"queue (the default): the prompt waits until the turn that is under way has ended. steer: the agent gets it while it works, if it can take it; else it waits, too. A prompt with content, other settings or gates waits in any case."`

	TimeoutMS *uint `json:"timeout_ms,omitempty" doc:"How long it may run, in milliseconds; absent or 0: as the session before."`
	gated
}

func (p continueParams) check() error {
	return first(need("session_id", p.SessionID), needIfGiven("query", p.Query), p.agentSettings.check(), p.promptContent.check(), objectOrNone("metadata", p.Metadata), uuidOrNone("conversation_id", p.ForkID), p.checkDeliver())
}

// Values of continueParams.Deliver.
const (
	deliverQueue = "queue"
	deliverSteer = "steer"
)

// Values of continueResult.Delivered.
const (
	deliveredInjected = "injected"
	deliveredQueued   = "queued"
	deliveredStarted  = "started"
)

func (p continueParams) checkDeliver() error {
	switch p.Deliver {
	case "", deliverQueue, deliverSteer:
		return nil
	}
	return server.InvalidParam(server.ParamError{Param: "deliver", Expected: "queue or steer", Received: "another text", Accepted: []string{deliverQueue, deliverSteer}})
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
	Delivered       string `json:"delivered" doc:"injected: the agent that works has the prompt, and session_id is its session; started; or queued."`
}

func (s sessions) continues(ctx context.Context, h *hub.Hub, p continueParams) (continueResult, error) {
	spec := hub.ContinueSpec{
		From: p.SessionID, Fork: p.Fork, ThreadUUID: p.ForkID, Source: domain.SourceSession, Settings: p.apply, Tools: p.AllowedTools, Priority: p.Priority, Metadata: p.Metadata, Gates: p.spec(),
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
	if p.mayBeSteered() && len(prompt.content) == 0 {
		if session, injected, err := h.Steer(ctx, p.SessionID, prompt.text); injected || err != nil {
			return continued(session, deliveredInjected), err
		}
	}
	defer s.files.starting(p.ReadsFiles)()
	session, err := h.Continue(ctx, spec)
	if err == nil && p.ReadsFiles {
		s.files.offer(ctx, session)
	}
	delivered := deliveredStarted
	if session.State == domain.Queued {
		delivered = deliveredQueued
	}
	return continued(session, delivered), err
}

// mayBeSteered reports whether a prompt is for an agent that works, too: it changes nothing
// else.
func (p continueParams) mayBeSteered() bool {
	return p.Deliver == deliverSteer && p.Query != nil && !p.Fork && reflect.ValueOf(p.agentSettings).IsZero() && reflect.ValueOf(p.gated).IsZero()
}

func continued(s domain.Session, delivered string) continueResult {
	return continueResult{launched(s), s.Thread.NativeSession, s.ParentSession, delivered}
}
