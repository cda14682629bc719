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

const daemonHelp = `Each project has one daemon: the hub that runs the agents. Editors and commands that
need it start it and connect to it. What runs there goes on when they end.

A daemon ends by itself when it has had no client and nothing to do for 15 minutes
(daemon.idle in your configuration).

Exit status: 0 if it was done; 1 if it was not, or no hub runs here.`

// New makes the command.
func New(o Options) *cobra.Command {
	return o.Group("daemon", "Start, inspect and stop the project's daemon", daemonHelp,
		newStart(o), newStop(o), newStatus(o), newLogs(o))
}
