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
		words := append(strings.Fields(cmd.CommandPath())[1:], args...)
		if called, does := otherName(words); does != "" {
			return fmt.Errorf("there is no command %q: `duet-rpc %s` does that", called, does)
		}
		cmd.SuggestionsMinimumDistance = min(suggestsWithin, len(args[0])/2)
		close, meant := cmd.SuggestionsFor(args[0]), ""
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
// leading ~, which the hub expands. A directory of a host stays as it is.
func (s *settings) fullPath(path string) (string, error) {
	if path == "" || s.Host != "" || strings.HasPrefix(path, "~") {
		return path, nil
	}
	full, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("finding %q: %w", path, err)
	}
	return full, nil
}

// fullDirectories makes the directories that an agent may use absolute.
func (s *settings) fullDirectories(dirs []string) ([]string, error) {
	var full []string
	for _, dir := range dirs {
		path, err := s.fullPath(dir)
		if err != nil {
			return nil, err
		}
		if info, err := os.Stat(path); s.Host == "" && !strings.HasPrefix(path, "~") && (err != nil || !info.IsDir()) {
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
		fmt.Fprintln(side, term.Lines(side, "— "+term.Line(s.named(fmt.Sprintf(format, args...)))))
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

// otherNames maps a command's names in other programs, and its former ones, to the arguments that do it
// here. An editor's start does not need the map.
func otherNames() map[string]string {
	return map[string]string{
		"abandon": "discard", "drop": "discard",
		"allow": "approvals allow", "approve": "approvals allow", "deny": "approvals deny",
		"answer": "approvals respond", "respond": "approvals respond", "inbox": "approvals", "questions": "approvals",
		"chat": "prompt", "exec": "prompt", "run": "prompt",
		"check": "doctor", "settings": "config",
		"choose": "land SESSION --discard-others",
		"cost":   "usage", "stats": "usage",
		"delete": "session delete", "rm": "session delete",
		"diff": "changes", "review": "changes",
		"export": "session show", "show": "session show",
		"fork":    "prompt --fork ID",
		"history": "session list", "list": "session list", "ls": "session list", "ps": "session list", "sessions": "session list",
		"interrupt": "session interrupt ID", "kill": "session interrupt ID", "cancel": "session interrupt ID",
		"log": "daemon logs", "logs": "daemon logs",
		"login": "agents login", "logout": "agents logout",
		"merge": "land", "restore": "rewind", "undo": "rewind",
		"resume": "prompt --continue ID",
		"start":  "daemon start", "status": "daemon status", "stop": "daemon stop",
		"submit": "prompt --background",
		"tail":   "events", "watch": "events",
		"worktree": "prompt --worktree", "worktrees": "prompt --worktree",

		"agents list": "agents", "agents ls": "agents",
		"approvals list": "approvals", "approvals ls": "approvals",
		"approvals yes": "approvals allow", "approvals no": "approvals deny", "approvals reject": "approvals deny",
		"approvals answer": "approvals respond",
		"daemon restart":   "daemon stop, and then daemon start",

		"session agent": "session set", "session mode": "session set", "session model": "session set",
		"session cancel": "session interrupt", "session kill": "session interrupt", "session stop": "session interrupt",
		"session cat": "session show", "session diff": "session show", "session export": "session show", "session get": "session show",
		"session open": "session show", "session view": "session show",
		"session continue": "prompt --continue ID", "session prompt": "prompt --continue ID", "session resume": "prompt --continue ID",
		"session send":   "prompt --continue ID",
		"session fork":   "prompt --fork ID",
		"session launch": "prompt --background", "session new": "prompt --background", "session run": "prompt --background",
		"session start": "prompt --background", "session submit": "prompt --background",
		"session ls": "session list", "session rm": "session delete",

		"task":        "session",
		"task cancel": "session interrupt", "task kill": "session interrupt", "task rm": "session interrupt", "task stop": "session interrupt",
		"task get": "session show", "task show": "session show", "task status": "session show",
		"task list": "session list --turns", "task ls": "session list --turns",
		"task stats":  "usage",
		"task submit": "prompt --background", "task add": "prompt --background", "task new": "prompt --background", "task run": "prompt --background",

		"triggers ls": "triggers list", "triggers off": "triggers disable", "triggers on": "triggers enable",
	}
}

// otherName returns the longest other name of a command with which the words begin, and what does that here;
// "" without one. The words begin after the program's name.
func otherName(words []string) (called, does string) {
	if len(words) == 0 { // the start of an editor's process
		return "", ""
	}
	names := otherNames()
	for n := min(2, len(words)); n > 0; n-- {
		called = strings.Join(words[:n], " ")
		if does = names[called]; does != "" {
			return called, does
		}
	}
	return "", ""
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
	"host":             "DUET_HOST",
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
	f.StringVar(&s.Host, "host", "", "the host of the project, one of your configuration (default: this machine)")
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
	_ = root.RegisterFlagCompletionFunc("host", completeHosts)
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
