package handlers

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"

	"github.com/duet-rpc/duet-rpc/internal/approval"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/mcp"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/server"
)

// registerMCP registers what is asked of the MCP servers that agents get.
func registerMCP(reg *server.Registry, d Domain) {
	f := boundaryFamily
	handle(reg, d, f, "mcp.listServers", listServers,
		server.Doc("Lists the MCP servers that an agent gets, by the configuration and by its conversation. None is started."))
	handle(reg, d, f, "mcp.listTools", listTools, server.LongRunning(),
		server.Doc("Lists the tools of an MCP server, which is started or connected to where it is not, and kept for a minute after its last use."))
	handle(reg, d, f, "mcp.callTool", callTool, server.LongRunning(),
		server.Doc("Calls a tool of an MCP server. Rules and modes are asked first and then a human, as by requestPermission, for the tool mcp__SERVER__TOOL. Cancelling the request cancels the call, and the question. What the server answers in the place of a result is the error -32007."))
}

// findServer is the server that is named.
func findServer(p protocol.MCPServerName, ctx context.Context, h *hub.Hub) (mcp.Server, error) {
	agent, list, err := h.MCP().Servers(ctx, p.Agent, p.Thread)
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
	agent, list, err := h.MCP().Servers(ctx, p.Agent, p.Thread)
	if err != nil {
		return protocol.MCPServerList{}, err
	}
	r := protocol.MCPServerList{Agent: agent, Servers: make([]protocol.MCPServer, 0, len(list))}
	for _, s := range list {
		r.Servers = append(r.Servers, protocol.MCPServer{Name: s.Name, Type: cmp.Or(s.Type, "stdio"), Command: s.Command, URL: publicURL(s.URL), Connected: h.MCP().Connected(s)})
	}
	return r, nil
}

// publicURL is an address without who calls, and what is asked.
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
	if arguments := orAbsent(p.Arguments); arguments != nil && arguments[0] != '{' {
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
	arguments := orAbsent(p.Arguments)
	a, err := h.Approvals().Consult(ctx, approval.Inquiry{
		Spec: approval.Spec{Run: workingIn(ctx, h, p.Thread), Type: domain.FunctionCall, Tool: "mcp__" + p.Server + "__" + p.Tool, Input: arguments}, CWD: s.Dir, Confirmed: p.Confirmed,
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

// workingIn is a session that works, whose question it is then, or "".
func workingIn(ctx context.Context, h *hub.Hub, thread string) string {
	if thread == "" {
		return ""
	}
	s, err := h.Query().Session(ctx, thread)
	if err != nil || !s.State.Active() || s.State == domain.Interrupting {
		return ""
	}
	return s.SessionID
}
