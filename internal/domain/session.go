package domain

import (
	"maps"
	"strconv"
	"strings"
	"time"
)

// A Session is a sequence of turns with one agent in one directory.
type Session struct {
	ID            int64     `db:"id,auto"` // also its number in the project: the 12 of 12.3
	UUID          string    `db:"uuid,fixed"`
	Title         string    `db:"title"`
	CWD           string    `db:"cwd"`
	Agent         string    `db:"agent"`          // its name in the configuration; "" in an imported history without an agent
	NativeSession string    `db:"native_session"` // the agent's own id of the session; empty before the first turn
	Mode          string    `db:"mode"`           // requested: default, acceptEdits, bypassPermissions, plan, or a mode of the agent
	Model         string    `db:"model"`          // requested; a turn has its agent's actual model
	Settings      Settings  `db:"settings"`
	Parent        int64     `db:"parent,fixed"`    // the session of which it is a fork, or 0
	ForkTurn      int64     `db:"fork_turn,fixed"` // the last shared turn of Parent, or 0
	Archived      bool      `db:"archived"`
	Created       time.Time `db:"created,fixed"`
	Active        time.Time `db:"active"` // the last activity
}

// ParseNumber reads the number of a session, such as 12, or of a turn, such as 12.3. turn is 0 for a
// session. It reports whether the text is one.
func ParseNumber(text string) (session, turn int64, ok bool) {
	one, two, isTurn := strings.Cut(text, ".")
	if session, ok = parseCount(one); !ok || !isTurn {
		return session, 0, ok
	}
	if turn, ok = parseCount(two); !ok {
		return 0, 0, false
	}
	return session, turn, true
}

// parseCount reads a number from 1 without leading zeros.
func parseCount(text string) (n int64, ok bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n <= 0 || strconv.FormatInt(n, 10) != text {
		return 0, false
	}
	return n, true
}

// ModeAfter is the permission mode of a turn that follows another one: the mode of that turn, unless
// the session's mode was changed since.
func (t Session) ModeAfter(r Turn) string {
	if r.ID <= t.Settings.ModeTurn {
		return t.Mode
	}
	return r.Mode
}

// AgentModeAfter is the agent's own mode after a turn: its last one, or "" if another one was
// requested since.
func (t Session) AgentModeAfter(r Turn) string {
	if r.ID <= t.Settings.ModeTurn {
		return ""
	}
	return r.AgentMode
}

// Settings are the settings of a session: those of its launch and later changes.
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
	Budget                Budget      `json:"budget,omitzero"` // of each turn, in place of the configuration
	Verbose               bool        `json:"verbose,omitempty"`
	ModeTurn              int64       `json:"mode_turn,omitempty"` // the last turn at the change of the mode; see Session.ModeAfter
	Sandbox               string      `json:"sandbox,omitempty"`   // the level, one of the Sandbox constants; "": none
	Attempts              string      `json:"attempts,omitempty"`  // the id that all attempts at the same prompt have

	Options map[string]string `json:"options,omitempty"` // requested options of the agent, by ID
}

// SettingsChanged is a change of a session's settings, as a client requests it and as the event of it
// tells. A nil field means no change.
type SettingsChanged struct {
	Title                 *string           `json:"title,omitempty"`
	Mode                  *string           `json:"mode,omitempty"`
	Model                 *string           `json:"model,omitempty"`
	AutoAcceptEdits       *bool             `json:"auto_accept_edits,omitempty"`
	SkipPermissions       *bool             `json:"skip_permissions,omitempty"`
	SkipUntil             time.Time         `json:"skip_until,omitzero"` // of SkipPermissions; zero: without end
	Archived              *bool             `json:"archived,omitempty"`
	AdditionalDirectories *[]string         `json:"additional_directories,omitempty"`
	Reason                string            `json:"reason,omitempty"`
	Options               map[string]string `json:"options,omitempty"` // of the agent, by id; "": no longer requested
	Agent                 *string           `json:"agent,omitempty"`   // from the next prompt on; the fields above then apply to it
}

func (SettingsChanged) Kind() EventKind { return EventSettings }

func (c SettingsChanged) Size() int {
	n := fieldsSize
	if c.AdditionalDirectories != nil {
		for _, dir := range *c.AdditionalDirectories {
			n += len(dir)
		}
	}
	return n
}

// Apply changes the session, except its agent.
func (c SettingsChanged) Apply(s *Session) {
	set(&s.Title, c.Title)
	set(&s.Mode, c.Mode)
	set(&s.Model, c.Model)
	set(&s.Archived, c.Archived)
	set(&s.Settings.AutoAcceptEdits, c.AutoAcceptEdits)
	set(&s.Settings.AdditionalDirectories, c.AdditionalDirectories)
	s.Settings.Options = WithOptions(s.Settings.Options, c.Options)
	if c.SkipPermissions == nil {
		return
	}
	s.Settings.SkipPermissions, s.Settings.SkipPermissionsUntil = *c.SkipPermissions, nil
	if *c.SkipPermissions && !c.SkipUntil.IsZero() {
		s.Settings.SkipPermissionsUntil = &c.SkipUntil
	}
}

// WithOptions returns options with a change applied; "" removes an option.
func WithOptions(options, change map[string]string) map[string]string {
	if len(change) == 0 {
		return options
	}
	changed := maps.Clone(options)
	if changed == nil {
		changed = make(map[string]string)
	}
	for id, value := range change {
		if changed[id] = value; value == "" {
			delete(changed, id)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	return changed
}

// set sets *field to *value unless value is nil.
func set[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}

// A RecentPath is a directory of sessions.
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
	ID                int64     `db:"id,auto"`
	Kind              string    `db:"kind,fixed"`  // one of the Page constants
	Level             string    `db:"level,fixed"` // of PageConsole: log, debug, info, warn or error
	Text              string    `db:"text,fixed"`  // of PageNavigation: the title of the page
	URL               string    `db:"url,fixed"`   // of the page; of PageError the place of the error
	Line              int       `db:"line,fixed"`  // 0: unknown
	Column            int       `db:"col,fixed"`
	Stack             string    `db:"stack,fixed"`
	Session           int64     `db:"session,fixed"`   // the session at the time, or 0
	Turn              int64     `db:"turn,fixed"`      // its turn, or 0
	HumanLayerSession string    `db:"session_id,read"` // of the turn; read only
	Count             int       `db:"count"`           // how often in a row
	Time              time.Time `db:"at"`              // the last time
}

// Same reports whether another message is the same.
func (m PageMessage) Same(n PageMessage) bool {
	m.ID, m.Count, m.Time, m.HumanLayerSession = n.ID, n.Count, n.Time, n.HumanLayerSession
	return m == n
}

// A PageFilter chooses messages of pages.
type PageFilter struct {
	Session, Turn int64 // 0: all
	Problems      bool  // only errors, and the levels warn and error
	After         int64 // only higher IDs
	Limit         int   // the last messages
}

// A KeyAccess is a request of an agent for an API key.
type KeyAccess struct {
	At                time.Time `db:"at" json:"at"`
	Turn              int64     `db:"turn" json:"-"`
	HumanLayerSession string    `db:"session_id,read" json:"session_id"` // of the turn
	Service           string    `db:"service" json:"service"`
	Outcome           string    `db:"outcome" json:"outcome"` // the key's source, or why there was none; for people
}

// A Process is an agent that was started and is not known to have ended.
type Process struct {
	PID  int    `db:"pid"`
	Mark string `db:"mark"` // value of DUET_AGENT_MARK in its environment
	Turn int64  `db:"turn"`
}
