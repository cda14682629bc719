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

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/internal/sessionsettings"
	"github.com/duet-rpc/duet-rpc/server"
)

type sessions struct {
	Domain
	files   *editorFiles
	editors *editors
}

const (
	sessionsAtMost    = 1000
	sessionsByDefault = 500
)

// turns lists turns, the newest first. before is a turn from an earlier page, or "".
func (s sessions) turns(ctx context.Context, h *hub.Hub, before string, f domain.TurnFilter) ([]*protocol.Turn, error) {
	var err error
	if f.Before, err = beforeRow(ctx, h, before); err != nil {
		return nil, err
	}
	found, err := h.Query().Turns(ctx, f)
	if err != nil {
		return nil, err
	}
	gates, err := allGates(ctx, h, found)
	if err != nil {
		return nil, err
	}
	list := make([]*protocol.Turn, 0, len(found))
	for _, one := range found {
		t := s.turn(h, one)
		t.Gates = gates[one.Turn.ID]
		list = append(list, t)
	}
	return list, nil
}

// mayHaveMore reports whether there may be more than the shown turns of those found.
func mayHaveMore(shown, found int, f domain.TurnFilter) bool {
	return shown > 0 && (shown < found || shown == f.Limit)
}

// turn converts a turn at its current state.
func (s sessions) turn(h *hub.Hub, of domain.TurnInSession) *protocol.Turn {
	t := turnOf(of, h.Latest())
	if silence, is := h.Intake().Silence(of.Turn.ID); is {
		setSilence(t, silence)
	}
	t.Background = h.Intake().Background(of.Session.ID)
	t.Worktree = worktreeOf(h, of.Session)
	return t
}

func leavesFilter(which protocol.LeafFilter, limit *uint) domain.TurnFilter {
	f := domain.TurnFilter{Leaves: true, Limit: pageSize(limit, sessionsByDefault, sessionsAtMost)}
	yes, no := true, false
	switch which {
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
	return f
}

// whole returns a turn with what lists leave out.
func (s sessions) whole(ctx context.Context, h *hub.Hub, id string) (*protocol.Turn, error) {
	found, err := h.Query().Turn(ctx, id)
	if err != nil {
		return nil, err
	}
	known, err := h.Settings().OfTurn(ctx, found)
	if err != nil {
		return nil, err
	}
	t := s.turn(h, found)
	describeSession(t, known)
	t.UnansweredServers = h.UnansweredServers(found.Turn.ID)
	if t.Parent, err = h.Query().ParentName(ctx, found); err != nil {
		return nil, err
	}
	t.Gates, err = gatesOf(ctx, h, found)
	return t, err
}

func (sessions) delete(ctx context.Context, h *hub.Hub, p protocol.SessionRefParams) (protocol.DeleteSessionResult, error) {
	r, err := h.Delete(ctx, string(p.Session))
	return protocol.DeleteSessionResult{SessionUUID: r.Session, Deleted: r.Deleted, Kept: r.Kept, Worktree: r.Worktree}, withLosses(err)
}

func archived(asked *bool) sessionsettings.Change {
	yes := asked == nil || *asked
	return sessionsettings.Change{Archived: &yes}
}

// setSilence adds the silence of the agent.
func setSilence(r *protocol.Turn, s domain.AgentSilent) {
	since := s.Since.UTC()
	r.SilentSince, r.SilentNote, r.SilentTool = &since, s.Note, s.Tool
}

func turnAtMost(t *protocol.Turn) int {
	total := 4096 + textAtMost(t.Texts()...) + textAtMost(&t.Summary, &t.Title, &t.SessionTitle, &t.Model, &t.WorkingDir, &t.AgentSessionID, &t.CallerID, &t.Agent, &t.StopReason)
	return total + listsAtMost(t.AdditionalDirectories, t.UnansweredServers, t.Worktree, t.AuthMethods, t.Gates)
}

func listsAtMost(directories, servers []string, w *protocol.WorktreeState, methods []domain.AuthMethod, gates *protocol.Gates) (total int) {
	for _, text := range slices.Concat(directories, servers) {
		total += textAtMost(&text)
	}
	if w != nil {
		total += textAtMost(&w.Branch, &w.Dir)
	}
	return total + authMethodsAtMost(methods) + gatesAtMost(gates)
}

const summaryShown = 80

// summaryOf describes a turn in lists: the user's request, or the reason why its agent continued.
func summaryOf(turn domain.Turn) string {
	if turn.Source != domain.SourceAgent {
		return domain.RequestOf(turn.Prompt)
	}
	var own struct {
		Trigger struct {
			Kind  string `json:"kind"`
			Label string `json:"label"`
		} `json:"turn_trigger"`
	}
	_ = json.Unmarshal(turn.Metadata, &own) // zero if the agent gave no reason
	return domain.TurnTrigger(own.Trigger).String()
}

// turnOf converts a turn at the time now of [hub.Hub.Latest].
func turnOf(s domain.TurnInSession, now time.Time) *protocol.Turn {
	tokens, settings := s.Tokens, s.Session.Settings
	t := &protocol.Turn{
		Name: s.Turn.Name(), Session: s.Session.ID, ID: s.HumanLayerSession, SessionUUID: s.Session.UUID,
		State: string(s.State), Prompt: s.Prompt, Summary: headline(summaryOf(s.Turn), summaryShown), Title: titleOf(s),
		SessionTitle: cmp.Or(titleOf(s), headline(domain.RequestOf(s.FirstWords), summaryShown)),
		Agent:        s.Agent, AgentSessionID: s.Session.NativeSession, Model: cmp.Or(s.Model, s.Session.Model), Mode: modeInForce(s),
		WorkingDir: s.Session.CWD, Source: s.Source, Priority: s.Priority, CallerID: s.CallerID,
		CreatedAt: s.Created.UTC(), StartedAt: timeOrNil(s.Started), ActiveAt: s.Active.UTC(), EndedAt: timeOrNil(s.Ended),
		Error: protocol.ErrorText(s.Turn), ErrorCode: s.ErrorCode, StopReason: s.Stop, AuthMethods: s.SignIn,
		CostUSD: orNil(tokens.CostUSD), InputTokens: orNil(tokens.Input), OutputTokens: orNil(tokens.Output),
		CacheReadTokens: orNil(tokens.CacheRead), CacheWriteTokens: orNil(tokens.CacheWrite),
		TotalTokens: orNil(tokens.Input + tokens.Output), ContextTokens: orNil(contextTokens(s.Turn)),
		ContextSize: orNil(tokens.ContextSize), DurationMS: protocol.DurationMS(s.Turn), Messages: orNil(s.Messages),
		AutoAcceptEdits: settings.AutoAcceptEdits, SkipPermissions: settings.SkipPermissions,
		Archived: s.Session.Archived, AdditionalDirectories: settings.AdditionalDirectories,
		Progress: s.Progress, Metadata: s.Metadata,
		AgentMode: s.AgentMode, RequestedOptions: settings.Options, Attempts: settings.Attempts, Of: s,
	}
	if t.Mode != cmp.Or(s.Session.Mode, "default") {
		t.RequestedMode = s.Session.Mode
	}
	if s.Session.Agent != s.Agent {
		t.RequestedAgent = s.Session.Agent
	}
	if t.Model != s.Session.Model {
		t.RequestedModel = s.Session.Model
	}
	if until := settings.SkipPermissionsUntil; t.SkipPermissions && until != nil {
		t.SkipPermissions = until.After(now)
		t.SkipPermissionsUntil = timeOrNil(*until)
	}
	if s.State.Ended() {
		t.Result = s.Result
	}
	return t
}

// contextTokens returns the number of tokens in the context: as the agent reports it, else the tokens
// that it used.
func contextTokens(r domain.Turn) int64 {
	if r.Tokens.ContextUsed > 0 {
		return r.Tokens.ContextUsed
	}
	return r.Tokens.Input + r.Tokens.Output
}

// modeInForce returns the permission mode of a session's conversation. It differs from the user's
// choice if the agent has entered plan mode, or has left plan mode or a mode of its own.
func modeInForce(s domain.TurnInSession) string {
	asked, is := s.Session.Mode, s.Session.AgentModeAfter(s.Turn)
	switch {
	case is == catalog.ModePlan:
		return is
	case asked == "":
		return catalog.ModeDefault
	case is == "", asked == catalog.ModeDefault, asked == catalog.ModeAcceptEdits, asked == catalog.ModeBypass, catalog.ModeName(is) == catalog.ModeName(asked):
		return asked // Duet enforces its own modes in a mode of the agent of another name
	}
	return is
}

func checkAgentSettings(a protocol.AgentSettings) error {
	_, err := mcpServers(a.MCPConfig)
	return cmp.Or(err, a.Budget.Check())
}

// applySettings changes the settings that the request has.
func applySettings(a protocol.AgentSettings, s *domain.Settings) {
	set(&s.SystemPrompt, a.SystemPrompt)
	set(&s.AppendSystemPrompt, a.AppendSystemPrompt)
	set(&s.CustomInstructions, a.CustomInstructions)
	set(&s.PermissionPromptTool, a.PermissionPromptTool)
	setList(&s.AllowedTools, a.AllowedTools)
	setList(&s.DisallowedTools, a.DisallowedTools)
	setList(&s.AdditionalDirectories, a.AdditionalDirectories)
	s.MaxTurns = int(a.MaxTurns) // HumanLayer: each session has its own
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

// mcpServers returns the list that the hub stores, in the order of the names, or nil if there is none.
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
		if name == catalog.EditorServer {
			return nil, server.InvalidParam(server.ParamError{
				Param: "mcp_config.mcpServers." + name, Expected: "another name", Received: "the name of the server that gives agents the editor's tools",
			})
		}
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

func checkStart(p protocol.StartParams) error {
	return cmp.Or(protocol.NotEmpty("prompt", p.Prompt), checkAgentSettings(p.AgentSettings), checkContent(p.PromptContent), objectOrNone("metadata", p.Metadata), uuidOrNone("session_uuid", p.SessionUUID), uuidOrNone("start_id", p.StartID))
}

// uuidOrNone refuses an id that is no UUID. "" is accepted.
func uuidOrNone(param, id string) error {
	if parsed, err := uuid.Parse(id); id == "" || err == nil && parsed.String() == id {
		return nil
	}
	return server.InvalidParam(server.ParamError{Param: param, Expected: "a UUID in lower case, with hyphens", Received: "another text"})
}

// objectOrNone refuses a value that is no object. An absent one is accepted.
func objectOrNone(param string, raw json.RawMessage) error {
	if len(raw) == 0 || raw[0] == '{' || string(raw) == "null" {
		return nil
	}
	return server.InvalidParam(server.ParamError{Param: param, Expected: "object", Received: "something else"})
}

func (s sessions) start(ctx context.Context, h *hub.Hub, p protocol.StartParams) (protocol.Started, error) {
	defer s.files.starting(p.ReadsFiles)()
	spec := launchSpec(p, s.Now())
	spec.Waiting = func() { server.Release(ctx) }
	turn, err := h.Launch(ctx, spec)
	if err == nil && p.ReadsFiles {
		s.files.offer(ctx, turn)
	}
	s.editors.prompted(ctx, turn.Session.UUID)
	return begun(ctx, h, turn, err)
}

// begun returns the result of a prompt that began a turn, unless err is set.
func begun(ctx context.Context, h *hub.Hub, turn domain.TurnInSession, err error) (protocol.Started, error) {
	if err != nil {
		return protocol.Started{Of: turn}, err
	}
	delivered := deliveredStarted
	if turn.State == domain.Queued {
		delivered = deliveredQueued
	}
	r := startedTurn(turn, delivered)
	if !turn.State.Ended() && turn.State != domain.Draft {
		r.Others, _ = h.Beside(ctx, turn) // an error must not fail the start: the turn has begun
	}
	for _, other := range r.Others {
		r.Beside = append(r.Beside, other.Name())
	}
	return r, nil
}

func startedTurn(s domain.TurnInSession, delivered string) protocol.Started {
	return protocol.Started{
		Name: s.Turn.Name(), Session: s.Session.ID, ID: s.HumanLayerSession, SessionUUID: s.Session.UUID, Agent: s.Agent, State: string(s.State),
		Delivered: delivered, Of: s,
	}
}

func launchSpec(p protocol.StartParams, now time.Time) hub.LaunchSpec {
	prompt, _ := promptWith(p.PromptContent, p.Prompt) // checked before
	spec := hub.LaunchSpec{
		Prompt: prompt.text, Content: prompt.content, Title: p.Title, Agent: p.Agent, CWD: p.WorkingDir, Source: domain.SourceSession, Model: p.Model,
		Mode: p.Mode, Priority: p.Priority, Tools: p.AllowedTools, Draft: p.Draft, Metadata: p.Metadata, Worktree: p.Worktree, SessionUUID: p.SessionUUID, SessionAlias: p.SessionUUID,
		Settings: domain.Settings{AutoAcceptEdits: p.AutoAcceptEdits, SkipPermissions: p.SkipPermissions, Options: p.Options},
	}
	spec.CallerID, spec.Once = p.StartID, p.StartID != ""
	spec.Gates, spec.Timeout = gateSpec(p.Gated), milliseconds(protocol.Value(p.TimeoutMS))
	applySettings(p.AgentSettings, &spec.Settings)
	if timeout := protocol.Value(p.SkipPermissionsMS); p.SkipPermissions && timeout > 0 {
		until := now.Add(milliseconds(timeout)).UTC()
		spec.Settings.SkipPermissionsUntil = &until
	}
	return spec
}

func checkPrompt(p protocol.PromptParams) error {
	return cmp.Or(protocol.NotEmpty("session", string(p.Session)), protocol.NotEmptyIfGiven("prompt", p.Prompt), checkDeliver(p.Deliver), checkNext(p.NextTurn))
}

func checkFork(p protocol.ForkParams) error {
	return cmp.Or(protocol.NotEmpty("turn", string(p.Turn)), protocol.NotEmpty("prompt", p.Prompt), uuidOrNone("session_uuid", p.SessionUUID), checkNext(p.NextTurn))
}

func checkNext(p protocol.NextTurn) error {
	return cmp.Or(checkAgentSettings(p.AgentSettings), checkContent(p.PromptContent), objectOrNone("metadata", p.Metadata))
}

// Values of protocol.PromptParams.Deliver.
const (
	deliverQueue = "queue"
	deliverSteer = "steer"
)

// Values of protocol.Started.Delivered.
const (
	deliveredInjected = "injected"
	deliveredQueued   = "queued"
	deliveredStarted  = "started"
)

func checkDeliver(deliver string) error {
	switch deliver {
	case "", deliverQueue, deliverSteer:
		return nil
	}
	return server.InvalidParam(server.ParamError{Param: "deliver", Expected: "queue or steer", Received: "another text", Accepted: []string{deliverQueue, deliverSteer}})
}

func (s sessions) prompt(ctx context.Context, h *hub.Hub, p protocol.PromptParams) (protocol.Started, error) {
	spec := nextSpec(string(p.Session), protocol.Value(p.Prompt), p.NextTurn)
	if mayBeSteered(p) && len(spec.Content) == 0 {
		if turn, injected, err := h.Steer(ctx, spec.From, spec.Prompt); injected || err != nil {
			s.editors.prompted(ctx, turn.Session.UUID)
			return startedTurn(turn, deliveredInjected), err
		}
	}
	turn, err := s.next(ctx, h, spec, p.ReadsFiles)
	if err == nil && turn.State == domain.Queued && p.Deliver == deliverSteer { // it was to come at once
		err = putFirst(ctx, h, turn)
	}
	return begun(ctx, h, turn, err)
}

func (s sessions) fork(ctx context.Context, h *hub.Hub, p protocol.ForkParams) (protocol.Started, error) {
	spec := nextSpec(string(p.Turn), p.Prompt, p.NextTurn)
	spec.Fork, spec.SessionUUID, spec.Choice = true, p.SessionUUID, hub.AgentChoice{Agent: p.Agent, Mode: p.Mode, Model: p.Model, Options: p.Options}
	turn, err := s.next(ctx, h, spec, p.ReadsFiles)
	return begun(ctx, h, turn, err)
}

func nextSpec(from, text string, p protocol.NextTurn) hub.ContinueSpec {
	prompt, _ := promptWith(p.PromptContent, text) // checked before
	return hub.ContinueSpec{
		From: from, Prompt: prompt.text, Content: prompt.content, Source: domain.SourceSession, Settings: func(to *domain.Settings) { applySettings(p.AgentSettings, to) },
		Tools: p.AllowedTools, Priority: p.Priority, Metadata: p.Metadata, Gates: gateSpec(p.Gated), Timeout: milliseconds(protocol.Value(p.TimeoutMS)),
	}
}

// next continues a session.
func (s sessions) next(ctx context.Context, h *hub.Hub, spec hub.ContinueSpec, readsFiles bool) (domain.TurnInSession, error) {
	defer s.files.starting(readsFiles)()
	turn, err := h.Continue(ctx, spec)
	if err == nil && readsFiles {
		s.files.offer(ctx, turn)
	}
	s.editors.prompted(ctx, turn.Session.UUID)
	return turn, err
}

// putFirst moves a queued prompt before those that wait already.
func putFirst(ctx context.Context, h *hub.Hub, turn domain.TurnInSession) error {
	queued, err := h.Queued(ctx, turn.HumanLayerSession)
	if err != nil {
		return err
	}
	first := slices.IndexFunc(queued, func(s domain.TurnInSession) bool { return s.IsWritten() })
	if first < 0 || queued[first].Turn.ID == turn.Turn.ID {
		return nil
	}
	if err = h.MoveQueued(ctx, turn.HumanLayerSession, queued[first].HumanLayerSession); hubKind(err) == domain.KindBadState { // one of them has started
		return nil
	}
	return err
}

// mayBeSteered reports whether an agent may get the prompt while it works: the request changes no
// settings.
func mayBeSteered(p protocol.PromptParams) bool {
	return p.Deliver == deliverSteer && p.Prompt != nil && reflect.ValueOf(p.AgentSettings).IsZero() && reflect.ValueOf(p.Gated).IsZero()
}
