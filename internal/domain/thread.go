package domain

import (
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

// Values of PageMessage.Kind.
const (
	PageConsole    = "console"
	PageError      = "error"
	PageNavigation = "navigation"
)

// A PageMessage is what a page of a preview has said.
type PageMessage struct {
	ID      int64
	Kind    string // one of the Page constants
	Level   string // of PageConsole: log, debug, info, warn or error
	Text    string // of PageNavigation: the title of the page
	URL     string // of the page; of PageError where it went wrong
	Line    int    // 0: unknown
	Column  int
	Stack   string
	Thread  int64     // the conversation that it was said in, 0 where there was none
	Run     int64     // its run, or 0
	Session string    // of the run; read only
	Count   int       // how often it was said, one after the other
	Time    time.Time // when it was said last
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
	At        time.Time
	Run       int64
	SessionID string // of the run
	Service   string
	Outcome   string // where the key came from, or why there was none; in words
}

// A Process is an agent that was started and has not ended as far as we know.
type Process struct {
	PID  int
	Mark string // value of DUET_AGENT_MARK in its environment
	Run  int64
}
