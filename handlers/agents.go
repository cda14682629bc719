package handlers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/agentlink"
	"github.com/duet-rpc/duet-rpc/internal/approval"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/mcp"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/internal/redact"
	"github.com/duet-rpc/duet-rpc/internal/sessionsettings"
	"github.com/duet-rpc/duet-rpc/server"
)

// registerSignIn registers the methods that ask an agent about itself and sign the user in.
func registerSignIn(reg *server.Registry, d Domain) {
	m := signIn{d}
	server.Handle(reg, "agent.list", m.list, server.Doc("Lists the configured and known agents, their versions, their last known sign-in "+
		"state, and how to install missing ones. Starts nothing."))
	server.Handle(reg, "agent.check", m.check, server.LongRunning(),
		server.Doc("Starts an agent in an empty directory, and returns its version, its sign-in methods and whether the user is signed in, if "+
			"it reports that. The agent gets no prompt, and ends within about a minute."))
	server.Handle(reg, "agent.login", m.authenticate, server.LongRunning(),
		server.Doc("Signs in to an agent within ten minutes; the agent does it itself, usually in the user's browser. A method of type "+
			"terminal is refused (`needs_terminal`): run its command in a terminal, or `duet-rpc agents login`. A method of type env_var is "+
			"refused if variables are missing (`no_api_key`)."))
	server.Handle(reg, "agent.logout", m.logout, server.LongRunning(),
		server.Doc("Signs out of an agent, if agent.check reports that it can (logout)."))
}

type signIn struct{ Domain }

// configuration returns the configuration for the caller, which may not trust the workspace.
func (m signIn) configuration(ctx context.Context) (*config.Config, error) {
	c, err := m.Configuration(m.Workspaces.isRestricted(server.ConnFrom(ctx)))
	if err != nil {
		return nil, &domain.Error{
			Kind: domain.KindExecutor, Message: "the configuration cannot be read: " + config.Explain(err).Error(), Err: err,
		}
	}
	return c, nil
}

func (m signIn) list(ctx context.Context, _ none) (protocol.AgentList, error) {
	c, err := m.configuration(ctx)
	if err != nil {
		return protocol.AgentList{}, nativeFamily.Error(err)
	}
	return protocol.AgentList{Agents: agentlink.Describe(
		ctx, c, agentlink.DescribeOptions{Notes: m.AgentNotes, Version: m.Version, Getenv: os.Getenv},
	)}, nil
}

// launch returns how to start an agent for the caller.
func (m signIn) launch(ctx context.Context, name string) (agentlink.Launch, []string, error) {
	c, err := m.configuration(ctx)
	if err != nil {
		return agentlink.Launch{}, nil, err
	}
	agent, err := config.AgentIn(c, name)
	if err != nil {
		return agentlink.Launch{}, nil, err
	}
	ctx = m.Workspaces.Context(ctx)
	if program := agent.ProgramOn(clientenv.From(ctx)["PATH"]); program != "" { // the hub's process may have another PATH
		agent.Path, agent.CLI, agent.Available = program, "", true
	}
	if err := agentlink.Askable(agent); err != nil {
		return agentlink.Launch{}, nil, &domain.Error{Kind: domain.KindExecutor, Message: err.Error(), Err: err}
	}
	l, missing := agentlink.LaunchOf(ctx, c, agent, os.Getenv)
	return l, missing, nil
}

func (m signIn) check(ctx context.Context, p protocol.AgentParams) (protocol.SignInStatus, error) {
	l, missing, err := m.launch(ctx, p.Agent)
	if err != nil {
		return protocol.SignInStatus{}, nativeFamily.Error(err)
	}
	report, err := agentlink.CheckSignIn(ctx, l, m.Logger)
	if err != nil {
		return protocol.SignInStatus{}, signInError(ctx, err)
	}
	m.AgentNotes.Checked(l.Name, l.Command, report)
	return protocol.SignInStatus{Agent: l.Name, Report: report, Missing: missing}, nil
}

func (m signIn) authenticate(ctx context.Context, p protocol.AuthenticateParams) (protocol.Success, error) {
	l, _, err := m.launch(ctx, p.Agent)
	if err != nil {
		return protocol.Success{}, nativeFamily.Error(err)
	}
	if err := agentlink.Authenticate(ctx, l, p.Method, m.Logger); err != nil {
		return protocol.Success{}, signInError(ctx, err)
	}
	m.AgentNotes.Authenticated(l.Name, l.Command)
	return protocol.Success{Success: true}, nil
}

func (m signIn) logout(ctx context.Context, p protocol.AgentParams) (protocol.Success, error) {
	l, _, err := m.launch(ctx, p.Agent)
	if err != nil {
		return protocol.Success{}, nativeFamily.Error(err)
	}
	if err := agentlink.Logout(ctx, l, m.Logger); err != nil {
		return protocol.Success{}, signInError(ctx, err)
	}
	m.AgentNotes.SignedOut(l.Name, l.Command)
	return protocol.Success{Success: true}, nil
}

// signInError converts an agent's error, or the reason why no agent could be asked, for clients.
func signInError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	kind := domain.KindExecutor
	var unknown *agentlink.UnknownMethodError
	switch {
	case errors.As(err, &unknown):
		return nativeFamily.Error(&domain.Error{
			Kind: domain.KindInvalid, Param: "method", Expected: "the id of a way to sign in: " + strings.Join(unknown.Known, ", "),
			Received: unknown.Received(),
			Accepted: unknown.Known, Message: err.Error(),
		})
	case errors.As(err, new(*agentlink.TerminalError)):
		kind = domain.KindNeedsTerminal
	case errors.As(err, new(*agentlink.MissingError)):
		kind = domain.KindNoAPIKey
	}
	return nativeFamily.Error(&domain.Error{Kind: kind, Message: err.Error(), Err: err})
}

// registerAgents registers the methods that describe and configure agents.
func registerAgents(reg *server.Registry, d Domain) {
	handle(reg, d, nativeFamily, "agent.describe", describeAgent,
		server.Doc("Lists the modes that a client can request of an agent, and the agent's last report from any session: its modes, models, "+
			"options and slash commands."))
}

func describeAgent(ctx context.Context, h *hub.Hub, p protocol.DescribeAgentParams) (protocol.AgentDescription, error) {
	known, err := h.Settings().OfAgent(ctx, p.Agent)
	if err != nil {
		return protocol.AgentDescription{}, err
	}
	d := protocol.AgentDescription{Agent: known.Agent, Modes: modes(known), AgentSession: agentSession(known.Reported)}
	for _, level := range h.Sandboxes(ctx, known.Agent) {
		d.Sandboxes = append(d.Sandboxes, protocol.Sandbox(level))
	}
	return d, nil
}

var duetsModes = map[string]protocol.Mode{
	catalog.ModeDefault: {
		ID: catalog.ModeDefault, Name: "Default", Description: "The agent keeps its own mode; you answer its requests", By: "duet",
	},
	catalog.ModeAcceptEdits: {ID: catalog.ModeAcceptEdits, Name: "Accept edits", Description: "Edits of files need no approval", By: "duet"},
	catalog.ModeBypass:      {ID: catalog.ModeBypass, Name: "Bypass permissions", Description: "Nothing needs approval", By: "duet"},
	catalog.ModePlan:        {ID: catalog.ModePlan, Name: "Plan", Description: "What would change something is refused", By: "duet"},
}

// modes describes the modes that a client can request of an agent.
func modes(known sessionsettings.Known) []protocol.Mode {
	list, reported := []protocol.Mode{}, known.Reported
	for _, id := range known.Modes {
		m, ours := duetsModes[id]
		if !ours {
			m = protocol.Mode{ID: id}
		}
		if reported.Modes != nil {
			for _, c := range reported.Modes.Choices {
				if c.ID == id {
					m = protocol.Mode{ID: id, Name: c.Name, Description: c.Description, By: "agent"}
				}
			}
		}
		list = append(list, m)
	}
	return list
}

// reportedAtMost limits an agent's report in a result, in bytes: an agent may report any amount.
const reportedAtMost = 256 << 10

// agentSession converts an agent's report about its session. It returns nil if there is none.
func agentSession(reported domain.AgentSession) *protocol.AgentSession {
	if reported.Size() > reportedAtMost {
		reported.Options, reported.Commands = nil, nil
	}
	if reported.Size() > reportedAtMost {
		reported.Modes, reported.Models = nil, nil
	}
	if reported.Agent == nil && reported.Modes == nil && reported.Models == nil && reported.Options == nil && reported.Commands == nil && reported.Info == nil {
		return nil
	}
	s := protocol.AgentSessionOf(reported)
	return &s
}

// describeSession adds the agent's report to a session. Lists do not have it.
func describeSession(s *protocol.Turn, known sessionsettings.Known) {
	s.Modes, s.AgentSession = modes(known), agentSession(known.Reported)
}

// registerNativeSessions registers the methods about the sessions that agents store themselves.
func registerNativeSessions(reg *server.Registry, d Domain) {
	m := nativeSessions{signIn{d}}
	handle(reg, d, nativeFamily, "agent.sessions", m.list, server.LongRunning(),
		server.Doc("Lists the agent's own sessions, however they were started, in the agent's order, usually the newest first. Starts and ends "+
			"the agent for this. An agent without this feature is refused (`not_offered`)."))
	handle(reg, d, nativeFamily, "session.adopt", m.adopt, server.LongRunning(),
		server.Doc("Imports one of the agent's own sessions as a session with a completed turn, which has its messages. session.prompt "+
			"continues the agent's own session. A session that was imported before is not changed (`adopted`). If the agent can continue the "+
			"session but not replay it, the turn has no history (`history`). An agent that can do neither is refused (`not_offered`)."))
	handle(reg, d, nativeFamily, "agent.forget", m.remove, server.LongRunning(),
		server.Doc("Asks the agent to delete one of its own sessions. This cannot be undone. Refused while a session here works in it "+
			"(`bad_state`), and if the agent has no such feature (`not_offered`). The session here stays. Continuing it starts a new session of "+
			"the agent, which gets the transcript."))
}

type nativeSessions struct{ signIn }

const (
	nativeByDefault = 50
	nativeAtMost    = 1000
)

func (m nativeSessions) list(ctx context.Context, h *hub.Hub, p protocol.NativeSessionListParams) (protocol.NativeSessionList, error) {
	l, err := m.asked(ctx, p.Agent)
	if err != nil {
		return protocol.NativeSessionList{}, err
	}
	q := agentlink.Query{Cursor: p.Cursor, Limit: max(1, protocol.PageSize(p.Limit, nativeByDefault, nativeAtMost))}
	if p.WorkingDir != "" {
		if q.Dir, err = h.Adoption().Directory(p.WorkingDir); err != nil {
			return protocol.NativeSessionList{}, err
		}
	}
	page, err := agentlink.ListSessions(ctx, l, q, m.Logger)
	if err != nil {
		return protocol.NativeSessionList{}, nativeError(ctx, err)
	}
	r := protocol.NativeSessionList{Agent: l.Name, Sessions: make([]protocol.NativeSession, 0, len(page.Sessions)), NextCursor: page.Next}
	for _, s := range page.Sessions {
		one := protocol.NativeSession{ID: s.ID, Title: s.Title, WorkingDir: s.Dir}
		if !s.Updated.IsZero() {
			one.UpdatedAt = s.Updated.UTC().Format(time.RFC3339)
		}
		found, ok, err := h.Adoption().Find(ctx, l.Name, s.ID)
		if err != nil {
			return protocol.NativeSessionList{}, err
		}
		if ok {
			one.Turn, one.TurnUUID = found.Turn.Name(), found.HumanLayerSession
		}
		r.Sessions = append(r.Sessions, one)
	}
	return r, nil
}

func (m nativeSessions) adopt(ctx context.Context, h *hub.Hub, p protocol.AdoptParams) (protocol.AdoptResult, error) {
	l, err := m.asked(ctx, p.Agent)
	if err != nil {
		return protocol.AdoptResult{}, err
	}
	into := h.Adoption()
	here, ok, err := into.Find(ctx, l.Name, p.ID)
	if err != nil {
		return protocol.AdoptResult{}, err
	}
	if ok {
		return alreadyHere(here, p.ID), nil
	}
	want := agentlink.Wanted{ID: p.ID}
	if want.Else, err = into.Directory(""); err != nil {
		return protocol.AdoptResult{}, err
	}
	if p.WorkingDir != "" {
		if want.Dir, err = into.Directory(p.WorkingDir); err != nil {
			return protocol.AdoptResult{}, err
		}
	}
	replayed, err := agentlink.LoadSession(ctx, l, want, m.Logger)
	if err != nil {
		return protocol.AdoptResult{}, nativeError(ctx, err)
	}
	secrets := &redact.Secrets{}
	for _, key := range l.Keys {
		secrets.Add(key)
	}
	title := replayed.Title
	set(&title, p.Title)
	s, fresh, err := into.Adopt(ctx, hub.Session{
		Agent: l.Name, Native: p.ID, Title: title, Dir: replayed.Dir, Parts: replayed.Parts, HasHistory: replayed.HasHistory,
		LeftOut: replayed.LeftOut, Secrets: secrets,
	})
	switch {
	case err != nil:
		return protocol.AdoptResult{}, err
	case !fresh: // another client was faster
		return alreadyHere(s, p.ID), nil
	}
	r := protocol.AdoptResult{
		Started: startedTurn(s, protocol.DeliveredStarted), NativeSession: p.ID, Adopted: true, History: replayed.HasHistory, Note: replayed.Note,
	}
	switch {
	case !replayed.HasHistory:
		r.Note = l.Name + " cannot send the session's history, but can continue it"
	case replayed.LeftOut > 0:
		r.Note = fmt.Sprintf("the session is too long: its first %d parts are left out", replayed.LeftOut)
	}
	return r, nil
}

func alreadyHere(s domain.TurnInSession, native string) protocol.AdoptResult {
	return protocol.AdoptResult{
		Started: startedTurn(s, protocol.DeliveredStarted), NativeSession: native, History: true,
		Note: "the session is here already and was not changed: " + s.Turn.Name(),
	}
}

func (m nativeSessions) remove(ctx context.Context, h *hub.Hub, p protocol.NativeSessionDeleteParams) (protocol.Success, error) {
	l, err := m.asked(ctx, p.Agent)
	if err != nil {
		return protocol.Success{}, err
	}
	turn, busy, err := h.Adoption().Unfinished(ctx, l.Name, p.ID)
	if err != nil {
		return protocol.Success{}, err
	}
	if busy {
		task := turn.Label()
		return protocol.Success{}, domain.Errorf(
			domain.KindBadState, "%s works in this session, and is %s: wait for its end, or end it with `duet-rpc session interrupt %s`", task,
			turn.State.Words(), task,
		)
	}
	if err := agentlink.Delete(ctx, l, p.ID, m.Logger); err != nil {
		return protocol.Success{}, nativeError(ctx, err)
	}
	return protocol.Success{Success: true}, nil
}

// asked returns how to start an agent that is asked about its sessions.
func (m nativeSessions) asked(ctx context.Context, name string) (agentlink.Launch, error) {
	l, _, err := m.launch(ctx, name)
	return l, err
}

// nativeError converts an agent's error, or the reason why no agent could be asked, for clients.
func nativeError(ctx context.Context, err error) error {
	var gone *agentlink.DirectoryError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, agentlink.ErrCursor):
		return domain.Invalid("cursor", "the next_cursor of another page, or none", "something else")
	case errors.As(err, &gone):
		return &domain.Error{
			Kind: domain.KindInvalid, Param: "working_dir", Expected: "the directory in which the session continues (in the shell --dir)",
			Received: fmt.Sprintf("none, and the agent's %q is no longer a directory", gone.Dir), Message: err.Error(),
		}
	case errors.As(err, new(*agentlink.CannotError)):
		return &domain.Error{Kind: domain.KindNotOffered, Message: err.Error(), Err: err}
	}
	return &domain.Error{Kind: domain.KindExecutor, Message: err.Error(), Err: err}
}

// registerMCP registers the methods that call agents' MCP servers.
func registerMCP(reg *server.Registry, d Domain) {
	f := nativeFamily
	handle(reg, d, f, "mcp.servers", listServers,
		server.Doc("Lists the MCP servers of an agent: those of the configuration and those of the session. Starts none."))
	handle(reg, d, f, "mcp.tools", listTools, server.LongRunning(),
		server.Doc("Lists the tools of an MCP server. Starts it or connects to it if necessary, and keeps it for a minute after its last use."))
	handle(reg, d, f, "mcp.call", callTool, server.LongRunning(),
		server.Doc("Calls a tool of an MCP server. As with approval.request, rules and modes decide about the tool mcp__SERVER__TOOL first, "+
			"then the user. Cancelling the request cancels the call and the question. An error response of the server is the error -32053 with "+
			"data.kind `mcp_server_error`."))
}

// findServer returns the named server.
func findServer(p protocol.MCPServerName, ctx context.Context, h *hub.Hub) (mcp.Server, error) {
	agent, list, err := h.MCP().Servers(ctx, p.Agent, string(p.Session))
	if err != nil {
		return mcp.Server{}, err
	}
	var names []string
	for _, s := range list {
		if s.Name == p.Server {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return mcp.Server{}, domain.Invalid("server", "the name of a server that "+agent+" gets", fmt.Sprintf("%q", p.Server), names...)
}

func listServers(ctx context.Context, h *hub.Hub, p protocol.MCPServerOwner) (protocol.MCPServerList, error) {
	agent, list, err := h.MCP().Servers(ctx, p.Agent, string(p.Session))
	if err != nil {
		return protocol.MCPServerList{}, err
	}
	r := protocol.MCPServerList{Agent: agent, Servers: make([]protocol.MCPServer, 0, len(list))}
	for _, s := range list {
		r.Servers = append(r.Servers, protocol.MCPServer{
			Name: s.Name, Type: cmp.Or(s.Type, "stdio"), Command: s.Command, URL: publicURL(s.URL), Connected: h.MCP().Connected(s),
		})
	}
	return r, nil
}

// publicURL returns an address without user information and query.
func publicURL(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

func listTools(ctx context.Context, h *hub.Hub, p protocol.MCPServerName) (protocol.MCPToolList, error) {
	s, err := findServer(p, ctx, h)
	if err != nil {
		return protocol.MCPToolList{}, err
	}
	tools, err := h.MCP().Tools(ctx, s)
	if tools.List == nil {
		tools.List = []json.RawMessage{}
	}
	return protocol.MCPToolList{Server: tools.Name, Version: tools.Version, Tools: tools.List}, err
}

func checkCallTool(p protocol.CallToolParams) error {
	if arguments := protocol.OrAbsent(p.Arguments); arguments != nil && arguments[0] != '{' {
		return server.InvalidParam(server.ParamError{Param: "arguments", Expected: "object", Received: "another value"})
	}
	return cmp.Or(p.MCPServerName.Check(), protocol.NotEmpty("tool", p.Tool))
}

func callTool(ctx context.Context, h *hub.Hub, p protocol.CallToolParams) (protocol.CallToolResult, error) {
	var r protocol.CallToolResult
	s, err := findServer(p.MCPServerName, ctx, h)
	if err != nil {
		return r, err
	}
	arguments := protocol.OrAbsent(p.Arguments)
	a, err := h.Approvals().Consult(ctx, approval.Inquiry{
		Spec: approval.Spec{
			Turn: workingIn(ctx, h, string(p.Session)), Type: domain.FunctionCall, Tool: "mcp__" + p.Server + "__" + p.Tool, Input: arguments,
		},
		CWD: s.Dir, Confirmed: p.Confirmed,
	})
	if err != nil {
		return r, err
	}
	if a.UpdatedInput != nil {
		arguments = a.UpdatedInput
	}
	raw, err := h.MCP().Call(ctx, s, p.Tool, arguments)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return r, err
	}
	if r.Content == nil {
		r.Content = json.RawMessage("[]")
	}
	return r, nil
}

// workingIn returns HumanLayer's id of the session's working turn, to which the approval of the call
// belongs, or "".
func workingIn(ctx context.Context, h *hub.Hub, session string) string {
	if session == "" {
		return ""
	}
	s, err := h.Query().Turn(ctx, session)
	if err != nil || !s.State.Active() || s.State == domain.Interrupting {
		return ""
	}
	return s.HumanLayerSession
}
