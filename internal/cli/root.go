// Package cli is the command line: a file for each command, which says what its
// flags and arguments mean. What commands do has packages of its own: what goes on
// for longer on a terminal (turn, attach), the hub's process (daemon), and what is printed (output, pager, eventline). They
// speak with the project's hub as any client does, in the types of package wire.
package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/host"
	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
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
	err := explainUsage(newRootCommand(version, os.Args[1:]).Execute())
	var status exitStatus
	switch {
	case errors.As(err, &status):
		return int(status)
	case errors.Is(err, term.ErrInterrupted):
		return term.Status
	case errors.Is(err, syscall.EPIPE):
		return 1 // nobody reads any more
	case err != nil:
		side := term.Terminal(os.Stderr)
		fmt.Fprintln(side, term.Lines(side, "duet-rpc: "+term.Exact(err.Error()))) // it may quote anybody
		return 1
	}
	return 0
}

// newRootCommand makes the command line, as far as args need it: all of it is a tenth of an editor's start.
func newRootCommand(version string, args []string) *cobra.Command {
	s := &settings{Settings: hubprocess.Settings{Version: cmp.Or(version, builtVersion())}}
	root := &cobra.Command{
		Use:     "duet-rpc",
		Short:   "Work with coding agents from an editor",
		Long:    longHelp,
		Version: s.Version,
		Args:    noArguments,

		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if side := cmd.ErrOrStderr(); term.IsTerminal(side) {
				s.Notice = func(text string) { fmt.Fprintln(side, term.Lines(side, "— "+term.Line(text))) }
			}
			return s.Complete(cmd)
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if term.IsTerminal(os.Stdin) && !s.Stdio {
				return cmd.Help()
			}
			return host.Serve(cmd.Context(), &s.Settings)
		},
	}
	root.SetVersionTemplate(versionLine(s.Version) + "\n")
	root.SetOut(term.Terminal(os.Stdout))
	root.SetErr(term.Terminal(os.Stderr))
	installUsage(root)
	s.AddFlags(root)
	commands := commands()
	name, found := commandName(root.PersistentFlags(), args)
	switch create := commands[name]; {
	case found && name == "" && !term.IsTerminal(os.Stdin): // an editor's process
		return root
	case found && create != nil:
		root.AddCommand(create(s))
		return root
	}
	for _, create := range commands {
		root.AddCommand(create(s))
	}
	refuseUnknown(root, noArguments)
	return root
}

// commandName returns the command among the arguments: the first one that is neither a flag nor
// a flag's value, or "" if there is none. found is false if another flag than those comes first,
// such as --help.
func commandName(flags *pflag.FlagSet, args []string) (name string, found bool) {
	for len(args) > 0 {
		long, isFlag := strings.CutPrefix(args[0], "--")
		if !isFlag {
			return args[0], !strings.HasPrefix(args[0], "-")
		}
		long, _, hasValue := strings.Cut(long, "=")
		flag := flags.Lookup(long)
		if flag == nil {
			return "", false
		}
		args = args[1:]
		if !hasValue && flag.NoOptDefVal == "" && len(args) > 0 {
			args = args[1:]
		}
	}
	return "", true
}

// commands makes each command by its name. Cobra sorts them.
func commands() map[string]func(*settings) *cobra.Command {
	return map[string]func(*settings) *cobra.Command{
		"acp":        newACPCommand,
		"agents":     newAgentsCommand,
		"approvals":  newApprovalsCommand,
		"ask":        newQuestion,
		"attach":     newAttachCommand,
		"build":      newBuild,
		"call":       newCallCommand,
		"config":     newConfigCommand,
		"daemon":     newDaemonCommand,
		"demo-agent": newDemoAgentCommand,
		"doctor":     newDoctorCommand,
		"events":     newEventsCommand,
		"executor":   newExecutorCommand,
		"mcp":        newMCP,
		"paths":      newPathsCommand,
		"permission": newPermission,
		"preview":    newPreview,
		"projects":   newProjectsCommand,
		"prompt":     newPromptCommand,
		"search":     func(s *settings) *cobra.Command { return newSearch(findingOptions(s)) },
		"serve":      newServeCommand,
		"session":    newSessionCommand,
		"subreaper":  newSubreaperCommand,
		"task":       newTaskCommand,
		"triggers":   newTriggers,
		"trust":      newTrustCommand,
		"version":    newVersionCommand,
	}
}

func newACPCommand(s *settings) *cobra.Command {
	return newACP(&s.Settings, s.LevelGiven, func(cmd *cobra.Command, agent *string, usage string) { agentFlag(cmd, s, agent, usage) }, agentsOptions(s).Login)
}
