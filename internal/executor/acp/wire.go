package acp

import (
	"encoding/json"
	"slices"
)

// What is taken of an agent's answers. The SDK's own types refuse what they do
// not know; an agent that is newer than they are has to work.
type (
	initializeResult struct {
		AgentCapabilities struct {
			LoadSession         bool `json:"loadSession"`
			SessionCapabilities struct {
				Resume                json.RawMessage `json:"resume"`
				AdditionalDirectories json.RawMessage `json:"additionalDirectories"`
			} `json:"sessionCapabilities"`
			Meta            json.RawMessage `json:"_meta"`
			MCPCapabilities struct {
				HTTP bool `json:"http"`
				SSE  bool `json:"sse"`
			} `json:"mcpCapabilities"`
		} `json:"agentCapabilities"`
		AgentInfo *struct {
			Name string `json:"name"`
		} `json:"agentInfo"`
		AuthMethods []struct {
			Name string `json:"name"`
		} `json:"authMethods"`
	}
	sessionResult struct {
		SessionID string     `json:"sessionId"`
		Modes     *modeState `json:"modes"`
		Models    *struct {
			CurrentModelID  string `json:"currentModelId"`
			AvailableModels []struct {
				ModelID string `json:"modelId"`
			} `json:"availableModels"`
		} `json:"models"`
		ConfigOptions []configOption `json:"configOptions"`
	}
	modeState struct {
		CurrentModeID  string `json:"currentModeId"`
		AvailableModes []struct {
			ID string `json:"id"`
		} `json:"availableModes"`
	}
	configOption struct {
		ID       string          `json:"id"`
		Category string          `json:"category"`
		Current  json.RawMessage `json:"currentValue"`
		Options  []struct {
			Value   string `json:"value"`
			Options []struct {
				Value string `json:"value"`
			} `json:"options"` // of a group
		} `json:"options"`
	}
	promptResult struct {
		StopReason string `json:"stopReason"`
		Usage      *struct {
			InputTokens       int64 `json:"inputTokens"`
			OutputTokens      int64 `json:"outputTokens"`
			CachedReadTokens  int64 `json:"cachedReadTokens"`
			CachedWriteTokens int64 `json:"cachedWriteTokens"`
		} `json:"usage"`
	}
)

// present is nil for null.
func present(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	return raw
}

func appendNew(list []string, s string) []string {
	if s == "" || slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}
