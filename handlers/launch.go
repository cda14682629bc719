package handlers

import (
	"cmp"
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

func checkAgentSettings(a protocol.AgentSettings) error {
	_, err := mcpServers(a.MCPConfig)
	return err
}

// applySettings changes settings: what was not given stays.
func applySettings(a protocol.AgentSettings, s *domain.Settings) {
	set(&s.SystemPrompt, a.SystemPrompt)
	set(&s.AppendSystemPrompt, a.AppendSystemPrompt)
	set(&s.CustomInstructions, a.CustomInstructions)
	set(&s.PermissionPromptTool, a.PermissionPromptTool)
	setList(&s.AllowedTools, a.AllowedTools)
	setList(&s.DisallowedTools, a.DisallowedTools)
	setList(&s.AdditionalDirectories, a.AdditionalDirectories)
	s.MaxTurns = a.MaxTurns // HumanLayer: of each session its own
	if a.Budget != nil {
		s.Budget = budgetOf(*a.Budget)
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
		Servers map[string]protocol.MCPServerConfig `json:"mcpServers"`
		Snake   map[string]protocol.MCPServerConfig `json:"mcp_servers"`
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

func checkLaunch(p protocol.LaunchParams) error {
	return cmp.Or(protocol.NotEmpty("query", p.Query), checkAgentSettings(p.AgentSettings), checkContent(p.PromptContent), objectOrNone("metadata", p.Metadata), uuidOrNone("conversation_id", p.ConversationID))
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

func (s sessions) launch(ctx context.Context, h *hub.Hub, p protocol.LaunchParams) (protocol.LaunchResult, error) {
	defer s.files.starting(p.ReadsFiles)()
	session, err := h.Launch(ctx, launchSpec(p, s.Now()))
	if err == nil && p.ReadsFiles {
		s.files.offer(ctx, session)
	}
	return launched(session), err
}

func launchSpec(p protocol.LaunchParams, now time.Time) hub.LaunchSpec {
	prompt, _ := promptWith(p.PromptContent, p.Query) // it was checked
	spec := hub.LaunchSpec{
		Prompt: prompt.text, Content: prompt.content, Title: p.Title, Agent: p.Agent, CWD: p.WorkingDir, Source: domain.SourceSession, Model: p.Model,
		Mode: p.PermissionMode, Priority: p.Priority, Tools: p.AllowedTools, Draft: p.Draft, Metadata: p.Metadata, ThreadUUID: p.ConversationID, ThreadAlias: p.ConversationID,
		Settings: domain.Settings{Verbose: p.Verbose, AutoAcceptEdits: p.AutoAcceptEdits, SkipPermissions: p.SkipPermissions, Options: p.Options},
	}
	spec.Gates = gateSpec(p.Gated)
	applySettings(p.AgentSettings, &spec.Settings)
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

func launched(s domain.Session) protocol.LaunchResult {
	return protocol.LaunchResult{SessionID: s.SessionID, RunID: s.RunID, TaskID: domain.TaskName(s.Task), ThreadID: s.Thread.UUID, Agent: s.Agent, Status: protocol.StatusOf(s.State)}
}

func checkContinue(p protocol.ContinueParams) error {
	return cmp.Or(protocol.NotEmpty("session_id", p.SessionID), protocol.NotEmptyIfGiven("query", p.Query), checkAgentSettings(p.AgentSettings), checkContent(p.PromptContent), objectOrNone("metadata", p.Metadata), uuidOrNone("conversation_id", p.ForkID), checkDeliver(p))
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

func checkDeliver(p protocol.ContinueParams) error {
	switch p.Deliver {
	case "", deliverQueue, deliverSteer:
		return nil
	}
	return server.InvalidParam(server.ParamError{Param: "deliver", Expected: "queue or steer", Received: "another text", Accepted: []string{deliverQueue, deliverSteer}})
}

func (s sessions) continues(ctx context.Context, h *hub.Hub, p protocol.ContinueParams) (protocol.ContinueResult, error) {
	spec := hub.ContinueSpec{
		From: p.SessionID, Fork: p.Fork, ThreadUUID: p.ForkID, Source: domain.SourceSession, Settings: func(to *domain.Settings) { applySettings(p.AgentSettings, to) }, Tools: p.AllowedTools, Priority: p.Priority, Metadata: p.Metadata, Gates: gateSpec(p.Gated),
	}
	if p.TimeoutMS != nil {
		spec.Timeout = milliseconds(*p.TimeoutMS)
	}
	query := ""
	if p.Query != nil {
		query = *p.Query
	}
	prompt, _ := promptWith(p.PromptContent, query) // it was checked
	spec.Prompt, spec.Content = prompt.text, prompt.content
	if mayBeSteered(p) && len(prompt.content) == 0 {
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
func mayBeSteered(p protocol.ContinueParams) bool {
	return p.Deliver == deliverSteer && p.Query != nil && !p.Fork && reflect.ValueOf(p.AgentSettings).IsZero() && reflect.ValueOf(p.Gated).IsZero()
}

func continued(s domain.Session, delivered string) protocol.ContinueResult {
	return protocol.ContinueResult{LaunchResult: launched(s), ClaudeSessionID: s.Thread.NativeSession, ParentSessionID: s.ParentSession, Delivered: delivered}
}
