package acp

import (
	"github.com/coder/acp-go-sdk"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

func (a *agent) directories(t *turn) []string {
	if present(a.info.AgentCapabilities.SessionCapabilities.AdditionalDirectories) == nil {
		return nil
	}
	return t.Conversation.AdditionalDirectories
}

// mcpServers are the servers that the agent can use, as it wants to hear of
// them.
func (a *agent) mcpServers(servers []catalog.MCPServer) []acp.McpServer {
	list := []acp.McpServer{}
	can := a.info.AgentCapabilities.MCPCapabilities
	for _, s := range servers {
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
			env := []acp.EnvVariable{}
			for name, value := range s.Env {
				env = append(env, acp.EnvVariable{Name: name, Value: value})
			}
			list = append(list, acp.McpServer{Stdio: &acp.McpServerStdio{Name: s.Name, Command: s.Command, Args: append([]string{}, s.Args...), Env: env}})
		default:
			a.driver.log.Warn("the agent cannot use this kind of MCP server", "agent", a.name, "server", s.Name, "type", s.Type)
		}
	}
	return list
}
