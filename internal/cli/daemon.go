package cli

import "github.com/spf13/cobra"

const daemonHelp = `A daemon is a hub without an editor: what it runs goes on when editors close.
Editors that you start in the project connect to it by themselves.

With hub = "daemon" in your configuration, a daemon is started when it is needed
and no hub runs: by an editor's process, and by the commands that start work
(prompt, task submit, session launch, continue and fork).

Exit status: 0 if it was done; 1 if it was not, or no hub runs here.`

func newDaemonCommand(s *settings) *cobra.Command {
	return group("daemon", "Start, inspect and stop a hub that outlives every editor", daemonHelp,
		newDaemonStartCommand(s), newDaemonStopCommand(s), newDaemonStatusCommand(s), newDaemonLogsCommand(s))
}
