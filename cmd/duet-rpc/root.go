package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/duet-rpc/duet-rpc/internal/host"
)

const longHelp = `duet-rpc is the process that an editor starts to work with coding agents.

An editor runs it with pipes on standard input and output and speaks JSON-RPC
2.0 with it, each message behind a Content-Length header. Started on a
terminal without a command it prints this help.

Exit status: 0 however a session ended; 1 if it could not start, or a command
failed; 130 if you interrupted it.`

const environmentHelp = `
Environment:
  DUET_RPC_LOG               a file for the log, instead of standard error
  DUET_RPC_DEBUG             1: every message is in the log, without its secrets;
                             AIWG_IPC_DEBUG=1 does the same
  DUET_RPC_LOG_LEVEL         debug, info, warn or error (--log-level)
  DUET_RPC_READ_TIMEOUT      see --read-timeout
  DUET_RPC_MAX_FRAME_BYTES   see --max-frame-bytes
  DUET_RPC_MAX_HEADER_BYTES  see --max-header-bytes
  DUET_ROOT                  see --root
  DUET_DATABASE_KEY          a secret of yours, 16 bytes or more, by which your
                             databases are known where the home directory is a
                             new one each time; else a file in it has one
  DUET_AGENT, DUET_MAX_RUNS, DUET_QUEUE_CAP, DUET_RUN_TIMEOUT, DUET_IDLE_AGENTS, DUET_HUB
                             see duet-rpc config --defaults
  DUET_SAFE_DIRECTORIES      directories, with : between them, in which files of
                             other users count, too; /* at the end: all below
  NO_COLOR                   no colour, as --no-color
A flag wins over the environment.
`

// newRootCommand makes the command line.
func newRootCommand() *cobra.Command {
	s := &settings{Settings: host.Settings{Version: buildVersion()}}
	root := &cobra.Command{
		Use:     "duet-rpc",
		Short:   "Work with coding agents from an editor",
		Long:    longHelp,
		Version: buildVersion(),
		Args:    noArguments,

		SuggestionsMinimumDistance: 2,

		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return s.complete(cmd)
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if term.IsTerminal(int(os.Stdin.Fd())) && !s.stdio {
				return cmd.Help()
			}
			return host.Serve(cmd.Context(), &s.Settings)
		},
	}
	root.SetVersionTemplate(versionLine() + "\n")
	root.SetHelpTemplate(`{{with (or .Long .Short)}}{{. | trimTrailingWhitespaces}}

{{end}}{{if or .Runnable .HasSubCommands}}{{.UsageString}}{{end}}` + environmentHelp)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return inPlainWords(err) })
	s.addFlags(root)
	root.AddCommand(newServeCommand(s), newPromptCommand(s), newDaemonCommand(s), newTaskCommand(s), newSessionCommand(s),
		newApprovalsCommand(s), newEventsCommand(s), newCallCommand(s), newAttachCommand(s), newAgentsCommand(s), newTrustCommand(s), newConfigCommand(s),
		newVersionCommand(s), newDoctorCommand(s), newDemoAgentCommand(), newExecutorCommand())
	return root
}

func newServeCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Serve an editor on standard input and output",
		Long: `Serve an editor on standard input and output, also on a terminal.

Exit status: 0 however the session ended; 1 if it could not start.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return host.Serve(cmd.Context(), &s.Settings) },
	}
}

// inPlainWords is an error of the flags without the words of Go's parser.
func inPlainWords(err error) error {
	var value *pflag.InvalidValueError
	var number *strconv.NumError
	if errors.As(err, &value) && errors.As(err, &number) {
		return fmt.Errorf("--%s takes a number, got %q", value.GetFlag().Name, value.GetValue())
	}
	return err
}

// noArguments refuses arguments, and knows that a word after the program's
// name was meant as a command.
func noArguments(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case cmd.HasSubCommands():
		meant := ""
		if close := cmd.SuggestionsFor(args[0]); len(close) > 0 {
			meant = fmt.Sprintf(" (did you mean %s?)", strings.Join(close, " or "))
		}
		return fmt.Errorf("there is no command %q%s; `duet-rpc --help` lists them", args[0], meant)
	}
	return fmt.Errorf("%q takes no arguments, got %q", cmd.CommandPath(), args[0])
}
