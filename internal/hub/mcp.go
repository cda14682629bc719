package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/executor/workspace"
	"github.com/duet-rpc/duet-rpc/internal/mcp"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/transcript"
)

// MCP gives access to the MCP servers that agents get.
type MCP struct{ hub *Hub }

// MCP returns the MCP servers of the project's agents.
func (h *Hub) MCP() MCP { return MCP{h} }

func (h *Hub) newMCP(ctx context.Context) *mcp.Clients {
	note := func(change func(store.Tx) error) {
		if err := h.write(h.ctx, change); err != nil && h.ctx.Err() == nil {
			h.log.Warn("the program of an MCP server could not be noted", "err", err)
		}
	}
	return mcp.NewClients(ctx, mcp.ClientsOptions{
		Logger: h.log,
		Started: func(mark string, pid int) {
			note(func(t store.Tx) error { return t.PutProcess(domain.Process{PID: pid, Mark: mark}) })
		},
		Ended: func(mark string) { note(func(t store.Tx) error { return t.DropProcess(mark) }) },
	})
}

// Servers lists the MCP servers of an agent. session is any id of a session; without it, agent
// names a configured agent, "" the default one. of is the agent's name.
func (m MCP) Servers(ctx context.Context, agent, session string) (of string, list []mcp.Server, err error) {
	h := m.hub
	var own domain.Session
	restrict := clientenv.IsRestricted(ctx)
	if session != "" {
		s, err := h.query.Turn(ctx, session)
		if err != nil {
			return "", nil, err
		}
		if agent != "" && agent != s.Session.Agent {
			return "", nil, domain.Invalid("agent", "the agent of this session, or none", agent, s.Session.Agent)
		}
		own, agent = s.Session, s.Session.Agent
		restrict = restrict || s.Turn.Restricted
	} else if own.CWD, err = h.directory(""); err != nil {
		return "", nil, err
	}
	configured, err := h.configured.AgentFor(restrict, agent)
	if err != nil {
		return "", nil, err
	}
	all := slices.Clone(configured.MCPServers)
	for _, s := range own.Settings.MCPServers {
		all = append(slices.DeleteFunc(all, func(o catalog.MCPServer) bool { return o.Name == s.Name }),
			catalog.MCPServer(s))
	}
	for _, s := range all {
		list = append(list, mcp.Server{
			MCPServer: s, Dir: own.CWD, Environment: configured.Variables(clientenv.From(ctx), h.opts.Getenv),
		})
	}
	return configured.Name, list, nil
}

// Connected reports whether a server is started or connected.
func (m MCP) Connected(s mcp.Server) bool { return m.hub.mcp.Connected(s) }

// Tools lists the tools of a server. Its error is safe to show to clients.
func (m MCP) Tools(ctx context.Context, s mcp.Server) (mcp.Tools, error) {
	tools, err := m.hub.mcp.Tools(ctx, s)
	return tools, tellServer(err)
}

// Call calls a tool of a server. The caller must have checked permission. Its error is safe to show
// to clients.
func (m MCP) Call(ctx context.Context, s mcp.Server, tool string, arguments json.RawMessage) (json.RawMessage, error) {
	result, err := m.hub.mcp.Call(ctx, s, tool, arguments)
	return result, tellServer(err)
}

func tellServer(err error) error {
	var failed *mcp.CallError
	if !errors.As(err, &failed) {
		return err
	}
	e := domain.Errorf(domain.KindMCPServer, "%s", failed.Error())
	e.Answer = failed.Answer
	return e
}

// SessionDirectories returns the directories whose files a session's agent may get from the editor.
func (h *Hub) SessionDirectories(s domain.TurnInSession) *workspace.Workspace {
	w := workspace.New(h.rootOf(s.Session.CWD), s.Session.CWD, h.opts.StateDir)
	w.Add(s.Session.Settings.AdditionalDirectories...)
	return w
}

// SessionFile returns the absolute path of a file that a session's agent names for the editor. It
// must be a regular file in the directories of the session: editors open it.
func (h *Hub) SessionFile(s domain.TurnInSession, path string) (string, error) {
	w := h.SessionDirectories(s)
	path = w.Absolute(path)
	if !w.Has(path) {
		return "", domain.Invalid("arguments.path", "a file in the directories of the session", fmt.Sprintf("%q", path))
	}
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return "", domain.Invalid("arguments.path", "a regular file", fmt.Sprintf("%q", path))
	}
	return path, nil
}

func (h *Hub) newServers(ctx context.Context) *mcp.Servers {
	enabled := func() bool {
		now, err := h.opts.Configuration.Current(false)
		return err == nil && now.ProbeServers
	}
	return mcp.NewServers(ctx, mcp.ServersOptions{Enabled: enabled, Tell: h.serverFailed})
}

// tryServers tests the MCP servers of a turn's agent while the agent starts.
func (h *Hub) tryServers(s domain.TurnInSession, agent config.Agent, servers []catalog.MCPServer) {
	if agent.Driver != config.DriverACP {
		return
	}
	h.servers.Try(mcp.Gets{
		Turn: s.Turn.ID, Session: s.Turn.Session, Dir: s.Session.CWD,
		Environment: agent.Variables(h.environments.of(s.Turn.ID), h.opts.Getenv), Servers: servers,
	})
}

// UnansweredServers lists the MCP servers of a turn's agent that have not answered yet, so their
// status is unknown.
func (h *Hub) UnansweredServers(turn int64) []string {
	return h.servers.Unanswered(turn)
}

// serverFailed adds a notice about a failed MCP server to the session of a turn.
func (h *Hub) serverFailed(ctx context.Context, id int64, text string) {
	err := h.write(ctx, func(t store.Tx) error {
		turn, err := t.Turn(ctx, id)
		if err != nil {
			return err
		}
		text := h.keys.Of(turn.Session).Text(text)
		report, err := json.Marshal(catalog.ReportedError{Code: transcript.MCPServerFailed, Message: text})
		if err != nil {
			return err
		}
		if _, err := t.Append(turn.Event(domain.AgentErrorReported{Report: report})); err != nil {
			return err
		}
		return h.transcript.ErrorReported(t, turn, transcript.MCPServerFailed, text)
	})
	if err != nil && ctx.Err() == nil {
		h.log.Debug("that an MCP server does not work could not be noted", "err", err)
	}
}
