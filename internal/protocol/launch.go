package protocol

import "encoding/json"

// AgentSettings are what launchSession and continueSession have in common.
type AgentSettings struct {
	SystemPrompt          string          `json:"system_prompt,omitempty" doc:"Replaces the agent's system prompt, where it has one."`
	AppendSystemPrompt    string          `json:"append_system_prompt,omitempty" doc:"Follows the system prompt."`
	CustomInstructions    string          `json:"custom_instructions,omitempty" doc:"Further instructions."`
	MCPConfig             json.RawMessage `json:"mcp_config,omitempty" doc:"{mcpServers:{name:{command,args?,env?}}} or {…:{type,url,headers?}}; also as a string that holds this JSON."`
	PermissionPromptTool  string          `json:"permission_prompt_tool,omitempty" doc:"Kept for old clients; permissions are asked by approvals."`
	AllowedTools          []string        `json:"allowed_tools,omitempty" doc:"The only tools the agent may use, and without being asked for; empty: all, or as the session before might."`
	DisallowedTools       []string        `json:"disallowed_tools,omitempty" doc:"Tools the agent may not use."`
	AdditionalDirectories []string        `json:"additional_directories,omitempty" doc:"Directories beside working_dir that the agent may use."`
	ReadsFiles            bool            `json:"reads_files,omitempty" doc:"This connection has files otherwise than the disk: where the agent reads a text file through Duet, the connection is asked for it (\"Files\")."`
	MaxTurns              int             `json:"max_turns,omitempty" doc:"How many turns the agent may take: rounds of tool calls; 0: as configured. Then it is interrupted."`
	Budget                *RunBudget      `json:"budget,omitempty" doc:"How much each run of the conversation may use, in the place of what is configured ([budget.run]); absent: as the session before."`
}

// A MCPServerConfig is how HumanLayer's clients configure a server: its name stands
// before it.
type MCPServerConfig struct {
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
	Type    string            `json:"type"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
}

type LaunchParams struct {
	Query      string `json:"query" doc:"What the agent is to do."`
	Title      string `json:"title,omitempty" doc:"What to call the session."`
	Model      string `json:"model,omitempty" doc:"A model that the agent has. One that it is known not to have is refused; an agent that does not say which it has is left alone."`
	WorkingDir string `json:"working_dir,omitempty" doc:"The directory in which the agent works; ~ is expanded; absent: the project's root."`
	AgentSettings
	PromptContent
	Verbose           bool   `json:"verbose,omitempty" doc:"Kept for old clients."`
	AutoAcceptEdits   bool   `json:"auto_accept_edits,omitempty" doc:"Edits need no approval."`
	SkipPermissions   bool   `json:"dangerously_skip_permissions,omitempty" doc:"Nothing needs approval."`
	SkipTimeout       *int64 `json:"dangerously_skip_permissions_timeout,omitempty" doc:"For how long, in milliseconds; absent or 0: without end."`
	SkipTimeoutMillis *int64 `json:"dangerously_skip_permissions_timeout_ms,omitempty" doc:"Another name for dangerously_skip_permissions_timeout."`

	Agent          string            `json:"agent,omitempty" doc:"The agent's name in the configuration; absent: the default one."`
	PermissionMode string            `json:"permission_mode,omitempty" doc:"What the agent may do without asking: default, acceptEdits, bypassPermissions, plan, or a mode of the agent's own (\"Modes\"). One that it is known not to have is refused; a plain command cannot be held to plan, which is refused."`
	Options        map[string]string `json:"options,omitempty" doc:"Values of the agent's own options, by their ids. What it is known not to have is refused."`
	Priority       int               `json:"priority,omitempty" doc:"Higher first."`
	TimeoutMS      *uint             `json:"timeout_ms,omitempty" doc:"How long it may run, in milliseconds; absent or 0: as configured."`
	ConversationID string            `json:"conversation_id,omitempty" doc:"A UUID that the caller has chosen to be the thread_id of the conversation. Where there is one with that id the session follows in it."`
	Gated
	Draft    bool            `json:"draft,omitempty" doc:"Only keep it; continueSession launches it."`
	Metadata json.RawMessage `json:"metadata,omitempty" doc:"An object to keep with the session."`
}

type LaunchResult struct {
	SessionID string `json:"session_id"`
	RunID     string `json:"run_id"`
	TaskID    string `json:"task_id" doc:"The same under its name as a task."`
	ThreadID  string `json:"thread_id" doc:"The conversation."`
	Agent     string `json:"agent" doc:"The agent that was taken."`
	Status    string `json:"status"`
}

type ContinueParams struct {
	SessionID string  `json:"session_id" doc:"The session to go on from; every id of the run will do."`
	Query     *string `json:"query,omitempty" doc:"What the agent is to do. Needed, unless the session is a draft, which has its own."`
	AgentSettings
	PromptContent
	Fork     bool            `json:"fork,omitempty" doc:"Begins another conversation there, also behind the last session of one."`
	ForkID   string          `json:"conversation_id,omitempty" doc:"With fork: a UUID that the caller has chosen to be the thread_id of the new conversation."`
	Priority int             `json:"priority,omitempty" doc:"Higher first."`
	Metadata json.RawMessage `json:"metadata,omitempty" doc:"An object to keep with the session."`
	Deliver  string          `json:"deliver,omitempty" doc:"queue (the default): the prompt waits until the turn that is under way has ended. steer: the agent gets it while it works, if it can take it; else it waits, too. A prompt with content, other settings or gates waits in any case."`

	TimeoutMS *uint `json:"timeout_ms,omitempty" doc:"How long it may run, in milliseconds; absent or 0: as the session before."`
	Gated
}

type ContinueResult struct {
	LaunchResult
	ClaudeSessionID string `json:"claude_session_id" doc:"The agent's own id of the conversation; empty before its first turn."`
	ParentSessionID string `json:"parent_session_id"`
	Delivered       string `json:"delivered" doc:"injected: the agent that works has the prompt, and session_id is its session; started; or queued."`
}
