package domain

import (
	"time"
)

// A Thread is a conversation with one agent in one directory.
type Thread struct {
	ID            int64     `db:"id,auto"`
	UUID          string    `db:"uuid,fixed"`
	Title         string    `db:"title"`
	CWD           string    `db:"cwd"`
	Agent         string    `db:"agent"`          // its name in the configuration; "" in an imported history without an agent
	NativeSession string    `db:"native_session"` // the agent's own id of the conversation; empty before the first turn
	Mode          string    `db:"mode"`           // requested: default, acceptEdits, bypassPermissions, plan, or a mode of the agent
	Model         string    `db:"model"`          // requested; a run has its agent's actual model
	Settings      Settings  `db:"settings"`
	Parent        int64     `db:"parent,fixed"`   // the thread of which it is a fork, or 0
	ForkRun       int64     `db:"fork_run,fixed"` // the last shared run of Parent, or 0
	Archived      bool      `db:"archived"`
	Created       time.Time `db:"created,fixed"`
	Active        time.Time `db:"active"` // the last activity
}

// ModeAfter is the permission mode of a run that follows another one: the mode of that run, unless
// the thread's mode was changed since.
func (t Thread) ModeAfter(r Run) string {
	if r.ID <= t.Settings.ModeRun {
		return t.Mode
	}
	return r.Mode
}

// AgentModeAfter is the agent's own mode after a run: its last one, or "" if another one was
// requested since.
func (t Thread) AgentModeAfter(r Run) string {
	if r.ID <= t.Settings.ModeRun {
		return ""
	}
	return r.AgentMode
}

// Settings are the settings of a thread: those of its launch and later changes.
type Settings struct {
	AutoAcceptEdits       bool        `json:"auto_accept_edits,omitempty"`
	SkipPermissions       bool        `json:"skip_permissions,omitempty"`
	SkipPermissionsUntil  *time.Time  `json:"skip_permissions_until,omitempty"` // nil: without end
	SystemPrompt          string      `json:"system_prompt,omitempty"`
	AppendSystemPrompt    string      `json:"append_system_prompt,omitempty"`
	CustomInstructions    string      `json:"custom_instructions,omitempty"`
	PermissionPromptTool  string      `json:"permission_prompt_tool,omitempty"`
	AllowedTools          []string    `json:"allowed_tools,omitempty"`
	DisallowedTools       []string    `json:"disallowed_tools,omitempty"`
	AdditionalDirectories []string    `json:"additional_directories,omitempty"`
	MCPServers            []MCPServer `json:"mcp_servers,omitempty"` // in addition to those of the configuration
	MaxTurns              int         `json:"max_turns,omitempty"`
	Budget                Budget      `json:"budget,omitzero"` // of each run, in place of the configuration
	Verbose               bool        `json:"verbose,omitempty"`
	ModeRun               int64       `json:"mode_run,omitempty"` // the last run at the change of the mode; see Thread.ModeAfter

	Options map[string]string `json:"options,omitempty"` // requested options of the agent, by ID
}

// A RecentPath is a directory of threads.
type RecentPath struct {
	Path     string    `db:"cwd"`
	LastUsed time.Time `db:"used,read"`
	Count    int       `db:"count,read"`
}

// Values of PageMessage.Kind.
const (
	PageConsole    = "console"
	PageError      = "error"
	PageNavigation = "navigation"
)

// A PageMessage is a message of a preview's page.
type PageMessage struct {
	ID      int64     `db:"id,auto"`
	Kind    string    `db:"kind,fixed"`  // one of the Page constants
	Level   string    `db:"level,fixed"` // of PageConsole: log, debug, info, warn or error
	Text    string    `db:"text,fixed"`  // of PageNavigation: the title of the page
	URL     string    `db:"url,fixed"`   // of the page; of PageError the place of the error
	Line    int       `db:"line,fixed"`  // 0: unknown
	Column  int       `db:"col,fixed"`
	Stack   string    `db:"stack,fixed"`
	Thread  int64     `db:"thread,fixed"`    // the conversation at the time, or 0
	Run     int64     `db:"run,fixed"`       // its run, or 0
	Session string    `db:"session_id,read"` // of the run; read only
	Count   int       `db:"count"`           // how often in a row
	Time    time.Time `db:"at"`              // the last time
}

// Same reports whether another message is the same.
func (m PageMessage) Same(n PageMessage) bool {
	m.ID, m.Count, m.Time, m.Session = n.ID, n.Count, n.Time, n.Session
	return m == n
}

// A PageFilter chooses messages of pages.
type PageFilter struct {
	Thread, Run int64 // 0: all
	Problems    bool  // only errors, and the levels warn and error
	After       int64 // only higher IDs
	Limit       int   // the last messages
}

// A KeyAccess is a request of an agent for an API key.
type KeyAccess struct {
	At        time.Time `db:"at" json:"at"`
	Run       int64     `db:"run" json:"-"`
	SessionID string    `db:"session_id,read" json:"session_id"` // of the run
	Service   string    `db:"service" json:"service"`
	Outcome   string    `db:"outcome" json:"outcome"` // the key's source, or why there was none; for people
}

// A Process is an agent that was started and is not known to have ended.
type Process struct {
	PID  int    `db:"pid"`
	Mark string `db:"mark"` // value of DUET_AGENT_MARK in its environment
	Run  int64  `db:"run"`
}
