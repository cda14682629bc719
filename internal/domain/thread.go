package domain

import (
	"encoding/json"
	"time"
)

// A Thread is a conversation with one agent in one directory.
type Thread struct {
	ID            int64
	UUID          string
	Title         string
	CWD           string
	Agent         string // its name in the configuration; "" until one is needed, in a history that was taken over
	NativeSession string // the agent's own id of the conversation; empty before the first turn
	Mode          string // permission mode: default, acceptEdits, bypassPermissions, plan
	Model         string
	Settings      Settings
	Parent        int64 // the thread that it was forked from, or 0
	ForkRun       int64 // the last run of Parent that belongs to it, or 0
	Archived      bool
	Created       time.Time
	Active        time.Time // when something happened last
}

// ModeAfter is the permission mode that a run begins with which follows another
// one: that run's, unless the thread's was changed since.
func (t Thread) ModeAfter(r Run) string {
	if r.ID <= t.Settings.ModeRun {
		return t.Mode
	}
	return r.Mode
}

// Settings are what a caller said about a thread and what was changed since.
type Settings struct {
	AutoAcceptEdits       bool            `json:"auto_accept_edits,omitempty"`
	SkipPermissions       bool            `json:"skip_permissions,omitempty"`
	SkipPermissionsUntil  *time.Time      `json:"skip_permissions_until,omitempty"` // nil: without end
	SystemPrompt          string          `json:"system_prompt,omitempty"`
	AppendSystemPrompt    string          `json:"append_system_prompt,omitempty"`
	CustomInstructions    string          `json:"custom_instructions,omitempty"`
	PermissionPromptTool  string          `json:"permission_prompt_tool,omitempty"`
	AllowedTools          []string        `json:"allowed_tools,omitempty"`
	DisallowedTools       []string        `json:"disallowed_tools,omitempty"`
	AdditionalDirectories []string        `json:"additional_directories,omitempty"`
	MCPServers            json.RawMessage `json:"mcp_servers,omitempty"` // a list of catalog.MCPServer
	MaxTurns              int             `json:"max_turns,omitempty"`
	Verbose               bool            `json:"verbose,omitempty"`
	ModeRun               int64           `json:"mode_run,omitempty"` // the last run when the thread's mode was changed, see Thread.ModeAfter
}

// A RecentPath is a directory that threads worked in.
type RecentPath struct {
	Path     string
	LastUsed time.Time
	Count    int
}

// A Tally is how many rows of a kind a database has.
type Tally struct {
	Threads, Runs, Items, Changes int
	Waiting                       int // runs that are queued, or drafts
	Unfinished                    int // runs that have an agent
	Rules, Questions, Carried     int // questions are those that are open, carried answers those that were not asked for again
	Modes, Settings, MCPServers   int // threads and runs with another mode than default; threads with settings, with servers
	NativeSessions, Agents        int // agents are those that it takes to be alive
}
