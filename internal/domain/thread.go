package domain

import (
	"time"
)

// A Thread is a conversation with one agent in one directory.
type Thread struct {
	ID            int64     `db:"id,auto"`
	UUID          string    `db:"uuid,fixed"`
	Title         string    `db:"title"`
	CWD           string    `db:"cwd,fixed"`
	Agent         string    `db:"agent"`          // its name in the configuration; "" until one is needed, in a history that was taken over
	NativeSession string    `db:"native_session"` // the agent's own id of the conversation; empty before the first turn
	Mode          string    `db:"mode"`           // that people asked for: default, acceptEdits, bypassPermissions, plan, or one of the agent's own
	Model         string    `db:"model"`          // that people asked for; a run has the one that its agent works with
	Settings      Settings  `db:"settings"`
	Parent        int64     `db:"parent,fixed"`   // the thread that it was forked from, or 0
	ForkRun       int64     `db:"fork_run,fixed"` // the last run of Parent that belongs to it, or 0
	Archived      bool      `db:"archived"`
	Created       time.Time `db:"created,fixed"`
	Active        time.Time `db:"active"` // when something happened last
}

// ModeAfter is the permission mode that a run begins with which follows another
// one: that run's, unless the thread's was changed since.
func (t Thread) ModeAfter(r Run) string {
	if r.ID <= t.Settings.ModeRun {
		return t.Mode
	}
	return r.Mode
}

// AgentModeAfter is the mode of its own that an agent goes on in after a run: the
// one that it was in last, or "" if people have asked for another one since.
func (t Thread) AgentModeAfter(r Run) string {
	if r.ID <= t.Settings.ModeRun {
		return ""
	}
	return r.AgentMode
}

// Settings are what a caller said about a thread and what was changed since.
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
	MCPServers            []MCPServer `json:"mcp_servers,omitempty"` // beside those of the agent's configuration
	MaxTurns              int         `json:"max_turns,omitempty"`
	Budget                Budget      `json:"budget,omitzero"` // of each of its runs, beside that of the configuration
	Verbose               bool        `json:"verbose,omitempty"`
	ModeRun               int64       `json:"mode_run,omitempty"` // the last run when the thread's mode was changed, see Thread.ModeAfter

	Options map[string]string `json:"options,omitempty"` // of the agent, by ID, that people asked for
}

// A RecentPath is a directory that threads worked in.
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

// A PageMessage is what a page of a preview has said.
type PageMessage struct {
	ID      int64     `db:"id,auto"`
	Kind    string    `db:"kind,fixed"`  // one of the Page constants
	Level   string    `db:"level,fixed"` // of PageConsole: log, debug, info, warn or error
	Text    string    `db:"text,fixed"`  // of PageNavigation: the title of the page
	URL     string    `db:"url,fixed"`   // of the page; of PageError where it went wrong
	Line    int       `db:"line,fixed"`  // 0: unknown
	Column  int       `db:"col,fixed"`
	Stack   string    `db:"stack,fixed"`
	Thread  int64     `db:"thread,fixed"`    // the conversation that it was said in, 0 where there was none
	Run     int64     `db:"run,fixed"`       // its run, or 0
	Session string    `db:"session_id,read"` // of the run; read only
	Count   int       `db:"count"`           // how often it was said, one after the other
	Time    time.Time `db:"at"`              // when it was said last
}

// Same reports whether another message says the same.
func (m PageMessage) Same(n PageMessage) bool {
	m.ID, m.Count, m.Time, m.Session = n.ID, n.Count, n.Time, n.Session
	return m == n
}

// A PageFilter says which messages of pages are meant.
type PageFilter struct {
	Thread, Run int64 // 0: all
	Problems    bool  // only errors, and what is said at the levels warn and error
	After       int64 // those with a higher ID
	Limit       int   // the last ones
}

// A KeyAccess is that an agent asked for the API key of a service.
type KeyAccess struct {
	At        time.Time `db:"at"`
	Run       int64     `db:"run"`
	SessionID string    `db:"session_id,read"` // of the run
	Service   string    `db:"service"`
	Outcome   string    `db:"outcome"` // where the key came from, or why there was none; in words
}

// A Process is an agent that was started and has not ended as far as we know.
type Process struct {
	PID  int    `db:"pid"`
	Mark string `db:"mark"` // value of DUET_AGENT_MARK in its environment
	Run  int64  `db:"run"`
}
