package daemon

import (
	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
)

// Options are what the command needs of the shell.
type Options struct {
	Settings    *hubprocess.Settings
	JSON        func() bool // print JSON
	NoArguments cobra.PositionalArgs
	// Group makes a command that only has others below it.
	Group func(use, title, help string, commands ...*cobra.Command) *cobra.Command
	// Progress says something beside the result.
	Progress func(cmd *cobra.Command, what string)
}

const daemonHelp = `A daemon is a hub without an editor: what it runs goes on when editors close.
Editors that you start in the project connect to it by themselves.

With hub = "daemon" in your configuration, a daemon is started when it is needed
and no hub runs: by an editor's process, and by the commands that start work
(prompt, task submit, session launch, continue and fork).

Exit status: 0 if it was done; 1 if it was not, or no hub runs here.`

// New makes the command.
func New(o Options) *cobra.Command {
	return o.Group("daemon", "Start, inspect and stop a hub that outlives every editor", daemonHelp,
		newStart(o), newStop(o), newStatus(o), newLogs(o))
}
