package acpagent

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/client"
)

// What is wrong with a prompt is told by the name that the editor's protocol has for it.
func TestRefusedPrompt(t *testing.T) {
	for param, want := range map[string]string{"content": "prompt", "query": "prompt", "agent": "agent"} {
		err := refusedPrompt(&client.Error{
			Code: -32602, Message: "Invalid params: " + param + ": expected a, received b",
			Data: json.RawMessage(`{"param":"` + param + `","expected":"a","received":"b"}`),
		})
		assert.ErrorContains(t, err, "Invalid params: "+want+": expected a, received b")
	}
}
