package acp

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// Descriptions of agents of both versions are read alike.
func TestInitialized(t *testing.T) {
	some := json.RawMessage(`{}`)
	for name, c := range map[string]struct {
		said string
		want Initialized
	}{
		"version 1": {
			`{"protocolVersion":1,"agentInfo":{"name":"a"},"authMethods":[{"id":"k","name":"K"}],"agentCapabilities":{"loadSession":true,"promptCapabilities":{"image":true},"sessionCapabilities":{"close":{}},"mcpCapabilities":{"http":true,"sse":true},"auth":{"logout":{}}}}`,
			Initialized{
				ProtocolVersion: Version1, Info: &domain.AgentInfo{Name: "a"}, AuthMethods: []AuthMethod{{ID: "k", Name: "K"}}, canLoad: true,
				Prompt: PromptCapabilities{Image: true}, Session: SessionCapabilities{Close: some}, MCP: MCPCapabilities{Stdio: true, HTTP: true, SSE: true},
			},
		},
		"version 2": {
			`{"protocolVersion":2,"info":{"name":"a"},"authMethods":[{"methodId":"k","name":"K"}],"capabilities":{"session":{"prompt":{"image":{},"audio":null},"mcp":{"stdio":{},"http":{}},"fork":{}}}}`,
			Initialized{
				ProtocolVersion: Version2, Info: &domain.AgentInfo{Name: "a"}, AuthMethods: []AuthMethod{{ID: "k", Name: "K"}},
				Prompt: PromptCapabilities{Image: true}, Session: SessionCapabilities{List: some, Resume: some, Close: some, Fork: some}, MCP: MCPCapabilities{Stdio: true, HTTP: true},
			},
		},
		"version 2, as little as can be":        {`{"protocolVersion":2,"info":{"name":"a"}}`, Initialized{ProtocolVersion: Version2, Info: &domain.AgentInfo{Name: "a"}, Session: SessionCapabilities{List: some, Resume: some, Close: some}}},
		"version 1, that says what it is asked": {`{"protocolVersion":2,"agentCapabilities":{"loadSession":true}}`, Initialized{ProtocolVersion: Version1, canLoad: true, MCP: MCPCapabilities{Stdio: true}}},
		"nothing":                               {`{}`, Initialized{ProtocolVersion: Version1, MCP: MCPCapabilities{Stdio: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			var got Initialized
			require.NoError(t, json.Unmarshal([]byte(c.said), &got))
			assert.Equal(t, len(c.want.AuthMethods) > 0, Has(got.Auth.Logout))
			got.Auth.Logout = nil
			assert.Equal(t, c.want, got)
		})
	}
}
