package handlers

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

func TestPermissionsThatHaveExpired(t *testing.T) {
	now := time.Unix(1000, 0)
	s := domain.TurnInSession{}
	s.Session.Settings.SkipPermissions = true
	assert.True(t, turnOf(s, now).SkipPermissions)
	s.Session.Settings.SkipPermissionsUntil = &now
	assert.False(t, turnOf(s, now).SkipPermissions)
	assert.True(t, turnOf(s, now.Add(-1)).SkipPermissions)
}

func TestMCPServers(t *testing.T) {
	for config, want := range map[string][]domain.MCPServer{
		`null`: nil, `""`: nil, `{}`: nil, `{"mcpServers":{}}`: {},
		`{"mcpServers":{"b":{"command":"x","args":["1"]},"a":{"type":"http","url":"http://h"}}}`: {{Name: "a", Type: "http", URL: "http://h"}, {Name: "b", Command: "x", Args: []string{"1"}}},
		`"{\"mcp_servers\":{\"a\":{\"command\":\"x\"}}}"`:                                        {{Name: "a", Command: "x"}},
	} {
		got, err := mcpServers(json.RawMessage(config))
		require.NoError(t, err, config)
		assert.Equal(t, want, got, config)
	}
	for _, config := range []string{`5`, `[]`, `"x"`, `{"mcpServers":{"a":{}}}`} {
		_, err := mcpServers(json.RawMessage(config))
		assert.Error(t, err, config)
	}
}
