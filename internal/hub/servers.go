package hub

import (
	"context"
	"encoding/json"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/conversation"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/mcp"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

func (h *Hub) newServers(ctx context.Context) *mcp.Servers {
	if h.opts.TryServers == nil {
		return nil
	}
	return mcp.NewServers(ctx, mcp.ServersOptions{Enabled: h.opts.TryServers, Tell: h.serverFailed})
}

// tryServers tries the MCP servers that the agent of a run gets, while it starts.
func (h *Hub) tryServers(s domain.Session, agent config.Agent, servers []catalog.MCPServer) {
	if h.servers == nil || agent.Driver != config.DriverACP {
		return
	}
	h.servers.Try(mcp.Gets{Run: s.Run.ID, Thread: s.Run.Thread, Dir: s.Thread.CWD, Environment: agent.Variables(h.environments.of(s.Run.ID), h.opts.Getenv), Servers: servers})
}

// UnansweredServers are the names of the MCP servers that the agent of a run got and
// that have not answered yet: whether they work is not known.
func (h *Hub) UnansweredServers(run int64) []string {
	if h.servers == nil {
		return nil
	}
	return h.servers.Unanswered(run)
}

// serverFailed tells the conversation of a run of a server that does not work.
func (h *Hub) serverFailed(ctx context.Context, id int64, text string) {
	err := h.write(ctx, func(t store.Tx) error {
		run, err := t.Run(ctx, id)
		if err != nil {
			return err
		}
		text := h.keys.Of(run.Thread).Text(text)
		report, err := json.Marshal(catalog.ReportedError{Code: conversation.MCPServerFailed, Message: text})
		if err != nil {
			return err
		}
		if _, err := t.Append(run.Event(domain.AgentErrorReported{Report: report})); err != nil {
			return err
		}
		return h.conversation.ErrorReported(t, run, conversation.MCPServerFailed, text)
	})
	if err != nil && ctx.Err() == nil {
		h.log.Debug("that an MCP server does not work could not be noted", "err", err)
	}
}
