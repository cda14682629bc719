package cli

import (
	"strings"
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

// What other programs call a command leads to it.
func TestWordsOfOtherProgramsLeadToACommand(t *testing.T) {
	for line, want := range map[string]string{
		"run":           `there is no command "run" (did you mean prompt?); `,
		"ls":            `there is no command "ls" (did you mean session list?); `,
		"session rm":    `there is no command "rm" (did you mean delete?); `,
		"session shw":   `there is no command "shw" (did you mean show?); `,
		"task ls":       `there is no command "ls" (did you mean list?); `,
		"zz":            `there is no command "zz"; `,
		"--json status": `there is no command "status" (did you mean daemon status?); `,
	} {
		args := strings.Fields(line)
		root := newRootCommand("", args)
		root.SetArgs(args)
		require.ErrorContains(t, root.Execute(), want)
	}
}
