package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/cli/turn"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/logging"
)

// Shared by all commands: global flags, arguments, and the connection to the project's hub.

// suggestsWithin is the largest edit distance at which a command is suggested.
const suggestsWithin = 2

// noArguments refuses arguments. It treats a word after the program's name as a misspelled
// command.
func noArguments(cmd *cobra.Command, args []string) error {
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
		if !cmd.HasParent() && meant == "" && len(args) > 1 {
			return fmt.Errorf("there is no command %q; a prompt is in quotes: duet-rpc \"%s …\"", args[0], term.Short(args[0]))
		}
		return fmt.Errorf("there is no command %q%s; `%s --help` lists them", args[0], meant, cmd.CommandPath())
	}
	return fmt.Errorf("%q takes no arguments, got %q", cmd.CommandPath(), args[0])
}

// exactly requires one argument for each name.
func exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > len(names) {
			return fmt.Errorf("%q takes %s and nothing more, got %q", cmd.CommandPath(), strings.Join(names, " "), args[len(names)])
		}
		return atLeast(names...)(cmd, args)
	}
}

// orLast returns the session or turn that an optional argument names: the last one without it.
func orLast(args []string) string {
	if len(args) == 0 {
		return "last"
	}
	return args[0]
}

// atMost accepts an argument with a name, or none.
func atMost(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return exactly(name)(cmd, args)
	}
}

// atLeast requires an argument for each name, and accepts more of the last.
func atLeast(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < len(names) {
			text := strings.Join(names[len(args):], " and ")
			switch text {
			case "SESSION":
				text += ", such as 12 or last"
			case "TURN":
				text += ", such as 12.3 or last"
			}
			return fmt.Errorf("%q needs %s", cmd.CommandPath(), text)
		}
		for i, name := range names {
			if strings.TrimSpace(args[i]) == "" {
				return fmt.Errorf("%q needs %s, got an empty argument", cmd.CommandPath(), name)
			}
		}
		return nil
	}
}

// fullPath makes a directory absolute, because the hub works in another one. It keeps a
// leading ~, which the hub expands.
func fullPath(path string) (string, error) {
	if path == "" || strings.HasPrefix(path, "~") {
		return path, nil
	}
	full, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("finding %q: %w", path, err)
	}
	return full, nil
}

// fullDirectories makes the directories that an agent may use absolute.
func fullDirectories(dirs []string) ([]string, error) {
	var full []string
	for _, dir := range dirs {
		path, err := fullPath(dir)
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

// commandGroup returns a command that only has subcommands.
func commandGroup(use, title, help string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: title, Long: help, Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(commands...)
	return cmd
}

// askYes asks on the terminal. Any answer but yes returns an error that says no. Without a
// terminal, the error says what to run instead.
func askYes(cmd *cobra.Command, s *settings, question, no, again string) error {
	if s.JSON || !term.IsTerminal(os.Stdin) {
		return fmt.Errorf("%s: run `%s` on a terminal, or add --yes", no, again)
	}
	side := cmd.ErrOrStderr()
	if yes, err := term.Yes(cmd.InOrStdin(), side, term.Asking(side, question)); yes || err != nil {
		return err
	}
	return errors.New(no)
}

// hubStatusHelp is the help text on exit statuses that the commands over a hub share.
const hubStatusHelp = `
Exit status: 0 if it succeeded, 1 if not, 130 if you interrupted it.`

// withHub runs do with a connection to the project's hub, until a signal arrives. Errors of
// the hub are reworded for the user.
func withHub(cmd *cobra.Command, s *settings, do func(context.Context, *client.Client) error, opts ...client.Option) error {
	return turn.InWords(connected(cmd, s, do, opts...))
}

// askHub calls a method of the project's hub and prints the result: with print, or unchanged
// with --json.
func askHub[R any](cmd *cobra.Command, s *settings, method string, params any, print func(R) error) error {
	return withHub(cmd, s, func(ctx context.Context, c *client.Client) error {
		r, raw, err := hubclient.Call[R](ctx, c, method, params)
		if err != nil {
			return err
		}
		if s.JSON {
			return term.Raw(cmd.OutOrStdout(), raw)
		}
		return print(r)
	})
}

// connected is [withHub] without rewording errors.
func connected(cmd *cobra.Command, s *settings, do func(context.Context, *client.Client) error, opts ...client.Option) error {
	ctx, stop := term.UntilInterrupted(cmd.Context())
	defer stop()
	err := withClient(ctx, &s.Settings, cmd.Annotations[commandBegins] != "", do, opts...)
	var status exitStatus
	if err != nil && ctx.Err() != nil && !errors.As(err, &status) {
		return term.ErrInterrupted
	}
	return err
}

// commandBegins annotates a command that can be the first in a project.
const commandBegins = "begins"

// begins returns the annotations of a command that can be the first in a project. Other
// commands are refused if the project has no state.
func begins() map[string]string { return map[string]string{commandBegins: "work"} }

// progress prints a progress message, apart from the result.
func progress(cmd *cobra.Command, s *settings, format string, args ...any) {
	if !s.JSON {
		side := cmd.ErrOrStderr()
		fmt.Fprintln(side, term.Lines(side, "— "+term.Line(fmt.Sprintf(format, args...))))
	}
}

// exitStatus ends the process with this status and no message.
type exitStatus int

func (s exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// oneOf adds a flag with a fixed set of words, which completion offers. The hub refuses other
// words.
func oneOf(cmd *cobra.Command, value *string, name, usage string, words ...string) {
	cmd.Flags().StringVar(value, name, "", usage+": "+strings.Join(words, ", "))
	_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

// directories makes flags complete names of directories.
func directories(cmd *cobra.Command, flags ...string) {
	for _, name := range flags {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs))
	}
}

// otherName returns the command that does what another program calls word, or "". under is the
// path of the command before the word.
func otherName(under, word string) string {
	switch under + " " + word {
	case "duet-rpc chat", "duet-rpc exec", "duet-rpc run":
		return "prompt"
	case "duet-rpc resume":
		return "prompt --continue"
	case "duet-rpc history", "duet-rpc list", "duet-rpc ls", "duet-rpc ps", "duet-rpc sessions":
		return "session list"
	case "duet-rpc cost", "duet-rpc stats":
		return "usage"
	case "duet-rpc export", "duet-rpc show":
		return "session show"
	case "duet-rpc interrupt", "duet-rpc kill":
		return "session interrupt"
	case "duet-rpc delete", "duet-rpc rm":
		return "session delete"
	case "duet-rpc cancel":
		return "session interrupt"
	case "duet-rpc submit":
		return "session launch"
	case "duet-rpc start":
		return "daemon start"
	case "duet-rpc status":
		return "daemon status"
	case "duet-rpc stop":
		return "daemon stop"
	case "duet-rpc log", "duet-rpc logs":
		return "daemon logs"
	case "duet-rpc tail", "duet-rpc watch":
		return "events"
	case "duet-rpc restore", "duet-rpc undo":
		return "rewind"
	case "duet-rpc merge":
		return "land"
	case "duet-rpc abandon", "duet-rpc drop":
		return "discard"
	case "duet-rpc worktree", "duet-rpc worktrees":
		return "prompt --worktree"
	case "duet-rpc diff", "duet-rpc review":
		return "changes"
	case "duet-rpc inbox", "duet-rpc questions":
		return "approvals"
	case "duet-rpc allow", "duet-rpc approve":
		return "approvals allow"
	case "duet-rpc deny":
		return "approvals deny"
	case "duet-rpc answer", "duet-rpc respond":
		return "approvals respond"
	case "duet-rpc login":
		return "agents login"
	case "duet-rpc logout":
		return "agents logout"
	case "duet-rpc check":
		return "doctor"
	case "duet-rpc settings":
		return "config"
	case "duet-rpc agents list", "duet-rpc agents ls":
		return "agents"
	case "duet-rpc approvals list", "duet-rpc approvals ls":
		return "approvals"
	case "duet-rpc approvals yes":
		return "allow"
	case "duet-rpc approvals no", "duet-rpc approvals reject":
		return "deny"
	case "duet-rpc approvals answer":
		return "respond"
	case "duet-rpc daemon restart":
		return "stop, and then start"
	case "duet-rpc session ls", "duet-rpc task ls", "duet-rpc triggers ls":
		return "list"
	case "duet-rpc session cat", "duet-rpc session diff", "duet-rpc session export", "duet-rpc session get", "duet-rpc session open", "duet-rpc session view":
		return "show"
	case "duet-rpc session rm":
		return "delete"
	case "duet-rpc session prompt", "duet-rpc session resume", "duet-rpc session send":
		return "continue"
	case "duet-rpc session new", "duet-rpc session run", "duet-rpc session start", "duet-rpc session submit":
		return "launch"
	case "duet-rpc session cancel", "duet-rpc session kill", "duet-rpc session stop":
		return "interrupt"
	case "duet-rpc session agent", "duet-rpc session mode", "duet-rpc session model":
		return "set"
	case "duet-rpc task show", "duet-rpc task status":
		return "get"
	case "duet-rpc task add", "duet-rpc task new", "duet-rpc task run":
		return "submit"
	case "duet-rpc task kill", "duet-rpc task rm", "duet-rpc task stop":
		return "cancel"
	case "duet-rpc triggers off":
		return "disable"
	case "duet-rpc triggers on":
		return "enable"
	}
	return ""
}

// settings are the values of flags and environment. They are complete when a command runs.
type settings struct {
	hubprocess.Settings

	JSON  bool // print JSON instead of text
	Stdio bool // serve on standard input and output, even if they are a terminal
}

// environment maps a flag to the variable that replaces it.
var environment = map[string]string{
	"log-level":        "DUET_RPC_LOG_LEVEL",
	"root":             "DUET_ROOT",
	"read-timeout":     "DUET_RPC_READ_TIMEOUT",
	"max-frame-bytes":  "DUET_RPC_MAX_FRAME_BYTES",
	"max-header-bytes": "DUET_RPC_MAX_HEADER_BYTES",
}

// AddFlags adds the flags that all commands share.
func (s *settings) AddFlags(root *cobra.Command) {
	s.LogLevel = logging.Level(slog.LevelInfo)
	s.Limits = frame.Limits{MaxFrame: frame.DefaultMaxFrame, MaxHeader: frame.DefaultMaxHeader, Timeout: frame.DefaultTimeout}
	f := root.PersistentFlags()
	f.Var((*levelValue)(&s.LogLevel), "log-level", "how much to log: debug, info, warn or error")
	f.BoolVar(&s.NoColor, "no-color", false, "no colour on a terminal")
	f.BoolVar(&s.JSON, "json", false, "print JSON instead of text")
	f.BoolVar(&s.Stdio, "stdio", false, "serve on standard input and output, even if they are a terminal")
	f.BoolVar(&s.TestMethods, "test-methods", false, "offer the methods test.sleep, test.fail and test.panic, for authors of clients")
	f.StringArrayVar(&s.Listen, "listen", nil, "path of another socket to listen on; may be given several times")
	f.StringVar(&s.Root, "root", "", "the project (default: the nearest with .duet.toml, .git or state, else this directory)")
	f.Var((*durationValue)(&s.Limits.Timeout), "read-timeout", "how long one message may take to arrive, such as 30s")
	f.Var((*bytesValue)(&s.Limits.MaxFrame), "max-frame-bytes", "the longest message that is accepted")
	f.Var((*bytesValue)(&s.Limits.MaxHeader), "max-header-bytes", "the longest header that is accepted")
	f.DurationVar(&s.AnswerWithin, "answer-within", 5*time.Second, "how long a daemon may take to answer a new client")
	f.DurationVar(&s.EndWithin, "end-within", 1900*time.Millisecond,
		"how long a process may take to end after a signal, or after its editor has left")
	for _, name := range []string{"answer-within", "end-within"} { // for tests
		_ = f.MarkHidden(name)
	}
	_ = root.RegisterFlagCompletionFunc("listen", cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault)) // completes file names
	directories(root, "root")
	_ = root.RegisterFlagCompletionFunc("log-level", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return s.LogLevel.Accepted(), cobra.ShellCompDirectiveNoFileComp
	})
}

// Complete sets flags that were not given from the environment.
func (s *settings) Complete(cmd *cobra.Command) error {
	for _, flag := range slices.Sorted(maps.Keys(environment)) {
		name := environment[flag]
		value := os.Getenv(name)
		if value == "" || cmd.Flags().Changed(flag) {
			continue
		}
		if err := cmd.Flags().Lookup(flag).Value.Set(value); err != nil {
			return fmt.Errorf("environment variable %s: invalid value %q: %w", name, value, err)
		}
	}
	if os.Getenv("NO_COLOR") != "" {
		s.NoColor = true
	}
	return nil
}

// LevelGiven reports whether the user has set the log level.
func (s *settings) LevelGiven(cmd *cobra.Command) bool {
	return cmd.Flags().Changed("log-level") || os.Getenv(environment["log-level"]) != ""
}

// Flag values that are not plain words or numbers.

var (
	_ pflag.Value = (*levelValue)(nil)
	_ pflag.Value = (*durationValue)(nil)
	_ pflag.Value = (*countValue)(nil)
	_ pflag.Value = (*dollarsValue)(nil)
	_ pflag.Value = (*bytesValue)(nil)
)

// levelValue is a flag whose value is the name of a log level.
type levelValue logging.Level

func (l *levelValue) String() string { return logging.Level(*l).String() }

func (l *levelValue) Type() string { return "level" }

func (l *levelValue) Set(text string) error {
	return (*logging.Level)(l).UnmarshalText([]byte(text))
}

// durationValue is a flag for a positive duration; a plain number means seconds.
type durationValue time.Duration

// String implements pflag.Value. Without a duration it returns "", which help does not print.
func (d *durationValue) String() string {
	if *d == 0 {
		return ""
	}
	return time.Duration(*d).String()
}

func (d *durationValue) Type() string { return "duration" }

func (d *durationValue) Set(text string) error {
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		text += "s"
	}
	v, err := time.ParseDuration(text)
	if err != nil || v <= 0 {
		return fmt.Errorf("it must be a time above 0, such as 30s or 500ms")
	}
	*d = durationValue(v)
	return nil
}

// countValue is a flag for a positive number.
type countValue int

func (n *countValue) String() string { return strconv.Itoa(int(*n)) }

func (n *countValue) Type() string { return "int" }

func (n *countValue) Set(text string) error {
	v, err := strconv.Atoi(text)
	if err != nil || v <= 0 {
		return errors.New("it must be a number greater than 0")
	}
	*n = countValue(v)
	return nil
}

// dollarsValue is a flag for a positive amount of US dollars.
type dollarsValue float64

func (d *dollarsValue) String() string { return strconv.FormatFloat(float64(*d), 'g', -1, 64) }

func (d *dollarsValue) Type() string { return "float" }

func (d *dollarsValue) Set(text string) error {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v > 0) || math.IsInf(v, 0) { // NaN is not greater than 0
		return errors.New("it must be a number of dollars greater than 0, such as 2.50")
	}
	*d = dollarsValue(v)
	return nil
}

// bytesValue is a flag for a positive number of bytes.
type bytesValue int

func (b *bytesValue) String() string { return strconv.Itoa(int(*b)) }

func (b *bytesValue) Type() string { return "bytes" }

func (b *bytesValue) Set(text string) error {
	const most = 1 << 30
	v, err := strconv.Atoi(text)
	if err != nil || v <= 0 || v > most {
		return fmt.Errorf("it must be a number of bytes from 1 to %d, such as 10485760", most)
	}
	*b = bytesValue(v)
	return nil
}

// agentOptionsValue parses the values of a flag that sets agent options, ID=VALUE each, into a
// map by id.
func agentOptionsValue(flags []string) (map[string]string, error) {
	values := make(map[string]string, len(flags))
	for _, text := range flags {
		id, value, ok := strings.Cut(text, "=")
		if !ok || id == "" {
			return nil, fmt.Errorf("--option takes ID=VALUE, got %q", text)
		}
		values[id] = value
	}
	return values, nil
}
