// Package usage is how the command line explains itself: the help of a command, and
// what is said of flags that are wrong.
package usage

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/duet-rpc/duet-rpc/internal/lazyregexp"
)

// Flags are explained where they are defined: those that all commands share in the
// help of the program, which ends with what its environment may say, and in that of
// a command its own.
const (
	helpTemplate = `{{with (or .Long .Short)}}{{. | trimTrailingWhitespaces}}

{{end}}{{if or .Runnable .HasSubCommands}}{{.UsageString}}{{end}}`

	usageTemplate = `Usage:{{if .Runnable}}
  {{.UseLine}}{{end}}{{if .HasAvailableSubCommands}}
  {{.CommandPath}} [command]{{end}}{{if .HasExample}}

Examples:
{{.Example}}{{end}}{{if .HasAvailableSubCommands}}

Available Commands:{{range .Commands}}{{if (or .IsAvailableCommand (eq .Name "help"))}}
  {{rpad .Name .NamePadding }} {{.Short}}{{end}}{{end}}{{end}}{{if .HasAvailableLocalFlags}}

Flags:
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}{{if .HasAvailableSubCommands}}

Use "{{.CommandPath}} [command] --help" for more information about a command.{{end}}{{if .HasParent}}

Flags that every command has, such as --json and --root: {{.Root.Name}} --help
{{else}}
{{end}}`
)

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
  DUET_STATE_HOME            the directory of sessions, locks and logs
                             ($XDG_STATE_HOME/duet, or ~/.local/state/duet)
  DUET_COMPLETION_TIMEOUT    how long the completion of a shell may take, such as
                             3s on a slow machine (1s)
  DUET_AGENT, DUET_MAX_RUNS, DUET_QUEUE_CAP, DUET_RUN_TIMEOUT, DUET_IDLE_AGENTS
                             see duet-rpc config --defaults
  DUET_DAEMON_IDLE           see duet-rpc config --defaults
  DUET_SAFE_DIRECTORIES      directories, separated by :, in which files of other
                             users are accepted too; with /* at the end of one,
                             in all directories below it
  NO_COLOR                   no colour, like --no-color
A flag wins over the environment.
`

// Install makes a program and its commands explain themselves.
func Install(root *cobra.Command) {
	root.SetHelpTemplate(helpTemplate + "{{if not .HasParent}}" + environmentHelp + "{{end}}")
	root.SetUsageTemplate(usageTemplate)
	root.SetFlagErrorFunc(explainFlag)
	fitHelp(root)
}

// explainFlag is an error of the flags without the words of Go's parsers.
func explainFlag(cmd *cobra.Command, err error) error {
	var value *pflag.InvalidValueError
	switch {
	case errors.As(err, new(*pflag.NotExistError)):
		return fmt.Errorf("%w; `%s --help` lists the flags", err, cmd.CommandPath())
	case errors.As(err, &value):
		flag := value.GetFlag()
		if takes := takes(flag, value.Unwrap()); takes != "" {
			return fmt.Errorf("--%s %s, got %q", flag.Name, takes, value.GetValue())
		}
	}
	return err
}

// takes says what a flag takes, of which something else was refused with an error;
// "" if the error says so.
func takes(flag *pflag.Flag, refused error) string {
	switch flag.Value.Type() {
	case "bool":
		return "is true or false"
	case "stringSlice":
		return "takes words, separated by commas"
	}
	switch {
	case errors.As(refused, new(*strconv.NumError)):
		return "takes a number"
	case strings.HasPrefix(refused.Error(), "time: "):
		return "takes a time, such as 30s or 500ms"
	}
	return ""
}

// together is what cobra says of flags that exclude each other.
var together = lazyregexp.New(`^if any flags in the group \[.*\] are set none of the others can be; \[(.*)\] were all set$`)

// Explain is an error of the command line in plain words, or as it is.
func Explain(err error) error {
	if err == nil {
		return nil
	}
	given := together().FindStringSubmatch(err.Error())
	if given == nil {
		return err
	}
	return fmt.Errorf("--%s cannot be given together", strings.Join(strings.Fields(given[1]), " and --"))
}

// RefuseUnknown makes the commands that cobra adds refuse what they do not know, as
// the program's own do by noArguments.
func RefuseUnknown(root *cobra.Command, noArguments cobra.PositionalArgs) {
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
