package domain

import "time"

// A Thread is a conversation with one agent in one directory.
type Thread struct {
	ID            int64
	UUID          string
	Title         string
	CWD           string
	Agent         string // its name in the configuration; "" until one is needed, in a history that was taken over
	NativeSession string // the agent's own id of the conversation; empty before the first turn
	Mode          string // that people asked for: default, acceptEdits, bypassPermissions, plan, or one of the agent's own
	Model         string // that people asked for; a run has the one that its agent works with
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
	AutoAcceptEdits       bool
	SkipPermissions       bool
	SkipPermissionsUntil  *time.Time // nil: without end
	SystemPrompt          string
	AppendSystemPrompt    string
	CustomInstructions    string
	PermissionPromptTool  string
	AllowedTools          []string
	DisallowedTools       []string
	AdditionalDirectories []string
	MCPServers            []MCPServer // beside those of the agent's configuration
	MaxTurns              int
	Budget                Budget // of each of its runs, beside that of the configuration
	Verbose               bool
	ModeRun               int64 // the last run when the thread's mode was changed, see Thread.ModeAfter

	Options map[string]string // of the agent, by ID, that people asked for
}

// A RecentPath is a directory that threads worked in.
type RecentPath struct {
	Path     string
	LastUsed time.Time
	Count    int
}
