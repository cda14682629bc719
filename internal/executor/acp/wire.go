package acp

import (
	"encoding/json"
	"math"
	"slices"

	"github.com/coder/acp-go-sdk"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor/acp/setting"
	"github.com/duet-rpc/duet-rpc/internal/executor/authmethod"
	"github.com/duet-rpc/duet-rpc/internal/executor/blocks"
)

// What the SDK cannot say to an agent.
type (
	initializeRequest struct {
		ProtocolVersion    acp.ProtocolVersion `json:"protocolVersion"`
		ClientInfo         acp.Implementation  `json:"clientInfo"`
		ClientCapabilities clientCapabilities  `json:"clientCapabilities"`
	}
	clientCapabilities struct {
		Fs       acp.FileSystemCapabilities `json:"fs"`
		Terminal bool                       `json:"terminal"`
		Session  json.RawMessage            `json:"session"`

		Elicitation json.RawMessage `json:"elicitation"`
	}
)

// booleanOptions says that options that are true or false are understood.
var booleanOptions = json.RawMessage(`{"configOptions":{"boolean":{}}}`)

// bothElicitations says that people can be asked to fill in forms and to open
// addresses.
var bothElicitations = json.RawMessage(`{"form":{},"url":{}}`)

// What is taken of an agent's answers. The SDK's own types refuse what they do
// not know; an agent that is newer than they are has to work.
type (
	initializeResult struct {
		AgentCapabilities struct {
			LoadSession         bool                `json:"loadSession"`
			PromptCapabilities  blocks.Capabilities `json:"promptCapabilities"`
			SessionCapabilities struct {
				Resume                json.RawMessage `json:"resume"`
				Fork                  json.RawMessage `json:"fork"`
				Close                 json.RawMessage `json:"close"`
				AdditionalDirectories json.RawMessage `json:"additionalDirectories"`
			} `json:"sessionCapabilities"`
			Meta            json.RawMessage `json:"_meta"`
			MCPCapabilities struct {
				HTTP bool `json:"http"`
				SSE  bool `json:"sse"`
			} `json:"mcpCapabilities"`
		} `json:"agentCapabilities"`
		AgentInfo   *catalog.AgentInfo  `json:"agentInfo"`
		AuthMethods []authmethod.Method `json:"authMethods"`
		Meta        json.RawMessage     `json:"_meta"`
	}
	sessionResult struct {
		SessionID string
		setting.Offer
	}
	promptResult struct {
		StopReason string          `json:"stopReason"`
		Usage      json.RawMessage `json:"usage"`
	}
	promptUsage struct {
		InputTokens       figure `json:"inputTokens"`
		OutputTokens      figure `json:"outputTokens"`
		CachedReadTokens  figure `json:"cachedReadTokens"`
		CachedWriteTokens figure `json:"cachedWriteTokens"`
	}
)

// usage is what the turn used, or nil if the agent does not say so in a way that is known. A
// turn that has ended well does not fail for that.
func (r promptResult) usage() *catalog.TokenUsage {
	var u promptUsage
	if present(r.Usage) == nil || json.Unmarshal(r.Usage, &u) != nil {
		return nil
	}
	told := catalog.TokenUsage{
		InputTokens: int64(u.InputTokens), OutputTokens: int64(u.OutputTokens), CacheReadTokens: int64(u.CachedReadTokens), CacheWriteTokens: int64(u.CachedWriteTokens),
	}.Bounded()
	return &told
}

// A figure is a whole number of an agent's. Anything else is 0, as if it was not there.
type figure int64

// UnmarshalJSON implements json.Unmarshaler.
func (f *figure) UnmarshalJSON(raw []byte) error {
	*f = 0
	var n float64
	if json.Unmarshal(raw, &n) == nil && n == math.Trunc(n) && math.Abs(n) < 1<<53 {
		*f = figure(n)
	}
	return nil
}

// UnmarshalJSON implements json.Unmarshaler: what is not as it should be was not
// said.
func (r *sessionResult) UnmarshalJSON(raw []byte) error {
	json.Unmarshal(frame.Member(raw, "sessionId"), &r.SessionID)
	r.Offer = setting.ReadOffer(raw)
	return nil
}

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
