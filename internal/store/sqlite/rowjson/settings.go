package rowjson

import (
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// Settings are domain.Settings.
type Settings struct {
	AutoAcceptEdits       bool        `json:"auto_accept_edits,omitempty"`
	SkipPermissions       bool        `json:"skip_permissions,omitempty"`
	SkipPermissionsUntil  *time.Time  `json:"skip_permissions_until,omitempty"`
	SystemPrompt          string      `json:"system_prompt,omitempty"`
	AppendSystemPrompt    string      `json:"append_system_prompt,omitempty"`
	CustomInstructions    string      `json:"custom_instructions,omitempty"`
	PermissionPromptTool  string      `json:"permission_prompt_tool,omitempty"`
	AllowedTools          []string    `json:"allowed_tools,omitempty"`
	DisallowedTools       []string    `json:"disallowed_tools,omitempty"`
	AdditionalDirectories []string    `json:"additional_directories,omitempty"`
	MCPServers            []mcpServer `json:"mcp_servers,omitempty"`
	MaxTurns              int         `json:"max_turns,omitempty"`
	Verbose               bool        `json:"verbose,omitempty"`
	ModeRun               int64       `json:"mode_run,omitempty"`

	Options map[string]string `json:"options,omitempty"`
	Budget  budget            `json:"budget,omitzero"`
}

// budget is how a domain.Budget is kept.
type budget struct {
	Turns   int           `json:"turns,omitempty"`
	Time    time.Duration `json:"time,omitempty"`
	Tokens  int64         `json:"tokens,omitempty"`
	CostUSD float64       `json:"cost_usd,omitempty"`
	Repeats int           `json:"repeats,omitempty"`
}

// mcpServer is how a domain.MCPServer is kept.
type mcpServer struct {
	Name    string            `json:"name"`
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	Type    string            `json:"type,omitempty"`
	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
}

// SettingsOf are settings as rows have them.
func SettingsOf(s domain.Settings) Settings {
	t := Settings{
		AutoAcceptEdits: s.AutoAcceptEdits, SkipPermissions: s.SkipPermissions, SkipPermissionsUntil: s.SkipPermissionsUntil,
		SystemPrompt: s.SystemPrompt, AppendSystemPrompt: s.AppendSystemPrompt, CustomInstructions: s.CustomInstructions, PermissionPromptTool: s.PermissionPromptTool,
		AllowedTools: s.AllowedTools, DisallowedTools: s.DisallowedTools, AdditionalDirectories: s.AdditionalDirectories,
		MaxTurns: s.MaxTurns, Verbose: s.Verbose, ModeRun: s.ModeRun, Options: s.Options, Budget: budget(s.Budget),
	}
	for _, server := range s.MCPServers {
		t.MCPServers = append(t.MCPServers, mcpServer(server))
	}
	return t
}

// Value are the settings of a row.
func (t Settings) Value() domain.Settings {
	s := domain.Settings{
		AutoAcceptEdits: t.AutoAcceptEdits, SkipPermissions: t.SkipPermissions, SkipPermissionsUntil: t.SkipPermissionsUntil,
		SystemPrompt: t.SystemPrompt, AppendSystemPrompt: t.AppendSystemPrompt, CustomInstructions: t.CustomInstructions, PermissionPromptTool: t.PermissionPromptTool,
		AllowedTools: t.AllowedTools, DisallowedTools: t.DisallowedTools, AdditionalDirectories: t.AdditionalDirectories,
		MaxTurns: t.MaxTurns, Verbose: t.Verbose, ModeRun: t.ModeRun, Options: t.Options, Budget: domain.Budget(t.Budget),
	}
	for _, server := range t.MCPServers {
		s.MCPServers = append(s.MCPServers, domain.MCPServer(server))
	}
	return s
}

// Tokens are domain.Tokens.
type Tokens struct {
	Input       int64   `json:"input,omitempty"`
	Output      int64   `json:"output,omitempty"`
	CacheRead   int64   `json:"cache_read,omitempty"`
	CacheWrite  int64   `json:"cache_write,omitempty"`
	ContextUsed int64   `json:"context_used,omitempty"`
	ContextSize int64   `json:"context_size,omitempty"`
	CostUSD     float64 `json:"cost_usd,omitempty"`
}
