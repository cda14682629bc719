package acp

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// codex-acp 2.6 does not name the variables of its method "api-key".
func TestCodexSignsInWithItsKey(t *testing.T) {
	var methods []AuthMethod
	require.NoError(t, json.Unmarshal([]byte(`[
		{"id":"chat-gpt","name":"ChatGPT"},
		{"id":"api-key","name":"API Key","_meta":{"api-key":{"provider":"openai"}}}
	]`), &methods))
	assert.Equal(t, "api-key", WithKey(methods, map[string]bool{"OPENAI_API_KEY": true}))
	assert.Equal(t, "api-key", WithKey(methods, map[string]bool{"CODEX_API_KEY": true}))
	assert.Empty(t, WithKey(methods, map[string]bool{"OPENAI_API_KEY": false, "ANTHROPIC_API_KEY": true}))
}
