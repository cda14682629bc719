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

// serverOwner says whose servers are meant.
type serverOwner struct {
	Agent  string `json:"agent,omitempty" doc:"The agent that gets them; absent: the default one, or that of the thread."`
	Thread string `json:"thread,omitempty" doc:"A conversation, by any id: its own servers, too, and its directory."`
}

// serverName names one server.
type serverName struct {
	Server string `json:"server" doc:"The server, as mcp.listServers has it."`
	serverOwner
}

func (p serverName) check() error { return need("server", p.Server) }

// find is the server that is named.
func (p serverName) find(ctx context.Context, h *hub.Hub) (mcp.Server, error) {
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

type serverList struct {
	Agent   string       `json:"agent" doc:"The agent that gets them."`
	Servers []serverView `json:"servers"`
}

type serverView struct {
	Name      string `json:"name"`
	Type      string `json:"type" doc:"stdio, http or sse."`
	Command   string `json:"command,omitempty" doc:"The program of one that is stdio, without its arguments: these may hold secrets."`
	URL       string `json:"url,omitempty" doc:"The address of another one, without what may be secret in it."`
	Connected bool   `json:"connected" doc:"It was started, or connected to, for mcp.listTools or mcp.callTool."`
}

func listServers(ctx context.Context, h *hub.Hub, p serverOwner) (serverList, error) {
	agent, list, err := h.MCP().Servers(ctx, p.Agent, p.Thread)
	if err != nil {
		return serverList{}, err
	}
	r := serverList{Agent: agent, Servers: make([]serverView, 0, len(list))}
	for _, s := range list {
		r.Servers = append(r.Servers, serverView{Name: s.Name, Type: cmp.Or(s.Type, "stdio"), Command: s.Command, URL: publicURL(s.URL), Connected: h.MCP().Connected(s)})
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

type toolList struct {
	Server  string            `json:"server" doc:"As the server calls itself; may be empty."`
	Version string            `json:"version,omitempty"`
	Tools   []json.RawMessage `json:"tools" doc:"As the Model Context Protocol has them: name, title, description, inputSchema, …"`
}

func listTools(ctx context.Context, h *hub.Hub, p serverName) (toolList, error) {
	s, err := p.find(ctx, h)
	if err != nil {
		return toolList{}, err
	}
	tools, err := h.MCP().Tools(ctx, s)
	if tools.List == nil {
		tools.List = []json.RawMessage{}
	}
	return toolList{tools.Name, tools.Version, tools.List}, err
}

type callToolParams struct {
	serverName
	Tool      string          `json:"tool" doc:"The tool, as mcp.listTools has it."`
	Arguments json.RawMessage `json:"arguments,omitempty" doc:"An object that fits the tool's inputSchema."`
	Confirmed bool            `json:"confirmed,omitempty" doc:"A human has just said here that it may run: nobody is asked. Deny rules, and plan mode, hold nevertheless."`
}

func (p callToolParams) check() error {
	if arguments := orAbsent(p.Arguments); arguments != nil && arguments[0] != '{' {
		return server.InvalidParam(server.ParamError{Param: "arguments", Expected: "object", Received: "another value"})
	}
	return first(p.serverName.check(), need("tool", p.Tool))
}

type callToolResult struct {
	Content           json.RawMessage `json:"content" doc:"As the Model Context Protocol has it: an array of texts, images, …"`
	StructuredContent json.RawMessage `json:"structuredContent,omitempty" doc:"The same as a value, where the tool gives one."`
	IsError           bool            `json:"isError,omitempty" doc:"The tool failed, and content says why."`
}

func callTool(ctx context.Context, h *hub.Hub, p callToolParams) (callToolResult, error) {
	var r callToolResult
	s, err := p.find(ctx, h)
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
