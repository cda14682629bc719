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
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/duet-rpc/duet-rpc/internal/cli/interrupt"
	"github.com/duet-rpc/duet-rpc/internal/cli/output"
	"github.com/duet-rpc/duet-rpc/internal/cli/tty"
	"github.com/duet-rpc/duet-rpc/internal/host"
)

const longHelp = `duet-rpc is the process that an editor starts to work with coding agents.

The editor starts it with pipes on standard input and output and exchanges
JSON-RPC 2.0 messages with it, each after a Content-Length header. On a terminal,
without a command, it prints this help.

Exit status: 0 whichever way a session ended; 1 if it could not start, or a
command failed; 130 if you interrupted it.`

const environmentHelp = `
Environment:
  DUET_RPC_LOG               a file for the log, instead of standard error
  DUET_RPC_DEBUG             1: every message is logged, with secrets removed;
                             AIWG_IPC_DEBUG=1 does the same
  DUET_RPC_LOG_LEVEL         debug, info, warn or error (--log-level)
  DUET_RPC_READ_TIMEOUT      see --read-timeout
  DUET_RPC_MAX_FRAME_BYTES   see --max-frame-bytes
  DUET_RPC_MAX_HEADER_BYTES  see --max-header-bytes
  DUET_ROOT                  see --root
  DUET_DATABASE_KEY          a secret of yours, 16 bytes or more, that marks your
                             databases as yours; only needed where the home
                             directory is new each time, since a file there holds
                             one otherwise
  DUET_AGENT, DUET_MAX_RUNS, DUET_QUEUE_CAP, DUET_RUN_TIMEOUT, DUET_IDLE_AGENTS, DUET_HUB
                             see duet-rpc config --defaults
  DUET_SAFE_DIRECTORIES      directories, separated by :, in which files of other
                             users are accepted too; with /* at the end of one,
                             in all directories below it
  NO_COLOR                   no colour, like --no-color
A flag wins over the environment.
`

// Run runs the command that the arguments of this process name, and returns its
// exit status. version is that of a release, or "".
func Run(version string) int {
	err := newRootCommand(version).Execute()
	var status exitStatus
	switch {
	case errors.As(err, &status):
		return int(status)
	case errors.Is(err, interrupt.Err):
		return interrupt.Status
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
	root.SetHelpTemplate(`{{with (or .Long .Short)}}{{. | trimTrailingWhitespaces}}

{{end}}{{if or .Runnable .HasSubCommands}}{{.UsageString}}{{end}}` + environmentHelp)
	root.SetFlagErrorFunc(inPlainWords)
	s.addFlags(root)
	root.AddCommand(newServeCommand(s), newPromptCommand(s), newDaemonCommand(s), newTaskCommand(s), newSessionCommand(s),
		newApprovalsCommand(s), newEventsCommand(s), newCallCommand(s), newAttachCommand(s), newAgentsCommand(s), newTrustCommand(s), newConfigCommand(s),
		newVersionCommand(s), newDoctorCommand(s), newDemoAgentCommand(s), newExecutorCommand())
	refuseUnknown(root)
	return root
}

// refuseUnknown makes the commands that cobra adds refuse what they do not know,
// as ours do.
func refuseUnknown(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "help":
			cmd.Args = func(_ *cobra.Command, args []string) error {
				found, rest, err := root.Find(args)
				if err == nil && found.HasSubCommands() {
					err = noArguments(found, rest)
				}
				return err
			}
		case "completion":
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
			cmd.Args = func(_ *cobra.Command, args []string) error {
				if len(args) > 0 {
					return fmt.Errorf("there is no completion for %q; there is for bash, zsh, fish or powershell", args[0])
				}
				return nil
			}
		}
	}
}

// inPlainWords is an error of the flags without the words of Go's parser.
func inPlainWords(cmd *cobra.Command, err error) error {
	var value *pflag.InvalidValueError
	var number *strconv.NumError
	switch {
	case errors.As(err, new(*pflag.NotExistError)):
		return fmt.Errorf("%w; `%s --help` lists the flags", err, cmd.CommandPath())
	case errors.As(err, &value) && value.GetFlag().Value.Type() == "bool":
		return fmt.Errorf("--%s is true or false, got %q", value.GetFlag().Name, value.GetValue())
	case errors.As(err, &value) && errors.As(err, &number):
		return fmt.Errorf("--%s takes a number, got %q", value.GetFlag().Name, value.GetValue())
	}
	return err
}
