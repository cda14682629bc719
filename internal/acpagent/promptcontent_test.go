package acpagent

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

// An error names the wrong block of the client's own prompt.
func TestErrorNamesBlockOfThePrompt(t *testing.T) {
	image := json.RawMessage(`{"type":"image","mimeType":"image/png","data":"<"}`)
	text := json.RawMessage(`{"type":"text","text":"x"}`)
	p := readPrompt([]json.RawMessage{text, image, text, image})
	assert.Equal(t, "x\nx", p.text)
	for param, want := range map[string]string{
		"content[0].data":  "prompt[1].data",
		"content[1].data":  "prompt[3].data",
		"content[1]":       "prompt[3]",
		"content[7].data":  "prompt[7].data",
		"content":          "prompt",
		"permission_mode":  "permission_mode",
		"content.mimeType": "prompt.mimeType",
	} {
		data, _ := json.Marshal(map[string]string{"param": param, "expected": "bytes", "received": "\"<\""})
		err := p.refused(&client.Error{Code: -32602, Message: "Invalid params: " + param + ": expected bytes, received \"<\"", Data: data})
		assert.ErrorContains(t, err, "Invalid params: "+want+": expected bytes, received \"<\"", param)
	}
	assert.ErrorContains(t, p.refused(errors.New("gone")), "gone")
}

// The first prompt contains the client's system prompt.
func TestSystemPromptOfClient(t *testing.T) {
	var p acp.NewSessionRequest
	require.NoError(t, json.Unmarshal([]byte(`{"cwd":"/","systemPrompt":{"mode":"append","content":[{"type":"text","text":"Be brief."},{"type":"image"},{"type":"text","text":"Be kind."}]}}`), &p))
	assert.Equal(t, protocol.AgentSettings{AppendSystemPrompt: "Be brief.\n\nBe kind."}, settingsOf(p.Workspace, false))
}
