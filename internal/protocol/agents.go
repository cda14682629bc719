package protocol

import (
	"encoding/json"
	"slices"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

type AgentList struct {
	Agents []domain.Agent `json:"agents" doc:"The default agent first, then available agents."`
}

type AgentParams struct {
	Agent string `json:"agent,omitempty" doc:"The agent's name in the configuration. Default: the default agent."`
}

type AuthenticateParams struct {
	Agent  string `json:"agent,omitempty" doc:"The agent's name in the configuration. Default: the default agent."`
	Method string `json:"method,omitempty" doc:"The id of a sign-in method from agent.check. Default: the only one."`
}

type SignInStatus struct {
	Agent   string             `json:"agent" doc:"The agent's name in the configuration."`
	Report  domain.AgentReport `json:"report"`
	Missing []string           `json:"missing_keys,omitempty" doc:"Configured keys that Duet could not get, for people. The agent was started without them."`
}

type DescribeAgentParams struct {
	Agent string `json:"agent,omitempty" doc:"The agent's name in the configuration. Default: the default agent."`
}

type AgentDescription struct {
	Agent        string        `json:"agent"`
	Modes        []Mode        `json:"modes" doc:"All modes that a client can request."`
	AgentSession *AgentSession `json:"agent_session,omitempty" doc:"Absent: the agent has reported nothing yet."`
	Sandboxes    []Sandbox     `json:"sandboxes,omitempty" doc:"The levels of a sandbox that a new session can ask for: they work on the daemon's machine, and the agent's configuration does not have them anyway."`
}

// A Mode is a mode that clients may request.
type Mode struct {
	ID          string `json:"id"`
	Name        string `json:"name,omitempty"`
	Description string `json:"description,omitempty"`
	By          string `json:"by" doc:"agent; or duet: Duet applies this mode to the agent's requests, whatever the agent's own mode."`
}

// An AgentSession is an agent's report about its session. In an event, an absent part has not
// changed.
type AgentSession struct {
	Agent    *domain.AgentInfo     `json:"agent,omitempty" doc:"The agent's program, as the agent names it."`
	Mode     *domain.Selection     `json:"mode,omitempty" doc:"The current mode, and all modes of the agent. Without available modes: the agent has none."`
	Model    *domain.Selection     `json:"model,omitempty" doc:"The current model, and all models of the agent. Without available models: the agent does not list them."`
	Options  []domain.AgentOption  `json:"options,omitzero" doc:"The agent's other settings, in its order, with those that choose its mode and model."`
	Commands []domain.AgentCommand `json:"commands,omitzero" doc:"The agent's slash commands. A prompt may begin with / and one of these names."`
	Info     *domain.SessionInfo   `json:"info,omitempty" doc:"The agent's title of the session."`

	Background []domain.BackgroundTask `json:"background,omitzero" doc:"The agent's background work while no prompt runs."`
}

// AgentSessionOf returns an agent's session without its limits for prompts.
func AgentSessionOf(s domain.AgentSession) AgentSession {
	a := AgentSession{s.Agent, listed(s.Modes), listed(s.Models), slices.Clone(s.Options), s.Commands, s.Info, s.Background}
	for i := range a.Options {
		a.Options[i].Choices = List(a.Options[i].Choices)
	}
	return a
}

// listed is a selection with a list of choices, even if it is empty.
func listed(s *domain.Selection) *domain.Selection {
	if s == nil {
		return nil
	}
	return &domain.Selection{Current: s.Current, Choices: List(s.Choices)}
}

type NativeSessionListParams struct {
	Agent      string `json:"agent,omitempty" doc:"The agent's name in the configuration. Default: the default agent."`
	WorkingDir string `json:"working_dir,omitempty" doc:"Only sessions in this directory; ~ is expanded. Absent: all."`
	Cursor     string `json:"cursor,omitempty" doc:"The next_cursor of the previous page."`
	Limit      *uint  `json:"limit,omitempty" doc:"Default 50, at most 1000."`
}

type NativeSession struct {
	ID         string `json:"agent_session_id" doc:"The agent's id of the session."`
	Title      string `json:"title,omitempty" doc:"The agent's title."`
	UpdatedAt  string `json:"updated_at,omitempty" doc:"Time of the last activity."`
	WorkingDir string `json:"working_dir,omitempty" doc:"The session's working directory."`
	Turn       string `json:"turn,omitempty" doc:"The last turn of the session here that continues it, such as 12.3."`
	TurnUUID   string `json:"turn_uuid,omitempty" doc:"The uuid of the same turn."`
}

type NativeSessionList struct {
	Agent      string          `json:"agent" doc:"The agent's name in the configuration."`
	Sessions   []NativeSession `json:"sessions"`
	NextCursor string          `json:"next_cursor,omitempty" doc:"Present if there may be more: pass it as cursor."`
}

type AdoptParams struct {
	Agent      string `json:"agent,omitempty" doc:"The agent's name in the configuration. Default: the default agent."`
	ID         string `json:"agent_session_id" doc:"The agent's id of the session, from agent.sessions."`
	WorkingDir string `json:"working_dir,omitempty" doc:"The directory in which to continue; ~ is expanded. Default: the one that the agent reports, or the project's root."`
	Title      string `json:"title,omitempty" doc:"The session's title. Default: the agent's title."`
}

func (p AdoptParams) Check() error { return NotEmpty("agent_session_id", p.ID) }

type AdoptResult struct {
	Started
	NativeSession string `json:"agent_session_id"`
	Adopted       bool   `json:"adopted" doc:"false: a session of Duet for this one already existed and was not changed."`
	History       bool   `json:"history" doc:"Whether the agent replayed the session's history. true for a session of Duet that already existed."`
	Note          string `json:"note,omitempty" doc:"What the user should know about the adoption."`
}

type NativeSessionDeleteParams struct {
	Agent string `json:"agent,omitempty" doc:"The agent's name in the configuration. Default: the default agent."`
	ID    string `json:"agent_session_id" doc:"The agent's id of the session."`
}

func (p NativeSessionDeleteParams) Check() error { return NotEmpty("agent_session_id", p.ID) }

// MCPServerOwner names the agent or session of servers.
type MCPServerOwner struct {
	Agent   string `json:"agent,omitempty" doc:"The agent whose servers are meant. Default: the agent of the session, or the default agent."`
	Session Ref    `json:"session,omitempty" doc:"A session. Adds its own servers, and its directory applies."`
}

// MCPServerName names one server.
type MCPServerName struct {
	Server string `json:"server" doc:"The server's name from mcp.servers."`
	MCPServerOwner
}

func (p MCPServerName) Check() error { return NotEmpty("server", p.Server) }

type MCPServerList struct {
	Agent   string      `json:"agent" doc:"The agent that gets the servers."`
	Servers []MCPServer `json:"servers"`
}

type MCPServer struct {
	Name      string `json:"name"`
	Type      string `json:"type" doc:"stdio, http or sse."`
	Command   string `json:"command,omitempty" doc:"stdio: the program, without its arguments, which may contain secrets."`
	URL       string `json:"url,omitempty" doc:"http and sse: the address, without parts that may be secret."`
	Connected bool   `json:"connected" doc:"Duet has started it or connected to it, for mcp.tools or mcp.call."`
}

type MCPToolList struct {
	Server  string            `json:"server" doc:"The server's own name; may be empty."`
	Version string            `json:"version,omitempty"`
	Tools   []json.RawMessage `json:"tools" doc:"Tools as in the Model Context Protocol: name, title, description, inputSchema, …"`
}

type CallToolParams struct {
	MCPServerName
	Tool      string          `json:"tool" doc:"The tool's name from mcp.tools."`
	Arguments json.RawMessage `json:"arguments,omitempty" doc:"An object that fits the tool's inputSchema."`
	Confirmed bool            `json:"confirmed,omitempty" doc:"The user has just confirmed this call in the client, so Duet does not ask. Deny rules and plan mode still apply."`
}

type CallToolResult struct {
	Content           json.RawMessage `json:"content" doc:"As in the Model Context Protocol: an array of texts, images, …"`
	StructuredContent json.RawMessage `json:"structuredContent,omitempty" doc:"The same as a value, if the tool returns one."`
	IsError           bool            `json:"isError,omitempty" doc:"The tool failed. content has the reason."`
}
