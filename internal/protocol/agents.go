package protocol

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

type AgentList struct {
	Agents []domain.Agent `json:"agents" doc:"The default one first, then those that are available."`
}

type AgentParams struct {
	Agent string `json:"agent,omitempty" doc:"The agent's name in the configuration; absent: the default one."`
}

type AuthenticateParams struct {
	Agent  string `json:"agent,omitempty" doc:"The agent's name in the configuration; absent: the default one."`
	Method string `json:"method,omitempty" doc:"The id of a way to sign in, as agent.check lists them; absent: the only one."`
}

type SignInStatus struct {
	Agent   string             `json:"agent" doc:"Its name in the configuration."`
	Report  domain.AgentReport `json:"report"`
	Missing []string           `json:"missing_keys,omitempty" doc:"Keys that are configured for it and could not be had, in words; it was started without them."`
}

type SetSessionParams struct {
	SessionID string            `json:"session_id" doc:"The session; every id of the run will do."`
	Agent     *string           `json:"agent,omitempty" doc:"Another agent of the configuration, which goes on with the conversation from the next prompt on."`
	Mode      *string           `json:"mode,omitempty" doc:"A mode of the agent's, or default, acceptEdits, bypassPermissions or plan (\"Modes\")."`
	Model     *string           `json:"model,omitempty" doc:"A model of the agent's; empty: none is asked for any more."`
	Options   map[string]string `json:"options,omitempty" doc:"Values of the agent's options, by their ids; an empty one is not asked for any more."`
}

func (p SetSessionParams) Check() error {
	return cmp.Or(NotEmpty("session_id", p.SessionID), NotEmptyIfGiven("agent", p.Agent))
}

type SetSessionResult struct {
	Live    bool    `json:"live" doc:"The agent works, and has taken it; else it gets it with the next prompt."`
	Session Session `json:"session" doc:"As of getSessionState."`
}

type DescribeAgentParams struct {
	Agent string `json:"agent,omitempty" doc:"The agent's name in the configuration; absent: the default one."`
}

type AgentDescription struct {
	Agent        string        `json:"agent"`
	Modes        []Mode        `json:"modes" doc:"All that can be asked for."`
	AgentSession *AgentSession `json:"agent_session,omitempty" doc:"Absent: it has told nothing yet."`
}

// A Mode is a mode that clients may request.
type Mode struct {
	ID          string `json:"id"`
	Name        string `json:"name,omitempty"`
	Description string `json:"description,omitempty"`
	By          string `json:"by" doc:"agent, or duet: whatever the agent is in, Duet answers its questions like that."`
}

// An AgentSession is what an agent reports about its session. In an event an absent part has
// not changed.
type AgentSession struct {
	Agent    *domain.AgentInfo     `json:"agent,omitempty" doc:"Which program it is, in its own words."`
	Mode     *domain.Selection     `json:"mode,omitempty" doc:"The mode that it is in, and those that it has; none is available of an agent without modes."`
	Model    *domain.Selection     `json:"model,omitempty" doc:"The model that it works with, and those that it has; none is available of an agent that does not say."`
	Options  []domain.AgentOption  `json:"options,omitzero" doc:"What else it can be set to, in its order; those that choose its mode and its model are among them."`
	Commands []domain.AgentCommand `json:"commands,omitzero" doc:"Its slash commands: a prompt may begin with / and the name of one."`
	Info     *domain.SessionInfo   `json:"info,omitempty" doc:"What it calls the session."`

	Background []domain.BackgroundTask `json:"background,omitzero" doc:"What it does in the background, while no prompt runs."`
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

type agentSessionData struct {
	ids
	AgentSession
	Truncated bool `json:"truncated,omitempty"`
}

type NativeSessionListParams struct {
	Agent      string `json:"agent,omitempty" doc:"The agent's name in the configuration; absent: the default one."`
	WorkingDir string `json:"working_dir,omitempty" doc:"Only sessions that work in this directory; ~ is expanded; absent: all."`
	Cursor     string `json:"cursor,omitempty" doc:"As next_cursor, to go on."`
	Limit      *uint  `json:"limit,omitempty" doc:"How many; 50 unless told, 1000 at most."`
}

type NativeSession struct {
	ID         string `json:"native_session_id" doc:"The agent's own id of it."`
	Title      string `json:"title,omitempty" doc:"In the agent's words."`
	UpdatedAt  string `json:"updated_at,omitempty" doc:"When something happened in it last."`
	WorkingDir string `json:"working_dir,omitempty" doc:"The directory in which it works."`
	SessionID  string `json:"session_id,omitempty" doc:"The last session of the conversation here that has it."`
	TaskID     string `json:"task_id,omitempty" doc:"The same under its name as a task."`
}

type NativeSessionList struct {
	Agent      string          `json:"agent" doc:"Its name in the configuration."`
	Sessions   []NativeSession `json:"sessions"`
	NextCursor string          `json:"next_cursor,omitempty" doc:"There may be more: pass this as cursor."`
}

type AdoptParams struct {
	Agent      string `json:"agent,omitempty" doc:"The agent's name in the configuration; absent: the default one."`
	ID         string `json:"native_session_id" doc:"The agent's own id of the session, as agent.sessions lists it."`
	WorkingDir string `json:"working_dir,omitempty" doc:"The directory in which it is to go on; ~ is expanded; absent: as the agent says, or else the project's root."`
	Title      string `json:"title,omitempty" doc:"What to call the session; absent: as the agent does."`
}

func (p AdoptParams) Check() error { return NotEmpty("native_session_id", p.ID) }

type AdoptResult struct {
	LaunchResult
	NativeSession string `json:"native_session_id"`
	Adopted       bool   `json:"adopted" doc:"False: it had a conversation here already, which was left as it is."`
	History       bool   `json:"history" doc:"Whether its agent has told what was said and done in it. Of one that was here already: true."`
	Note          string `json:"note,omitempty" doc:"What is to be known about that, in words."`
}

type NativeSessionDeleteParams struct {
	Agent string `json:"agent,omitempty" doc:"The agent's name in the configuration; absent: the default one."`
	ID    string `json:"native_session_id" doc:"The agent's own id of the session."`
}

func (p NativeSessionDeleteParams) Check() error { return NotEmpty("native_session_id", p.ID) }

// MCPServerOwner names the agent or conversation of servers.
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
