//go:build unix

package demoagent

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/acp"
)

// A program in a terminal of the agent ends with the agent, and with its release.
func TestOwnTerminalsEnd(t *testing.T) {
	ends := map[string]func(o *ownTerminals, id string){
		"with the agent": func(o *ownTerminals, _ string) { o.kill() },
		"released": func(o *ownTerminals, id string) {
			assert.NoError(t, o.release(t.Context(), acp.TerminalParams{TerminalID: id}))
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			var last any
			o := &ownTerminals{update: func(_ string, update any) { last = update }}
			made, err := o.create(t.Context(), acp.TerminalCreateParams{Command: "sleep", Args: []string{"600"}})
			require.NoError(t, err)
			pid := o.byID[made.TerminalID].proc.PID
			require.NoError(t, syscall.Kill(pid, 0))
			end(o, made.TerminalID)
			o.work.Wait()
			assert.NotNil(t, last.(acp.TerminalUpdate).ExitStatus)
			assert.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH)
			o.kill()
			o.close()
			_, err = o.create(t.Context(), acp.TerminalCreateParams{Command: "sleep"})
			assert.Error(t, err, "none is started any more")
		})
	}
}
