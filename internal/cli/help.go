package cli

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/lazyregexp"
)

// Help texts, and messages about wrong flags.

// Flags are explained once. The topic flags has those that all commands share, and the environment
// variables. A command's help has its own flags.
const (
	helpTemplate = `{{with (or .Long .Short)}}{{. | trimTrailingWhitespaces}}

{{end}}{{if .HasParent}}{{if or .Runnable .HasSubCommands}}{{.UsageString}}{{end}}{{end}}`

	flagsTemplate = `Commands of a project talk to its daemon, and start it if none runs. With --json they
print its answers unchanged. C-c twice ends a command at once.

Flags that every command has:
{{.Root.LocalFlags.FlagUsages | trimTrailingWhitespaces}}
` + environmentHelp

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

Flags that every command has, such as --json and --root: {{.Root.Name}} help flags
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
{{configVariables}}
                             see duet-rpc config --defaults
  NO_COLOR                   no colour, like --no-color
A flag wins over the environment.
`

// configVariables lists the environment variables of the configuration, in lines.
func configVariables() string {
	const width = 80
	text := " "
	for i, name := range config.Variables() {
		if i > 0 {
			text += ","
		}
		if lines := strings.Split(text, "\n"); len(lines[len(lines)-1])+2+len(name) > width {
			text += "\n "
		}
		text += " " + name
	}
	return text
}

// installUsage sets the help templates of the program and its commands.
func installUsage(root *cobra.Command) {
	cobra.AddTemplateFunc("configVariables", configVariables)
	root.SetHelpTemplate(helpTemplate)
	root.SetUsageTemplate(usageTemplate)
	root.SetFlagErrorFunc(explainFlag)
	fitHelp(root)
}

// otherFlags maps a flag's names in other programs, and its former ones, to the flag that does it here.
var otherFlags = map[string]string{
	"file": "--attach FILE", "image": "--attach FILE", "i": "--attach FILE", "resume": "--continue ID", "r": "--continue ID", "fork-session": "--fork ID",
	"dangerously-skip-permissions": "--yes", "yolo": "--yes", "output-format": "--json",
}

// explainFlag rewrites a flag error without the jargon of Go's parsers.
func explainFlag(cmd *cobra.Command, err error) error {
	var value *pflag.InvalidValueError
	var unknown *pflag.NotExistError
	switch {
	case errors.As(err, &unknown):
		if flag := otherFlags[unknown.GetSpecifiedName()]; flag != "" {
			return fmt.Errorf("%w; `%s %s` does that", err, cmd.CommandPath(), flag)
		}
		if !cmd.HasParent() {
			return fmt.Errorf("%w; `%s help flags` lists the flags", err, cmd.Name())
		}
		return fmt.Errorf("%w; `%s --help` lists the flags", err, cmd.CommandPath())
	case errors.As(err, &value):
		flag := value.GetFlag()
		if takes := takes(flag, value.Unwrap()); takes != "" {
			return fmt.Errorf("--%s %s, got %q", flag.Name, takes, value.GetValue())
		}
	}
	return err
}

// takes says which values a flag takes, for a value that was refused with an error. It is ""
// if the error already says so.
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

// together matches cobra's error for flags that exclude each other.
var together = lazyregexp.New(`^if any flags in the group \[.*\] are set none of the others can be; \[(.*)\] were all set$`)

// explainUsage rewrites an error of the command line in plain words, or returns it unchanged.
func explainUsage(err error) error {
	if err == nil {
		return nil
	}
	given := together().FindStringSubmatch(err.Error())
	if given == nil {
		return err
	}
	return fmt.Errorf("--%s cannot be given together", strings.Join(strings.Fields(given[1]), " and --"))
}

// refuseUnknown makes the commands that cobra adds refuse unknown arguments, as noArguments
// does for the program's own commands.
func refuseUnknown(root *cobra.Command, noArguments cobra.PositionalArgs) {
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

// fitHelp wraps the help of the program and its commands to the width of the terminal.
func fitHelp(root *cobra.Command) {
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		out := cmd.OutOrStdout()
		columns, _, _ := term.Size(out)
		var text bytes.Buffer
		cmd.SetOut(&text)
		help(cmd, args)
		cmd.SetOut(out)
		_, _ = out.Write([]byte(fit(text.String(), columns)))
	})
}

// farIn is the indentation from which a line continues the one above.
const farIn = 12

// fit wraps the lines of a help text that are wider than columns. Continued lines of an entry
// stay indented; a paragraph with a line that is too wide is filled again.
func fit(text string, columns int) string {
	if columns <= 0 {
		return text
	}
	var out []string
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); {
		paragraph := lines[i : i+1]
		for _, next := range lines[i+1:] {
			if !goesOn(paragraph[0], next) {
				break
			}
			paragraph = lines[i : i+len(paragraph)+1]
		}
		i += len(paragraph)
		if !tooWide(paragraph, columns) {
			out = append(out, paragraph...)
			continue
		}
		whole := strings.TrimRight(paragraph[0], " ")
		for _, line := range paragraph[1:] {
			whole += " " + strings.TrimSpace(line)
		}
		out = append(out, term.Wrapped(whole, columns, under(whole, columns)))
	}
	return strings.Join(out, "\n")
}

// goesOn reports whether a line belongs to the paragraph or list entry that begins with first.
func goesOn(first, line string) bool {
	switch depth := indentOf(line); {
	case line == "" || first == "":
		return false
	case depth == 0:
		return indentOf(first) == 0
	default:
		return depth >= farIn && indentOf(first) < farIn && indentOf(first) > 0
	}
}

func tooWide(lines []string, columns int) bool {
	for _, line := range lines {
		if len([]rune(line)) > columns {
			return true
		}
	}
	return false
}

func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// under returns the indentation of lines that continue the given one: up to the text after a
// name, or slightly more than the name's if there is little room.
func under(line string, columns int) string {
	depth := indentOf(line)
	if depth == 0 {
		return ""
	}
	at := strings.Index(line[depth:], "  ")
	if at < 0 {
		return strings.Repeat(" ", depth+2)
	}
	at += depth
	at += indentOf(line[at:])
	if at > columns/2 {
		return strings.Repeat(" ", farIn)
	}
	return strings.Repeat(" ", at)
}
