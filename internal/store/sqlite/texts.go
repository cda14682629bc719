package sqlite

import (
	"encoding/json"
	"time"
)

// settingsText is how domain.Settings are kept, as JSON in a column.
type settingsText struct {
	AutoAcceptEdits       bool            `json:"auto_accept_edits,omitempty"`
	SkipPermissions       bool            `json:"skip_permissions,omitempty"`
	SkipPermissionsUntil  *time.Time      `json:"skip_permissions_until,omitempty"`
	SystemPrompt          string          `json:"system_prompt,omitempty"`
	AppendSystemPrompt    string          `json:"append_system_prompt,omitempty"`
	CustomInstructions    string          `json:"custom_instructions,omitempty"`
	PermissionPromptTool  string          `json:"permission_prompt_tool,omitempty"`
	AllowedTools          []string        `json:"allowed_tools,omitempty"`
	DisallowedTools       []string        `json:"disallowed_tools,omitempty"`
	AdditionalDirectories []string        `json:"additional_directories,omitempty"`
	MCPServers            json.RawMessage `json:"mcp_servers,omitempty"`
	MaxTurns              int             `json:"max_turns,omitempty"`
	Verbose               bool            `json:"verbose,omitempty"`
	ModeRun               int64           `json:"mode_run,omitempty"`

	Options map[string]string `json:"options,omitempty"`
}

// tokensText is how domain.Tokens are kept.
type tokensText struct {
	Input       int64   `json:"input,omitempty"`
	Output      int64   `json:"output,omitempty"`
	CacheRead   int64   `json:"cache_read,omitempty"`
	CacheWrite  int64   `json:"cache_write,omitempty"`
	ContextUsed int64   `json:"context_used,omitempty"`
	ContextSize int64   `json:"context_size,omitempty"`
	CostUSD     float64 `json:"cost_usd,omitempty"`
}
