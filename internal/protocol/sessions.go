package protocol

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/server"
)

// A LeafFilter selects sessions in lists.
type LeafFilter string

// Accepted implements schema.Enum.
func (LeafFilter) Accepted() []string { return []string{"", "normal", "archived", "draft"} }

type DeleteSessionResult struct {
	SessionUUID string `json:"session_uuid"`
	Deleted     int    `json:"deleted" doc:"Number of deleted turns."`
	Kept        int    `json:"kept" doc:"Number of turns that stay because other sessions were forked from them."`
	Worktree    string `json:"worktree,omitempty" doc:"The session's worktree if it stays, because another session uses it or git cannot delete it."`
}

// AgentSettings are the parameters that session.start and session.prompt share.
type AgentSettings struct {
	SystemPrompt          string          `json:"system_prompt,omitempty" doc:"Replaces the agent's system prompt, if the agent has one."`
	AppendSystemPrompt    string          `json:"append_system_prompt,omitempty" doc:"Appended to the system prompt."`
	CustomInstructions    string          `json:"custom_instructions,omitempty" doc:"Further instructions for the agent."`
	MCPConfig             json.RawMessage `json:"mcp_config,omitempty" doc:"{mcpServers:{name:{command,args?,env?}}} or {…:{type,url,headers?}}, or a string that contains this JSON."`
	PermissionPromptTool  string          `json:"permission_prompt_tool,omitempty" doc:"Kept for old clients. Duet asks for permission with approvals."`
	AllowedTools          []string        `json:"allowed_tools,omitempty" doc:"The only tools that the agent may use; they need no approval. Empty: all tools, or those of the previous session."`
	DisallowedTools       []string        `json:"disallowed_tools,omitempty" doc:"Tools that the agent may not use."`
	AdditionalDirectories []string        `json:"additional_directories,omitempty" doc:"Directories in addition to working_dir that the agent may use."`
	ReadsFiles            bool            `json:"reads_files,omitempty" doc:"The client may have unsaved changes in files. When the agent reads a text file through Duet, the daemon asks this connection for it (\"Files\")."`
	MaxTurns              uint            `json:"max_turns,omitempty" doc:"Rounds of tool calls after which the daemon interrupts the agent. 0: as configured."`
	Sandbox               Sandbox         `json:"sandbox,omitempty" doc:"The sandbox in which the agent and its programs run: workspace, or offline, without a network. Only on Linux with bubblewrap; elsewhere the request fails (sandbox_unavailable). The stronger level of the agent's configuration, the session and this applies. Absent: that of the session."`
	Budget                *TurnBudget     `json:"budget,omitempty" doc:"Limits of each turn of the session, in place of the configured ones ([budget.turn]). Absent: those of the previous turn."`
}

// A MCPServerConfig is HumanLayer's configuration of a server. The server's name is its key.
type MCPServerConfig struct {
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
	Type    string            `json:"type"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
}

// StartParams start a session with its first prompt.
type StartParams struct {
	Prompt     string            `json:"prompt" doc:"The prompt."`
	Title      string            `json:"title,omitempty" doc:"The session's title."`
	Agent      string            `json:"agent,omitempty" doc:"The agent's name in the configuration. Default: the default agent."`
	Model      string            `json:"model,omitempty" doc:"A model of the agent. A model that the agent is known not to have is refused. If the agent does not list its models, it keeps its own."`
	Mode       string            `json:"mode,omitempty" doc:"What the agent may do without asking: default, acceptEdits, bypassPermissions, plan, or a mode of the agent (\"Modes\"). A mode that the agent is known not to have is refused, and so is plan for a plain command."`
	Options    map[string]string `json:"options,omitempty" doc:"Values of the agent's options, by option id. A value that the agent is known not to have is refused."`
	WorkingDir string            `json:"working_dir,omitempty" doc:"The agent's working directory; ~ is expanded. Default: the project's root."`
	AgentSettings
	PromptContent
	AutoAcceptEdits   bool   `json:"auto_accept_edits,omitempty" doc:"File edits need no approval."`
	SkipPermissions   bool   `json:"skip_permissions,omitempty" doc:"No tool call needs approval."`
	SkipPermissionsMS *int64 `json:"skip_permissions_ms,omitempty" doc:"For how long, in milliseconds. Absent or 0: unlimited."`

	Priority    int    `json:"priority,omitempty" doc:"Higher runs first."`
	TimeoutMS   *uint  `json:"timeout_ms,omitempty" doc:"Time limit in milliseconds. Absent or 0: as configured."`
	SessionUUID string `json:"session_uuid,omitempty" doc:"A UUID that the client chooses for the session. If a session with it exists, the prompt continues it."`
	StartID     string `json:"start_id,omitempty" doc:"A UUID that the client chooses for this start. A start that is sent again with the same id and prompt, for example after an error, returns the turn of the first one and starts nothing."`
	Gated
	Worktree *bool           `json:"worktree,omitempty" doc:"Absent: as worktree in the configuration says. true: the agent works in a git worktree of its own, outside of the project's directory: session.land brings the result to the branch that is checked out now, session.discard deletes it. Only for a new session. Uncommitted files of the user are not in it."`
	Base     string          `json:"worktree_base,omitempty" doc:"With worktree: the commit or branch that the worktree begins with. Absent: the commit that is checked out."`
	Attempts string          `json:"attempts,omitempty" doc:"With worktree: a UUID that the client chooses for several attempts at the same prompt, which it starts one by one, perhaps on several hosts. attempt.list compares those with the same one."`
	Send     bool            `json:"send,omitempty" doc:"Of an editor's process with --host alone: sends the commit and the files of the project on this machine to the host first, and the agent works in a worktree there that begins with them. session.land and session.discard bring its work here."`
	Draft    bool            `json:"draft,omitempty" doc:"Only store the prompt. session.prompt sends it."`
	Metadata json.RawMessage `json:"metadata,omitempty" doc:"A JSON object that is stored with the turn."`
	Quiet    bool            `json:"quiet,omitempty" doc:"Subscribers get the turn's messages when they are complete, and no text.delta or thought.delta."`
	Chat     bool            `json:"chat,omitempty" doc:"Send the prompt to the project's chat: one session that continues from prompt to prompt, with the default agent or with agent. If the agent changes, the chat continues in a fork, and the new agent gets the transcript."`

	// For dialects.
	Source  string   `json:"-"` // what started the turn; "": a session
	Alias   string   `json:"-"` // the caller's id of the session, a text of any form; prompts with the same id share it
	TurnID  string   `json:"-"` // the caller's id of the turn, a text of any form; it must be new
	Allowed []string `json:"-"` // the only tools that the turn may use; empty: all, or those of AgentSettings
}

// A Delivery says what became of a prompt.
type Delivery string

// Values of [Started.Delivered].
const (
	DeliveredStarted  Delivery = "started"
	DeliveredQueued   Delivery = "queued"
	DeliveredInjected Delivery = "injected" // the working agent has it
)

// Accepted implements schema.Enum.
func (Delivery) Accepted() []string { return []string{"started", "queued", "injected"} }

// Started names a turn that a prompt has begun.
type Started struct {
	Name        string       `json:"turn" doc:"The turn's number, such as 12.3."`
	Session     int64        `json:"session" doc:"The session's number in the project."`
	ID          string       `json:"turn_uuid"`
	SessionUUID string       `json:"session_uuid"`
	Agent       string       `json:"agent" doc:"The agent that runs the prompt."`
	State       domain.State `json:"state"`
	Delivered   Delivery     `json:"delivered" doc:"injected: the working agent has the prompt, and turn is its turn."`
	Beside      []string     `json:"beside,omitempty" doc:"Turns of other sessions that work in the same directory and may change the same files."`
	NotSent     *Listing     `json:"not_sent,omitempty" doc:"With send: files that did not go to the host. They are not committed, and above 50 MB or in a nested repository. Absent: none."`

	// For dialects, whose ids they have.
	Of     domain.TurnInSession   `json:"-"`
	Others []domain.TurnInSession `json:"-"` // Beside
}

// PromptParams continue a session with another prompt.
type PromptParams struct {
	Session  Ref     `json:"session" doc:"The session. A turn that has ended and is not the last of its session starts a fork after it."`
	Prompt   *string `json:"prompt,omitempty" doc:"The prompt. Required unless the session is a draft, which has its own."`
	PromptID string  `json:"prompt_id,omitempty" doc:"A UUID that the client chooses for this prompt. A prompt that is sent again with the same id, for example after an error, returns the turn of the first one and starts nothing. Not with the delivery steer."`
	Deliver  string  `json:"deliver,omitempty" doc:"queue (default): the prompt waits for the end of the current turn. steer: the agent gets the prompt during the turn if it can, otherwise the prompt waits, before the other queued prompts. A prompt with content, other settings or gates always waits."`
	NextTurn
}

// ForkParams start a session that continues another one after a turn.
type ForkParams struct {
	Turn        Ref               `json:"turn" doc:"The last turn that both sessions share. A session means its last turn."`
	Prompt      string            `json:"prompt" doc:"The prompt."`
	Agent       string            `json:"agent,omitempty" doc:"The agent that continues it. Default: the session's."`
	Model       string            `json:"model,omitempty" doc:"A model of the agent. Default: the session's, if the agent is the same."`
	Mode        string            `json:"mode,omitempty" doc:"A permission mode, as in session.start. Default: plan if the session is in plan, else default."`
	Options     map[string]string `json:"options,omitempty" doc:"Values of the agent's options, by option id. The session's others are kept, if the agent is the same."`
	SessionUUID string            `json:"session_uuid,omitempty" doc:"A UUID that the client chooses for the new session."`
	NextTurn
}

// NextTurn has the parameters of a prompt that follows another one.
type NextTurn struct {
	AgentSettings
	PromptContent
	Priority  int             `json:"priority,omitempty" doc:"Higher runs first."`
	Metadata  json.RawMessage `json:"metadata,omitempty" doc:"A JSON object that is stored with the turn."`
	TimeoutMS *uint           `json:"timeout_ms,omitempty" doc:"Time limit in milliseconds. Absent or 0: that of the previous turn."`
	Gated
}

type SessionListParams struct {
	Filter LeafFilter `json:"filter,omitempty" doc:"Absent or empty: all sessions."`
	Limit  *uint      `json:"limit,omitempty" doc:"Default 500, at most 1000."`
	Before Ref        `json:"before,omitempty" doc:"Only sessions whose last turn is older than this turn, for paging."`
}

type SessionsResult struct {
	Sessions   []*Turn `json:"sessions" doc:"Each by its last turn."`
	NextBefore string  `json:"next_before,omitempty" doc:"Present if there may be more: pass it as before."`
}

// SessionRefParams name a session.
type SessionRefParams struct {
	Session Ref `json:"session" doc:"The session, such as 12."`
}

func (p SessionRefParams) Check() error { return NotEmpty("session", string(p.Session)) }

type GetSessionResult struct {
	Session Turn             `json:"session" doc:"The session by its last turn."`
	Queued  []*WaitingPrompt `json:"queued" doc:"The queued prompts, the next one first."`
}

type ArchiveSessionsParams struct {
	Sessions []Ref `json:"sessions" doc:"The sessions."`
	Archived *bool `json:"archived,omitempty" doc:"Default true; false restores the sessions."`
}

func (p ArchiveSessionsParams) Check() error {
	if len(p.Sessions) == 0 {
		return server.InvalidParam(server.ParamError{Param: "sessions", Expected: "an array that is not empty", Received: "an empty array"})
	}
	return nil
}

type ArchiveSessionsResult struct {
	Failed []string `json:"failed" doc:"The sessions that could not be changed."`
}

type RenameSessionParams struct {
	Session Ref    `json:"session" doc:"The session."`
	Title   string `json:"title" doc:"The new title. Empty: none."`
}

func (p RenameSessionParams) Check() error { return NotEmpty("session", string(p.Session)) }

type SetSessionParams struct {
	Session Ref               `json:"session" doc:"The session."`
	Agent   *string           `json:"agent,omitempty" doc:"Another configured agent, which continues the session from the next prompt on."`
	Mode    *string           `json:"mode,omitempty" doc:"A mode of the agent, or default, acceptEdits, bypassPermissions or plan (\"Modes\")."`
	Model   *string           `json:"model,omitempty" doc:"A model of the agent. Empty ends the request for a model."`
	Options map[string]string `json:"options,omitempty" doc:"Values of the agent's options, by option id. An empty value ends the request for that option."`

	AutoAcceptEdits       *bool     `json:"auto_accept_edits,omitempty" doc:"Edits of files need no approval."`
	SkipPermissions       *bool     `json:"skip_permissions,omitempty" doc:"Nothing needs approval."`
	SkipPermissionsMS     *int64    `json:"skip_permissions_ms,omitempty" doc:"For how long, in milliseconds. Absent or 0: unlimited."`
	AdditionalDirectories *[]string `json:"additional_directories,omitempty" doc:"Directories in addition to working_dir that the agent may use from its next start on."`

	Wait *bool `json:"wait,omitempty" doc:"Default true: wait until a working agent has accepted its mode, model and options, and change nothing if it refuses one. false: return at once. If the agent then refuses one, its turn gets the error SETTING_REFUSED."`

	// For dialects, which change these together with the others.
	Title    *string `json:"-"`
	Archived *bool   `json:"-"`
}

func (p SetSessionParams) Check() error {
	return cmp.Or(NotEmpty("session", string(p.Session)), NotEmptyIfGiven("agent", p.Agent))
}

type SetSessionResult struct {
	Live bool `json:"live" doc:"true: the agent is working and has accepted the change. false: it gets the change with the next prompt, or the request did not wait."`
	Turn Turn `json:"turn" doc:"As in turn.get."`
}

// A SessionEvent has the settings of a session that changed, with the names of a [Turn].
type SessionEvent struct {
	Title                *string           `json:"title,omitempty"`
	Mode                 *string           `json:"mode,omitempty"`
	Model                *string           `json:"model,omitempty"`
	AutoAcceptEdits      *bool             `json:"auto_accept_edits,omitempty"`
	SkipPermissions      *bool             `json:"skip_permissions,omitempty"`
	SkipUntil            time.Time         `json:"skip_permissions_until,omitzero"`
	Archived             *bool             `json:"archived,omitempty"`
	AdditionalDirs       *[]string         `json:"additional_directories,omitempty"`
	Options              map[string]string `json:"options,omitempty" doc:"The agent's other settings, by their ids."`
	RequestedAgent       *string           `json:"requested_agent,omitempty"`
	Reason               string            `json:"reason,omitempty"`
	AgentSessionID       string            `json:"agent_session_id,omitempty" doc:"The agent's own id of the session."`
	AgentSessionReplaced bool              `json:"agent_session_was_replaced,omitempty" doc:"The agent could not continue its session and began another one."`
	Forked               bool              `json:"forked,omitempty" doc:"The agent forked its own session."`
	AgentMode            string            `json:"agent_mode,omitempty" doc:"The mode that the agent reports."`
	AgentModes           []string          `json:"agent_modes,omitempty" doc:"The ids of all modes of the agent."`
	AgentModeChoices     []domain.Choice   `json:"agent_mode_choices,omitempty" doc:"All modes of the agent, with their names."`
}

func settingsEvent(c domain.SettingsChanged) *SessionEvent {
	return &SessionEvent{
		Title: c.Title, Mode: c.Mode, Model: c.Model, AutoAcceptEdits: c.AutoAcceptEdits, SkipPermissions: c.SkipPermissions,
		SkipUntil: c.SkipUntil.UTC(), Archived: c.Archived, AdditionalDirs: c.AdditionalDirectories, Reason: c.Reason, Options: c.Options,
		RequestedAgent: c.Agent,
	}
}

// A SessionDeletedEvent says that turns of a session were deleted.
type SessionDeletedEvent struct {
	SessionUUID string   `json:"session_uuid"`
	Turns       []string `json:"turns" doc:"The numbers of the turns, such as 12.3."`
	TurnUUIDs   []string `json:"turn_uuids"`
	Kept        int      `json:"kept,omitempty" doc:"Number of turns that stay because other sessions were forked from them."`
}

func deletedEvent(session int64, p domain.SessionDeleted) *SessionDeletedEvent {
	d := &SessionDeletedEvent{SessionUUID: p.SessionUUID, Turns: []string{}, TurnUUIDs: []string{}, Kept: p.Kept}
	for _, r := range p.Turns {
		d.TurnUUIDs = append(d.TurnUUIDs, r.HumanLayerSession)
		if r.Number > 0 { // unknown in an event of an earlier version
			d.Turns = append(d.Turns, domain.Turn{Session: session, Number: r.Number}.Name())
		}
	}
	return d
}
