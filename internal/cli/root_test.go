package cli

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/cli/invocation"
)

// A command that is named otherwise than in the table could only be reached behind
// other flags.
func TestCommandsAreMadeByTheirNames(t *testing.T) {
	for name, create := range commands() {
		require.Equal(t, name, create(&invocation.Settings{}).Name())
		require.Empty(t, create(&invocation.Settings{}).Aliases)
		require.Len(t, newRootCommand("", []string{name, "--help"}).Commands(), 1)
	}
	require.Greater(t, len(newRootCommand("", []string{"--json", "session"}).Commands()), len(commands()))
}
