package acp

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/rawjson"
)

// claude-agent-acp (0.101): members of its own in _meta.

// claudeSystemPrompt returns the _meta of session/new that gives claude a system prompt, or nil for
// another agent and for no text.
func claudeSystemPrompt(info *domain.AgentInfo, text string) map[string]any {
	if text == "" || info == nil || !strings.Contains(strings.ToLower(info.Name), "claude") {
		return nil
	}
	return map[string]any{"systemPrompt": map[string]any{"append": text}}
}

// claudeTool returns claude's name of the tool of a call, or "".
func claudeTool(meta json.RawMessage) string {
	return strings.TrimSpace(metaString(meta, "claudeCode", "toolName"))
}

// claudeEndSignal reports whether an update names the origin of the turn that has ended, and whether
// that was an agent-initiated turn. The origin of a prompt is "human".
func claudeEndSignal(kind string, update []byte) (isSignal, isEnd bool) {
	var meta struct {
		Origin struct{ Kind string } `json:"_claude/origin"`
	}
	raw := rawjson.Member(update, "_meta")
	if kind != "usage_update" || raw == nil || json.Unmarshal(raw, &meta) != nil {
		return false, false
	}
	return meta.Origin.Kind != "", meta.Origin.Kind != "" && meta.Origin.Kind != "human"
}

// parentOf returns the tool call of the sub-agent that sent an update, as claude reports it, or
// "".
func parentOf(meta json.RawMessage) string { return metaString(meta, "claudeCode", "parentToolUseId") }

// backgroundCommand returns the command of a tool call that is to run in the background, as
// claude and qwen mark it, or "".
func backgroundCommand(input json.RawMessage) string {
	var in struct {
		Command      string
		Background   bool `json:"run_in_background"`
		IsBackground bool `json:"is_background"`
	}
	if !bytes.Contains(input, []byte("background")) || json.Unmarshal(input, &in) != nil || !in.Background && !in.IsBackground {
		return ""
	}
	return in.Command
}
