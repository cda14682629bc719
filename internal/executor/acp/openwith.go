package acp

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/executor/task"
)

// sessionRequest is what opens a session for a turn: the session with that id, or a new one.
func (a *agent) sessionRequest(t *turn, id string) sessionRequest {
	r := sessionRequest{SessionID: id, CWD: t.Params.CWD, MCPServers: a.mcpServers(t), Directories: a.directories(t)}
	if prompt := t.Conversation.SystemPrompt; prompt != "" && acp.Has(a.info.Session.SystemPrompt) {
		r.SystemPrompt = &systemPrompt{Mode: "append", Content: []acp.ContentBlock{acp.TextBlock(prompt)}}
	}
	return r
}

func (a *agent) directories(t *turn) []string {
	if !acp.Has(a.info.Session.AdditionalDirectories) {
		return nil
	}
	return t.Conversation.AdditionalDirectories
}

// mcpServers are the servers that the agent can use, as it wants to hear of
// them.
//
// Those that it cannot use, and programs that are not there, are reported: agents
// say nothing of servers that do not start.
func (a *agent) mcpServers(t *turn) []mcpServer {
	if t.servers != nil { // a session was tried with them, and is lost
		return t.servers
	}
	list := []mcpServer{}
	can := a.info.MCP
	for _, s := range t.Conversation.MCPServers {
		switch {
		case s.Type == "http" && can.HTTP, s.Type == "sse" && can.SSE:
			list = append(list, mcpServer{Type: s.Type, Name: s.Name, URL: s.URL, Headers: s.Headers})
		case s.Type == "" || s.Type == "stdio":
			server := mcpServer{Name: s.Name, Command: s.Command, Args: s.Args, Env: s.Env}
			own := a.env.With(s.Env)
			path, err := own.Find(s.Command, t.Params.CWD)
			if err != nil {
				t.Problem(task.CodeMCPServer, fmt.Sprintf("the MCP server %s will not start: the program %q %s; install it, or correct its command in the configuration", s.Name, s.Command, notStarted(err)))
			}
			if a.info.IsVersion2() {
				server.Type = "stdio"
				if err == nil && filepath.IsAbs(path) { // as the protocol wants it
					server.Command = path
				}
			}
			list = append(list, server)
		default:
			t.Problem(task.CodeMCPServer, fmt.Sprintf("%s cannot use the MCP server %s, and goes on without it: the agent does not take servers of the type %s", a.name, s.Name, s.Type))
		}
	}
	t.servers = list
	return list
}

// notStarted says why a program cannot be started.
func notStarted(err error) string {
	if errors.Is(err, fs.ErrPermission) {
		return "is no file that may be run"
	}
	return "was not found"
}
