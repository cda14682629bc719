//go:build clients && unix

package executor_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The SDK's example agent, which is third-party code, completes a turn with one permission request.
func TestSDKExampleAgent(t *testing.T) {
	if testing.Short() {
		t.Skip("a turn of it takes 5 s")
	}
	binary := filepath.Join(t.TempDir(), "agent")
	out, err := exec.Command("go", "build", "-o", binary, "github.com/coder/acp-go-sdk/example/agent").CombinedOutput()
	require.NoError(t, err, "%s", out)
	h, x := hubAndExecutor(t)
	p := prompt(t, "", "hello")
	p.Launch.Command = []string{binary}
	completes(t, x, p)
	assert.Contains(t, h.text(), "successfully updated the configuration")
	assert.Equal(t, []string{
		"process", "native_session", "session", "content_block_delta", "tool_call", "tool_result",
		"content_block_delta", "tool_call", "tool_result", "content_block_delta",
	}, h.types())
	require.Len(t, h.asked, 1)
	assert.Equal(t, "Edit", h.asked[0].ToolName)
}
