package protocol

import "encoding/json"

// MCPServerOwner says whose servers are meant.
type MCPServerOwner struct {
	Agent  string `json:"agent,omitempty" doc:"The agent that gets them; absent: the default one, or that of the thread."`
	Thread string `json:"thread,omitempty" doc:"A conversation, by any id: its own servers, too, and its directory."`
}

// MCPServerName names one server.
type MCPServerName struct {
	Server string `json:"server" doc:"The server, as mcp.listServers has it."`
	MCPServerOwner
}

func (p MCPServerName) Check() error { return NotEmpty("server", p.Server) }

type MCPServerList struct {
	Agent   string      `json:"agent" doc:"The agent that gets them."`
	Servers []MCPServer `json:"servers"`
}

type MCPServer struct {
	Name      string `json:"name"`
	Type      string `json:"type" doc:"stdio, http or sse."`
	Command   string `json:"command,omitempty" doc:"The program of one that is stdio, without its arguments: these may hold secrets."`
	URL       string `json:"url,omitempty" doc:"The address of another one, without what may be secret in it."`
	Connected bool   `json:"connected" doc:"It was started, or connected to, for mcp.listTools or mcp.callTool."`
}

type MCPToolList struct {
	Server  string            `json:"server" doc:"As the server calls itself; may be empty."`
	Version string            `json:"version,omitempty"`
	Tools   []json.RawMessage `json:"tools" doc:"As the Model Context Protocol has them: name, title, description, inputSchema, …"`
}

type CallToolParams struct {
	MCPServerName
	Tool      string          `json:"tool" doc:"The tool, as mcp.listTools has it."`
	Arguments json.RawMessage `json:"arguments,omitempty" doc:"An object that fits the tool's inputSchema."`
	Confirmed bool            `json:"confirmed,omitempty" doc:"A human has just said here that it may run: nobody is asked. Deny rules, and plan mode, hold nevertheless."`
}

type CallToolResult struct {
	Content           json.RawMessage `json:"content" doc:"As the Model Context Protocol has it: an array of texts, images, …"`
	StructuredContent json.RawMessage `json:"structuredContent,omitempty" doc:"The same as a value, where the tool gives one."`
	IsError           bool            `json:"isError,omitempty" doc:"The tool failed, and content says why."`
}
