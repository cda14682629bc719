package acp

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/coder/acp-go-sdk"

	"github.com/duet-rpc/duet-rpc/internal/executor/process"
	"github.com/duet-rpc/duet-rpc/internal/executor/task"
)

func (a *agent) directories(t *turn) []string {
	if present(a.info.AgentCapabilities.SessionCapabilities.AdditionalDirectories) == nil {
		return nil
	}
	return t.Conversation.AdditionalDirectories
}

// mcpServers are the servers that the agent can use, as it wants to hear of
// them.
//
// Those that it cannot use, and programs that are not there, are reported: agents
// say nothing of servers that do not start.
func (a *agent) mcpServers(t *turn) []acp.McpServer {
	if t.servers != nil { // a session was tried with them, and is lost
		return t.servers
	}
	list := []acp.McpServer{}
	can := a.info.AgentCapabilities.MCPCapabilities
	for _, s := range t.Conversation.MCPServers {
		headers := []acp.HttpHeader{}
		for name, value := range s.Headers {
			headers = append(headers, acp.HttpHeader{Name: name, Value: value})
		}
		switch {
		case s.Type == "http" && can.HTTP:
			list = append(list, acp.McpServer{Http: &acp.McpServerHttpInline{Type: "http", Name: s.Name, Url: s.URL, Headers: headers}})
		case s.Type == "sse" && can.SSE:
			list = append(list, acp.McpServer{Sse: &acp.McpServerSseInline{Type: "sse", Name: s.Name, Url: s.URL, Headers: headers}})
		case s.Type == "" || s.Type == "stdio":
			own := process.NewEnvironment(a.env, s.Env)
			if _, err := own.Find(s.Command, t.Params.CWD); err != nil {
				t.Problem(task.CodeMCPServer, fmt.Sprintf("the MCP server %s will not start: the program %q %s; install it, or correct its command in the configuration", s.Name, s.Command, notStarted(err)))
			}
			env := []acp.EnvVariable{}
			for name, value := range s.Env {
				env = append(env, acp.EnvVariable{Name: name, Value: value})
			}
			list = append(list, acp.McpServer{Stdio: &acp.McpServerStdio{Name: s.Name, Command: s.Command, Args: append([]string{}, s.Args...), Env: env}})
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
