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
	"github.com/duet-rpc/duet-rpc/internal/transcript"
	"github.com/duet-rpc/duet-rpc/server"
)

type sessions struct {
	Domain
	files   *editorFiles
	editors *editors
}

// registerSessions registers the methods of the nouns session, turn and attempt (docs/protocol.md,
// "Sessions and turns").
func registerSessions(reg *server.Registry, d Domain, e *editors) {
	s := sessions{d, &editorFiles{readers: d.EditorFiles}, e}
	f := nativeFamily
	registerTurns(reg, d, s)
	registerAttempts(reg, d, s)
	handle(reg, d, f, "session.start", s.start, server.Releasing(), // it may make a worktree
		server.Doc("Starts a session with its first prompt."))
	handle(reg, d, f, "session.prompt", s.prompt,
		server.Doc("Continues a session with another prompt. While the session works, the prompt waits, or reaches the agent during the turn "+
			"(deliver). From a turn that has ended and is not the last of its session, it starts a fork. A draft is sent: it keeps its number, "+
			"and the parameters replace its own. The new turn has the permissions of the turn before, but a fork never keeps a mode in which "+
			"tools run without approval."))
	handle(reg, d, f, "session.fork", s.fork,
		server.Doc("Starts a session that shares the history of another one up to a turn, and continues it with a prompt."))
	handle(reg, d, f, "session.list", s.listSessions,
		server.Doc("Lists sessions by their last turns, the newest first. If not all fit, pass next_before as before to get more."))
	handle(reg, d, f, "session.get", s.get,
		server.Doc("Returns a session by its last turn, and its queued prompts, the next one first."))
	handle(reg, d, f, "session.set", setAgent, server.LongRunning(),
		server.Doc("Sets the mode, model or options of a session's agent, its permissions or directories. A working agent gets a mode, model "+
			"or options at once; if it refuses, nothing changes. Otherwise it gets them with the next prompt. With agent, another agent continues "+
			"the session: it gets the transcript, starts in default or plan with its own model, and has no permissions of the previous agent. "+
			"Pending questions of the previous agent are closed. Changing the agent is refused while a turn of the session runs or is queued "+
			"(`bad_state`)."))
	handle(reg, d, f, "session.rename", rename, server.Doc("Sets the title of a session."))
	handle(reg, d, f, "session.archive", s.archiveSessions, server.Doc("Archives sessions, or restores them. Those whose agent works in the "+
		"background or goes on by itself are not archived. A prompt also restores its session."))
	handle(reg, d, f, "session.delete", s.delete, server.LongRunning(), // it runs the cleanup of a worktree
		server.Doc("Deletes a session with everything that only it uses. This cannot be undone. All clients get the event session.deleted. "+
			"Refused while a turn of the session runs or its agent works in the background (`bad_state`). Turns from which other sessions were "+
			"forked stay, archived. The session's worktree is deleted, too; if it has work that is not landed, nothing is deleted "+
			"(`would_lose_work`, as for session.discard). The log keeps its numbers, without the deleted events."))
	handle(reg, d, f, "session.land", land, server.LongRunning(),
		server.Doc("Brings the changes in the session's worktree to a branch. Files that are not committed become a commit. If it fails, "+
			"nothing is changed. data.kind: `conflict` (both sides have changed the files in data.paths), `overlap` (uncommitted files of the "+
			"user are in the way, in data.paths), `bad_state` (a session works there, or another git operation is in progress), `no_worktree`, "+
			"`worktree_failed`. data.more counts the paths that do not fit."))
	handle(reg, d, f, "session.save", saveWorktree, server.LongRunning(),
		server.Doc("Makes a commit of all files in the session's worktree, also of those that are not committed, for a git fetch from another "+
			"machine. The worktree and its branch stay as they are. Values of data.kind: `bad_state` (a session works there), `no_worktree`, "+
			"`worktree_failed`."))
	handle(reg, d, f, "session.discard", discard, server.LongRunning(),
		server.Doc("Deletes the session's worktree and its branch. The session stays; a fork continues it in the project's directory. Without "+
			"force, work that is not landed is an error (`would_lose_work`), and data.losses lists it: commits, uncommitted, untracked, nested "+
			"and ignored, each with count and first. Other values of data.kind: `bad_state` (a session works there), `no_worktree`, "+
			"`worktree_failed`."))
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
		t := currentTurn(h, one)
		t.Gates = gates[one.Turn.ID]
		list = append(list, t)
	}
	return list, nil
}

// mayHaveMore reports whether there may be more than the shown turns of those found.
func mayHaveMore(shown, found int, f domain.TurnFilter) bool {
	return shown > 0 && (shown < found || shown == f.Limit)
}

func leavesFilter(which protocol.LeafFilter, limit *uint) domain.TurnFilter {
	f := domain.TurnFilter{Leaves: true, Limit: protocol.PageSize(limit, sessionsByDefault, sessionsAtMost)}
	yes, no := true, false
	switch which {
	case "normal":
		f.Archived = &no
		f.States = domain.StatesWhere(func(s domain.State) bool { return s != domain.Draft && s != domain.Discarded })
	case "archived":
		f.Archived = &yes
	case "draft":
		f.States = []domain.State{domain.Draft}
	default:
		f.States = domain.Listed()
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
	t := currentTurn(h, found)
	describeSession(t, known)
	t.UnansweredServers = h.UnansweredServers(found.Turn.ID)
	if t.Parent, err = h.Query().ParentName(ctx, found); err != nil {
		return nil, err
	}
	t.Gates, err = gatesOf(ctx, h, found)
	return t, err
}

func (s sessions) listSessions(ctx context.Context, h *hub.Hub, p protocol.SessionListParams) (protocol.SessionsResult, error) {
	f := leavesFilter(p.Filter, p.Limit)
	turns, err := s.turns(ctx, h, string(p.Before), f)
	if err != nil {
		return protocol.SessionsResult{}, err
	}
	r := protocol.SessionsResult{Sessions: protocol.Fit(turns, protocol.Room(ctx))}
	if n := len(r.Sessions); mayHaveMore(n, len(turns), f) {
		r.NextBefore = r.Sessions[n-1].Name
	}
	return r, nil
}

func (s sessions) get(ctx context.Context, h *hub.Hub, p protocol.SessionRefParams) (protocol.GetSessionResult, error) {
	t, err := s.whole(ctx, h, string(p.Session))
	if err != nil {
		return protocol.GetSessionResult{}, err
	}
	waiting, err := h.Queued(ctx, string(p.Session))
	if err != nil {
		return protocol.GetSessionResult{}, err
	}
	one := []*protocol.Turn{t}
	protocol.Fit(one, protocol.Room(ctx)/2)
	return protocol.GetSessionResult{Session: *t, Queued: waitingPrompts(waiting, protocol.Room(ctx)/2)}, nil
}

func rename(ctx context.Context, h *hub.Hub, p protocol.RenameSessionParams) (protocol.Empty, error) {
	_, err := h.Settings().Update(ctx, string(p.Session), domain.SettingsChanged{Title: &p.Title})
	return protocol.Empty{}, err
}

// archiveSessions fails if the only session cannot be changed.
func (sessions) archiveSessions(ctx context.Context, h *hub.Hub, p protocol.ArchiveSessionsParams) (protocol.ArchiveSessionsResult, error) {
	r := protocol.ArchiveSessionsResult{Failed: []string{}}
	for _, session := range p.Sessions {
		if _, err := h.Settings().Update(ctx, string(session), archived(p.Archived)); err != nil {
			if len(p.Sessions) == 1 || hubKind(err) == "" || hubKind(err) == domain.KindUnavailable {
				return r, err
			}
			r.Failed = append(r.Failed, string(session))
		}
	}
	return r, nil
}

func setAgent(ctx context.Context, h *hub.Hub, p protocol.SetSessionParams) (protocol.SetSessionResult, error) {
	change := domain.SettingsChanged{
		Agent: p.Agent, Mode: p.Mode, Model: p.Model, Options: p.Options, AutoAcceptEdits: p.AutoAcceptEdits,
		SkipPermissions: p.SkipPermissions, SkipUntil: skipUntil(h, protocol.Value(p.SkipPermissionsMS)),
		AdditionalDirectories: p.AdditionalDirectories, Title: p.Title, Archived: p.Archived,
	}
	var s domain.TurnInSession
	var live bool
	var err error
	if p.Wait == nil || *p.Wait {
		s, live, err = h.Settings().SetAgent(ctx, string(p.Session), change)
	} else {
		s, err = h.Settings().Update(ctx, string(p.Session), change)
	}
	if err != nil {
		return protocol.SetSessionResult{}, err
	}
	known, err := h.Settings().OfTurn(ctx, s)
	if err != nil {
		return protocol.SetSessionResult{}, err
	}
	one := []*protocol.Turn{currentTurn(h, s)}
	describeSession(one[0], known)
	protocol.Fit(one, protocol.Room(ctx))
	return protocol.SetSessionResult{Live: live, Turn: *one[0]}, nil
}

func (sessions) delete(ctx context.Context, h *hub.Hub, p protocol.SessionRefParams) (protocol.DeleteSessionResult, error) {
	r, err := h.Delete(ctx, string(p.Session))
	return protocol.DeleteSessionResult{SessionUUID: r.Session, Deleted: r.Deleted, Kept: r.Kept, Worktree: r.Worktree}, withLosses(err)
}

// skipUntil returns when a permission for everything ends that lasts n milliseconds. It is
// zero, without end, unless n is positive.
func skipUntil[N int64 | uint](h *hub.Hub, n N) time.Time {
	if n <= 0 {
		return time.Time{}
	}
	return h.Latest().Add(protocol.Milliseconds(n)).UTC() // by the clock by which it ends
}

func archived(asked *bool) domain.SettingsChanged {
	yes := asked == nil || *asked
	return domain.SettingsChanged{Archived: &yes}
}

func checkContent(p protocol.PromptContent) error {
	_, _, err := transcript.Prompt("", p.Content)
	return err
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
	s.Sandbox = domain.StrongerSandbox(s.Sandbox, string(a.Sandbox))
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
				Param: "mcp_config.mcpServers." + name, Expected: "another name",
				Received: "the name of the server that gives agents the editor's tools",
			})
		}
		if s.Command == "" && s.URL == "" {
			return nil, server.InvalidParam(server.ParamError{
				Param: "mcp_config.mcpServers." + protocol.Headline(name, promptShown), Expected: "an object with command or url",
				Received: "one without",
			})
		}
		list = append(list,
			domain.MCPServer{Name: name, Command: s.Command, Args: s.Args, Env: s.Env, Type: s.Type, URL: s.URL, Headers: s.Headers})
	}
	slices.SortFunc(list, func(a, b domain.MCPServer) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

func checkStart(p protocol.StartParams) error {
	return cmp.Or(protocol.NotEmpty("prompt", p.Prompt), checkAgentSettings(p.AgentSettings), checkContent(p.PromptContent), objectOrNone(
		"metadata", p.Metadata,
	), uuidOrNone("session_uuid", p.SessionUUID), uuidOrNone("start_id", p.StartID), checkChat(p), checkBase(p))
}

// checkBase refuses a commit for a worktree that is not made, and what only an editor's process with --host does.
func checkBase(p protocol.StartParams) error {
	if p.Send {
		return server.InvalidParam(server.ParamError{Param: "send", Expected: "to be left out: the daemon is on the machine with the project", Received: "true"})
	}
	beside := ""
	switch {
	case protocol.Value(p.Worktree):
		return uuidOrNone("attempts", p.Attempts)
	case p.Base != "":
		beside = "worktree_base"
	case p.Attempts != "":
		beside = "attempts"
	default:
		return nil
	}
	return server.InvalidParam(server.ParamError{Param: "worktree", Expected: "true, with " + beside, Received: "another value"})
}

// checkChat refuses parameters that only a session other than the chat can have.
func checkChat(p protocol.StartParams) error {
	var param string
	switch {
	case !p.Chat:
		return nil
	case p.SessionUUID != "":
		param = "session_uuid"
	case protocol.Value(p.Worktree):
		param = "worktree"
	case p.Draft:
		param = "draft"
	default:
		return nil
	}
	return server.InvalidParam(server.ParamError{Param: param, Expected: "to be left out beside chat", Received: "a value"})
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
	spec := launchSpec(p, h)
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
	delivered := protocol.DeliveredStarted
	if turn.State == domain.Queued {
		delivered = protocol.DeliveredQueued
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

func startedTurn(s domain.TurnInSession, delivered protocol.Delivery) protocol.Started {
	return protocol.Started{
		Name: s.Turn.Name(), Session: s.Session.ID, ID: s.HumanLayerSession, SessionUUID: s.Session.UUID, Agent: s.Agent, State: s.State,
		Delivered: delivered, Of: s,
	}
}

func launchSpec(p protocol.StartParams, h *hub.Hub) hub.LaunchSpec {
	text, content, _ := transcript.Prompt(p.Prompt, p.PromptContent.Content) // checked before
	spec := hub.LaunchSpec{
		Prompt: text, Content: content, Title: p.Title, Agent: p.Agent, CWD: p.WorkingDir, Source: cmp.Or(p.Source, domain.SourceSession),
		Model: p.Model, Mode: p.Mode, Priority: p.Priority, Tools: p.AllowedTools, Quiet: p.Quiet, Draft: p.Draft, Metadata: p.Metadata,
		Worktree: p.Worktree, Base: p.Base, SessionUUID: p.SessionUUID, SessionAlias: cmp.Or(p.Alias, p.SessionUUID),
		Settings: domain.Settings{AutoAcceptEdits: p.AutoAcceptEdits, SkipPermissions: p.SkipPermissions, Options: p.Options, Attempts: p.Attempts},
	}
	spec.CallerID, spec.Once = cmp.Or(p.TurnID, p.StartID), p.StartID != ""
	setList(&spec.Tools, p.Allowed)
	if p.Chat {
		spec.Chat, spec.Source, spec.Title = true, domain.SourceChat, cmp.Or(p.Title, "Chat")
	}
	spec.Gates, spec.Timeout = gateSpec(p.Gated), protocol.Milliseconds(protocol.Value(p.TimeoutMS))
	applySettings(p.AgentSettings, &spec.Settings)
	if until := skipUntil(h, protocol.Value(p.SkipPermissionsMS)); p.SkipPermissions && !until.IsZero() {
		spec.Settings.SkipPermissionsUntil = &until
	}
	return spec
}

func checkPrompt(p protocol.PromptParams) error {
	return cmp.Or(protocol.NotEmpty("session", string(p.Session)), protocol.NotEmptyIfGiven("prompt", p.Prompt), checkDeliver(p.Deliver),
		uuidOrNone("prompt_id", p.PromptID), checkPromptID(p), checkNext(p.NextTurn))
}

func checkFork(p protocol.ForkParams) error {
	return cmp.Or(protocol.NotEmpty("turn", string(p.Turn)), protocol.NotEmpty("prompt", p.Prompt), uuidOrNone("session_uuid", p.SessionUUID),
		checkNext(p.NextTurn))
}

func checkNext(p protocol.NextTurn) error {
	return cmp.Or(checkAgentSettings(p.AgentSettings), checkContent(p.PromptContent), objectOrNone("metadata", p.Metadata))
}

// Values of protocol.PromptParams.Deliver.
const (
	deliverQueue = "queue"
	deliverSteer = "steer"
)

func checkDeliver(deliver string) error {
	switch deliver {
	case "", deliverQueue, deliverSteer:
		return nil
	}
	return server.InvalidParam(server.ParamError{
		Param: "deliver", Expected: "queue or steer", Received: "another text", Accepted: []string{deliverQueue, deliverSteer},
	})
}

// checkPromptID refuses an id for a prompt that may become a part of the turn that runs: it would name no turn.
func checkPromptID(p protocol.PromptParams) error {
	if p.PromptID == "" || p.Deliver != deliverSteer {
		return nil
	}
	return server.InvalidParam(server.ParamError{Param: "prompt_id", Expected: "no id with the delivery steer", Received: "an id"})
}

func (s sessions) prompt(ctx context.Context, h *hub.Hub, p protocol.PromptParams) (protocol.Started, error) {
	spec := nextSpec(string(p.Session), protocol.Value(p.Prompt), p.NextTurn)
	spec.CallerID = p.PromptID
	if mayBeSteered(p) && len(spec.Content) == 0 {
		if turn, injected, err := h.Steer(ctx, spec.From, spec.Prompt); injected || err != nil {
			s.editors.prompted(ctx, turn.Session.UUID)
			return startedTurn(turn, protocol.DeliveredInjected), err
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
	spec.Fork, spec.SessionUUID, spec.Choice = true, p.SessionUUID, hub.AgentChoice{
		Agent: p.Agent, Mode: p.Mode, Model: p.Model, Options: p.Options,
	}
	turn, err := s.next(ctx, h, spec, p.ReadsFiles)
	return begun(ctx, h, turn, err)
}

func nextSpec(from, text string, p protocol.NextTurn) hub.ContinueSpec {
	text, content, _ := transcript.Prompt(text, p.PromptContent.Content) // checked before
	return hub.ContinueSpec{
		From: from, Prompt: text, Content: content, Source: domain.SourceSession,
		Settings: func(to *domain.Settings) { applySettings(p.AgentSettings, to) },
		Tools:    p.AllowedTools, Priority: p.Priority, Metadata: p.Metadata, Gates: gateSpec(p.Gated),
		Timeout: protocol.Milliseconds(protocol.Value(p.TimeoutMS)),
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

// titleOf returns the turn's title, else its session's.
func titleOf(s domain.TurnInSession) string {
	return cmp.Or(s.Title, s.Session.Title)
}

// sessionTitleOf returns the title of a session, or the beginning of its first prompt. A turn keeps the title that
// its session had then.
func sessionTitleOf(s domain.TurnInSession) string {
	return cmp.Or(s.Session.Title, s.Title, protocol.Headline(domain.RequestOf(s.FirstWords), summaryShown))
}

func budgetOf(b protocol.TurnBudget) domain.Budget {
	return domain.Budget{
		Turns: int(b.Turns), Time: protocol.Milliseconds(b.TimeMS), Tokens: int64(b.Tokens), CostUSD: b.CostUSD, Repeats: int(b.Repeats),
	}
}
