// Package cli is the command line: a file for each command, which says what its
// flags and arguments mean. What commands do has packages of its own: what goes on
// for longer on a terminal (turn, attach), the hub's process (daemon), a database
// of somebody else (foreign), and what is printed (output, pager, eventline). They
// speak with the project's hub as any client does, in the types of package wire.
package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/cli/acp"
	"github.com/duet-rpc/duet-rpc/internal/cli/interrupt"
	"github.com/duet-rpc/duet-rpc/internal/cli/output"
	"github.com/duet-rpc/duet-rpc/internal/cli/sessions"
	"github.com/duet-rpc/duet-rpc/internal/cli/tty"
	"github.com/duet-rpc/duet-rpc/internal/cli/usage"
	"github.com/duet-rpc/duet-rpc/internal/host"
)

const longHelp = `duet-rpc is the process that an editor starts to work with coding agents.

The editor starts it with pipes on standard input and output and exchanges
JSON-RPC 2.0 messages with it, each after a Content-Length header. On a terminal,
without a command, it prints this help.

Exit status: 0 whichever way a session ended; 1 if it could not start, or a
command failed; 130 if you interrupted it.`

// Run runs the command that the arguments of this process name, and returns its
// exit status. version is that of a release, or "".
func Run(version string) int {
	err := usage.Explain(newRootCommand(version).Execute())
	var status exitStatus
	switch {
	case errors.As(err, &status):
		return int(status)
	case errors.Is(err, interrupt.Err):
		return interrupt.Status
	case errors.Is(err, syscall.EPIPE):
		return 1 // nobody reads any more
	case err != nil:
		fmt.Fprintf(os.Stderr, "duet-rpc: %s\n", output.Exact(err.Error())) // it may quote anybody
		return 1
	}
	return 0
}

// An exitStatus ends the process with a status, and nothing more is said.
type exitStatus int

func (s exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// newRootCommand makes the command line.
func newRootCommand(version string) *cobra.Command {
	s := &settings{Settings: host.Settings{Version: cmp.Or(version, builtVersion())}}
	root := &cobra.Command{
		Use:     "duet-rpc",
		Short:   "Work with coding agents from an editor",
		Long:    longHelp,
		Version: s.Version,
		Args:    noArguments,

		SuggestionsMinimumDistance: 2,

		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return s.complete(cmd)
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if tty.Is(os.Stdin) && !s.stdio {
				return cmd.Help()
			}
			return host.Serve(cmd.Context(), &s.Settings)
		},
	}
	root.SetVersionTemplate(versionLine(s.Version) + "\n")
	usage.Install(root)
	s.addFlags(root)
	root.AddCommand(newServeCommand(s), acp.New(&s.Settings, func(cmd *cobra.Command, value *string, usage string) { agentFlag(cmd, s, value, usage) }), newPromptCommand(s), newDaemonCommand(s), newTaskCommand(s), newSessionCommand(s), sessions.NewSearch(findingOptions(s)),
		newApprovalsCommand(s), newEventsCommand(s), newCallCommand(s), newAttachCommand(s), newAgentsCommand(s), newTrustCommand(s), newConfigCommand(s),
		newVersionCommand(s), newDoctorCommand(s), newDemoAgentCommand(s), newExecutorCommand())
	usage.RefuseUnknown(root, noArguments)
	return root
}
