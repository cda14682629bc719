package invocation

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/cli/term"
)

// suggestsWithin is how many letters may be wrong in a command for it to be suggested.
const suggestsWithin = 2

// NoArguments refuses arguments, and knows that a word after the program's
// name was meant as a command.
func NoArguments(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case cmd.HasSubCommands():
		close := []string{otherName(cmd.CommandPath(), args[0])}
		if close[0] == "" {
			cmd.SuggestionsMinimumDistance = min(suggestsWithin, len(args[0])/2)
			close = cmd.SuggestionsFor(args[0])
		}
		meant := ""
		if len(close) > 0 {
			meant = fmt.Sprintf(" (did you mean %s?)", strings.Join(close, " or "))
		}
		if !cmd.HasParent() && strings.ContainsAny(args[0], " \t\n") {
			return fmt.Errorf("there is no command %q; to give it to an agent: duet-rpc prompt \"…\"", term.Short(args[0]))
		}
		return fmt.Errorf("there is no command %q%s; `%s --help` lists them", args[0], meant, cmd.CommandPath())
	}
	return fmt.Errorf("%q takes no arguments, got %q", cmd.CommandPath(), args[0])
}

// Exactly wants as many arguments as there are names.
func Exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > len(names) {
			return fmt.Errorf("%q takes %s and nothing more, got %q", cmd.CommandPath(), strings.Join(names, " "), args[len(names)])
		}
		return AtLeast(names...)(cmd, args)
	}
}

// AtLeast wants arguments by these names, and takes more of the last.
func AtLeast(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < len(names) {
			return fmt.Errorf("%q needs %s", cmd.CommandPath(), strings.Join(names[len(args):], " and "))
		}
		for i, name := range names {
			if strings.TrimSpace(args[i]) == "" {
				return fmt.Errorf("%q needs %s, got an empty argument", cmd.CommandPath(), name)
			}
		}
		return nil
	}
}

// FullPath is a directory as the hub understands it, which works in another
// one. The shell knows what ~ means, and so does the hub.
func FullPath(path string) (string, error) {
	if path == "" || strings.HasPrefix(path, "~") {
		return path, nil
	}
	full, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("finding %q: %w", path, err)
	}
	return full, nil
}

// FullDirectories are directories that an agent may use, as the hub understands them.
func FullDirectories(dirs []string) ([]string, error) {
	var full []string
	for _, dir := range dirs {
		path, err := FullPath(dir)
		if err != nil {
			return nil, err
		}
		if info, err := os.Stat(path); !strings.HasPrefix(path, "~") && (err != nil || !info.IsDir()) {
			return nil, fmt.Errorf("--add-dir: there is no directory %s", path)
		}
		full = append(full, path)
	}
	return full, nil
}

// Group is a command that only has others below it.
func Group(use, title, help string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: title, Long: help, Args: NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(commands...)
	return cmd
}
