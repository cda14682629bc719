//go:build unix

package demoagent

import (
	"syscall"
	"testing"

	"github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A program in a terminal of the agent's own ends with the agent, and with its release.
func TestOwnTerminalsEnd(t *testing.T) {
	ends := map[string]func(o *ownTerminals, id string){
		"with the agent": func(o *ownTerminals, _ string) { o.kill() },
		"released": func(o *ownTerminals, id string) {
			_, err := o.ReleaseTerminal(t.Context(), acp.ReleaseTerminalRequest{TerminalId: id})
			assert.NoError(t, err)
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			var last object
			o := &ownTerminals{update: func(_ string, update object) { last = update }}
			made, err := o.CreateTerminal(t.Context(), acp.CreateTerminalRequest{Command: "sleep", Args: []string{"600"}})
			require.NoError(t, err)
			pid := o.byID[made.TerminalId].proc.PID
			require.NoError(t, syscall.Kill(pid, 0))
			end(o, made.TerminalId)
			o.work.Wait()
			assert.Equal(t, "terminal_update", last["sessionUpdate"])
			assert.Contains(t, last, "exitStatus")
			assert.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH)
			o.kill()
			o.close()
			_, err = o.CreateTerminal(t.Context(), acp.CreateTerminalRequest{Command: "sleep"})
			assert.Error(t, err, "none is started any more")
		})
	}
}
