// Package cli is the command line, with one file for each command or family of commands.
// Package cli/turn shows a turn, and package cli/term draws it. Commands are ordinary clients
// of the project's hub.
package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/sourcegraph/jsonrpc2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/cli/turn"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/host"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/lazyregexp"
	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

const longHelp = `Work with coding agents, on a terminal or from an editor.

Usage:
  duet-rpc                    open a session with an agent; /help lists its keys
  duet-rpc "fix the test"     open a session with this prompt
  duet-rpc -c                 continue the last session
  duet-rpc -p "why is it so"  print the answer, and end

An editor starts duet-rpc with pipes, and exchanges JSON-RPC messages with it.

`

// groups are the commands by what a user wants to do.
var groups = []struct{ about, commands string }{
	{"give prompts, find sessions", "prompt session search"},
	{"answer questions", "approvals web"},
	{"see, undo and land changes", "changes rewind land discard"},
	{"compare several agents", "attempts"},
	{"choose agents, permit, check", "agents config trust doctor usage"},
	{"projects, daemons, hosts", "projects paths daemon events hosts"},
	{"builds, pages, terminals", "build triggers preview attach"},
	{"for editors and programs", "acp mcp ask permission call"},
	{"this program", "completion demo-agent version"},
}

// overview is the help of the program: it fits on a screen.
func overview() string {
	var b strings.Builder
	b.WriteString(longHelp)
	for _, g := range groups {
		fmt.Fprintf(&b, "  %-28s  %s\n", g.about, strings.ReplaceAll(g.commands, " ", ", "))
	}
	b.WriteString(`
duet-rpc COMMAND --help explains a command, duet-rpc help flags what all have.

Exit status: 0 if it succeeded, 1 if not, 130 if you interrupted it.`)
	return b.String()
}

// newFlagsTopic is no command but a page of the help.
func newFlagsTopic(*settings) *cobra.Command {
	cmd := &cobra.Command{Use: "flags", Short: "Flags of all commands, and the environment"}
	cmd.SetHelpTemplate(flagsTemplate)
	return cmd
}

// Run runs the command that the arguments of this process name and returns its exit status.
// version is that of a release, or "".
func Run(version string) int {
	root := newRootCommand(version, os.Args[1:])
	err := explainUsage(root.Execute())
	var status exitStatus
	switch {
	case errors.As(err, &status):
		return int(status)
	case errors.Is(err, term.ErrInterrupted):
		return term.Status
	case errors.Is(err, syscall.EPIPE):
		return 1 // the reader of the output is gone
	case err != nil:
		var s settings
		s.Host, _ = root.PersistentFlags().GetString("host")
		if asJSON, _ := root.PersistentFlags().GetBool("json"); asJSON {
			line, _ := json.Marshal(map[string]string{"kind": "error", "message": s.named(err.Error())}) // strings cannot fail
			_ = term.Raw(os.Stderr, line)                                                                // the exit status says the same
			return 1
		}
		side := term.Terminal(os.Stderr)
		fmt.Fprintln(side, term.Lines(side, "duet-rpc: "+term.Exact(s.named(err.Error())))) // the error may quote third-party text
		return 1
	}
	return 0
}

// openFlag makes prompt open a session, as the program does without a command.
const openFlag = "open"

// asPrompt returns the arguments of the command prompt for arguments that name no command: a text of
// several words, -p for the answer alone, -c for the last session, or flags of prompt with one of these.
// On a terminal, the flags alone open a session.
func asPrompt(root *cobra.Command, s *settings, args []string, onTerminal bool) []string {
	i := commandAt(root.PersistentFlags(), args)
	if i >= len(args) || !isPrompt(s, args[i:], onTerminal) {
		return args
	}
	before, rest := append(args[:i:i], "prompt"), slices.Clone(args[i:])
	if p := slices.IndexFunc(rest, isPrint); p >= 0 {
		return append(before, slices.Delete(rest, p, p+1)...)
	}
	return append(append(before, "--"+openFlag), rest...)
}

func isPrint(arg string) bool { return arg == "-p" || arg == "--print" }

// isPrompt reports whether arguments that begin with none of the flags of all commands are those of a prompt.
func isPrompt(s *settings, args []string, onTerminal bool) bool {
	isText := func(arg string) bool { return !strings.HasPrefix(arg, "-") && strings.ContainsAny(arg, " \t\n") }
	first := args[0]
	name, isLong := strings.CutPrefix(first, "--")
	name, _, _ = strings.Cut(name, "=")
	switch {
	case isPrint(first), first == "--", first == "-c", name == "continue" && isLong, isText(first):
		return true
	case !strings.HasPrefix(first, "-") || len(first) < 2 || name == openFlag:
		return false
	}
	// An editor that gives a wrong flag gets an error, not a turn.
	if !onTerminal && !slices.ContainsFunc(args, isPrint) && !slices.ContainsFunc(args, isText) {
		return false
	}
	flags := newPromptCommand(s).Flags()
	if isLong {
		return flags.Lookup(name) != nil
	}
	return flags.ShorthandLookup(first[1:2]) != nil
}

// withPicker returns the arguments with a value for a last --continue without one: the user
// chooses the session.
func withPicker(args []string) []string {
	if n := len(args); n > 0 && args[n-1] == "--continue" && !slices.Contains(args, "--") {
		return append(slices.Clone(args[:n-1]), "--continue="+chosen)
	}
	return args
}

// newRootCommand returns the command line with only those commands that args need. Creating
// all of them takes a tenth of an editor's start.
func newRootCommand(version string, args []string) *cobra.Command {
	s := &settings{Settings: hubprocess.Settings{Version: cmp.Or(version, builtVersion())}}
	root := &cobra.Command{
		Use:     "duet-rpc",
		Short:   "Work with coding agents from an editor",
		Long:    overview(),
		Version: s.Version,
		Args:    noArguments,

		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if side := cmd.ErrOrStderr(); term.IsTerminal(side) {
				s.Notice = func(text string) { fmt.Fprintln(side, term.Lines(side, "— "+term.Line(text))) }
			}
			if err := s.Complete(cmd); err != nil || s.Host == "" || !runsThere(cmd) {
				return err
			}
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return s.runThere(cmd, args) }
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case s.Stdio || !term.IsTerminal(os.Stdin):
			case canTalk(s):
				var o promptOptions
				if err := o.follow(s); err != nil {
					return err
				}
				if err := o.send(cmd, s); err != nil {
					return err
				}
				return runTalk(cmd, s, o)
			default:
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
	args = withHost(args)
	args = withoutOtherFlags(root.PersistentFlags(), withPicker(asPrompt(root, s, args, term.IsTerminal(os.Stdin))))
	root.SetArgs(args)
	commands := commands()
	name, found := "", true
	if at := commandAt(root.PersistentFlags(), args); at < len(args) {
		name, found = args[at], !strings.HasPrefix(args[at], "-")
	}
	switch create := commands[name]; {
	case found && name == "" && !term.IsTerminal(os.Stdin): // started by an editor
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

// commandAt returns the index of the command among the arguments: the first one that is neither a flag of
// all commands nor such a flag's value. An unknown flag, such as --help, may be there instead.
func commandAt(flags *pflag.FlagSet, args []string) int {
	for i := 0; i < len(args); i++ {
		name, isLong := strings.CutPrefix(args[i], "--")
		name, _, hasValue := strings.Cut(name, "=")
		flag := flags.Lookup(name)
		if !isLong || flag == nil {
			return i
		}
		if !hasValue && flag.NoOptDefVal == "" {
			i++
		}
	}
	return len(args)
}

// withoutOtherFlags cuts the arguments behind a command that has another name here. Its flags would be
// unknown, and the error is about its name.
func withoutOtherFlags(flags *pflag.FlagSet, args []string) []string {
	at := commandAt(flags, args)
	words := args[at:]
	if n := slices.IndexFunc(words, func(arg string) bool { return strings.HasPrefix(arg, "-") }); n >= 0 {
		words = words[:n]
	}
	if called, _ := otherName(words); called == "" {
		return args
	}
	return args[:at+len(words)]
}

// commands maps names to constructors. Cobra sorts the commands.
func commands() map[string]func(*settings) *cobra.Command {
	return map[string]func(*settings) *cobra.Command{
		"acp":        newACPCommand,
		"agents":     newAgentsCommand,
		"approvals":  newApprovalsCommand,
		"ask":        newQuestion,
		"attach":     newAttachCommand,
		"attempts":   newAttempts,
		"build":      newBuild,
		"call":       newCallCommand,
		"changes":    newChanges,
		"config":     newConfigCommand,
		"connect":    newConnectCommand,
		"daemon":     newDaemonCommand,
		"demo-agent": newDemoAgentCommand,
		"discard":    newDiscard,
		"doctor":     newDoctorCommand,
		"events":     newEventsCommand,
		"flags":      newFlagsTopic,
		"executor":   newExecutorCommand,
		"hosts":      newHosts,
		"land":       newLand,
		"mcp":        newMCP,
		"paths":      newPathsCommand,
		"permission": newPermission,
		"preview":    newPreview,
		"projects":   newProjectsCommand,
		"prompt":     newPromptCommand,
		"receive":    newReceiveCommand,
		"rewind":     newRewind,
		"search":     newSearch,
		"serve":      newServeCommand,
		"session":    newSessionCommand,
		"subreaper":  newSubreaperCommand,
		"triggers":   newTriggers,
		"trust":      newTrustCommand,
		"web":        newWeb,
		"upload":     newUploadCommand,
		"usage":      newUsageCommand,
		"version":    newVersionCommand,
	}
}

// completeWithin limits the time for completion in a shell: a second, or
// DUET_COMPLETION_TIMEOUT.
func completeWithin() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("DUET_COMPLETION_TIMEOUT")); err == nil && d > 0 {
		return d
	}
	return time.Second
}

// A completer lists candidates, as "word\tdescription".
type completer func(ctx context.Context, c *client.Client) []string

// completeFirst completes the first argument with words from the hub, or with stored ones if
// no hub is running.
func completeFirst(s *settings, list completer) cobra.CompletionFunc {
	all := completeAll(s, list)
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return all(cmd, args, word)
	}
}

// completeAll completes every argument, or the value of a flag, in the same way.
func completeAll(s *settings, list completer) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
		_ = s.Complete(cmd) // a shell expects no errors
		ctx, cancel := context.WithTimeout(cmd.Context(), completeWithin())
		defer cancel()
		var fit []string
		_ = withClient(ctx, &s.Settings, false, func(ctx context.Context, c *client.Client) error {
			for _, candidate := range list(ctx, c) {
				if strings.HasPrefix(candidate, word) {
					fit = append(fit, candidate)
				}
			}
			return nil
		})
		return fit, cobra.ShellCompDirectiveNoFileComp
	}
}

// agentFlag adds --agent, which completes names of the configuration.
func agentFlag(cmd *cobra.Command, s *settings, name *string, usage string) {
	cmd.Flags().StringVar(name, "agent", "", usage)
	_ = cmd.RegisterFlagCompletionFunc("agent", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		_ = s.Complete(cmd)
		c, err := s.Config()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		for _, a := range c.List() {
			names = append(names, a.Name)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	})
}

// Completion of words from the hub, as "word\tdescription".

// turnCandidates lists the latest turns, and the word last.
func turnCandidates(ctx context.Context, c *client.Client) []string {
	turns, _, _ := hubclient.Turns(ctx, c, protocol.ListTurnsParams{Limit: new(uint(50))})
	var out []string
	for _, t := range turns {
		out = append(out, t.Name+"\t"+term.Short(t.StateInWords()+" · "+t.Summary))
	}
	if len(out) > 0 {
		out = append(out, "last\tthe session that was started last")
	}
	return out
}

// approvalCandidates lists the open questions.
func approvalCandidates(ctx context.Context, c *client.Client) []string {
	open, _, _ := hubclient.OpenApprovals(ctx, c, "")
	var out []string
	for _, a := range open {
		out = append(out, a.ApprovalID+"\t"+term.Short(a.Turn+" · "+turn.Asks(a)))
	}
	return out
}

// terminalCandidates lists the terminals.
func terminalCandidates(ctx context.Context, c *client.Client) []string {
	terminals, _, _ := hubclient.Terminals(ctx, c)
	var out []string
	for _, t := range terminals {
		out = append(out, t.TerminalID+"\t"+describeTerminal(t))
	}
	return out
}

// methodCandidates lists the hub's methods.
func methodCandidates(ctx context.Context, c *client.Client) []string {
	methods, _, _ := hubclient.Call[[]struct{ Name, Description string }](ctx, c, "listMethods", nil)
	var out []string
	for _, m := range methods {
		out = append(out, m.Name+"\t"+term.Short(m.Description))
	}
	return out
}

// modeCandidates lists an agent's modes.
func modeCandidates(k protocol.AgentDescription) []string {
	return described(protocol.ModeChoices(k.Modes), "")
}

// modelCandidates lists an agent's models.
func modelCandidates(k protocol.AgentDescription) []string {
	if k.Reported().Model == nil {
		return nil
	}
	return described(k.Reported().Model.Choices, "")
}

// optionCandidates lists the values of an agent's options, as ID=VALUE.
func optionCandidates(k protocol.AgentDescription) (all []string) {
	for _, o := range k.Reported().Options {
		all = append(all, described(o.Choices, o.ID+"=")...)
	}
	return all
}

// described formats choices as candidates with a prefix.
func described(choices []domain.Choice, prefix string) (words []string) {
	for _, c := range choices {
		about := c.Name
		if c.Description != "" {
			about = strings.TrimPrefix(about+": "+c.Description, ": ")
		}
		words = append(words, strings.TrimSuffix(prefix+c.ID+"\t"+term.Short(about), "\t"))
	}
	return words
}

// treeVersion is the next release of this source tree.
const treeVersion = "0.1.0"

// builtVersion returns the version of this binary that the Go toolchain has recorded.
func builtVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return treeVersion + "-dev"
	}
	return versionOf(info)
}

// pseudoVersion matches the version that Go gives a commit without a tag.
var pseudoVersion = lazyregexp.New(`[-.]\d{14}-([0-9a-f]{12})(\+dirty)?$`)

// versionOf returns the tag of a build without its v. For an untagged commit it returns the
// version of the tree with the commit, where Go would say v0.0.0.
func versionOf(info *debug.BuildInfo) string {
	tag := info.Main.Version
	commit, dirty := "", strings.HasSuffix(tag, "+dirty")
	if pseudo := pseudoVersion().FindStringSubmatch(tag); pseudo != nil {
		commit = pseudo[1]
	} else if tag != "" && tag != "(devel)" && !dirty {
		return strings.TrimPrefix(tag, "v")
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			commit = s.Value
		case "vcs.modified":
			dirty = s.Value == "true"
		}
	}
	version := treeVersion + "-dev"
	if commit != "" {
		version += "+" + commit[:min(7, len(commit))]
		if dirty {
			version += ".dirty"
		}
	}
	return version
}

func versionLine(version string) string {
	return fmt.Sprintf("duet-rpc %s (%s %s/%s)", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func newVersionCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Long:  "Print the version.\n\nExit status: 0.",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !s.JSON {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), versionLine(s.Version))
				return err
			}
			return json.NewEncoder(cmd.OutOrStdout()).Encode(map[string]string{
				"version": s.Version, "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH,
			})
		},
	}
}

const pathsHelp = `Print where everything of this project is: its root, the directory of its state,
the database, the daemon's socket and log, and the files of the
configuration. A path is printed whether or not there is a file. With --json, a missing
directory of the project is printed as a JSON error on standard error.

Exit status: 0 if the project was found, 1 if not.`

func newPathsCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:   "paths",
		Short: "Print where the project's files are",
		Long:  pathsHelp,
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			found, err := s.Paths()
			if missing, is := errors.AsType[project.NoDirectoryError](err); is && s.JSON {
				return pathsError(cmd, missing)
			}
			if err != nil {
				return err
			}
			if s.JSON {
				return term.JSON(cmd.OutOrStdout(), found)
			}
			table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			for _, row := range [][2]string{
				{"root", found.Root},
				{"state", found.State},
				{"database", found.Database},
				{"socket", found.Socket},
				{"log", found.Log},
				{"project's configuration", found.Project},
				{"your configuration", found.User},
			} {
				fmt.Fprintf(table, "%s\t%s\n", row[0], term.Line(row[1]))
			}
			return table.Flush()
		},
	}
}

// pathsError prints the error that the project's directory does not exist as the JSON error object of the call command. data.path
// is the directory.
func pathsError(cmd *cobra.Command, missing project.NoDirectoryError) error {
	e := &domain.Error{Kind: domain.KindNoDirectory, Message: missing.Error()}
	path, err := filepath.Abs(string(missing))
	if err != nil {
		return err
	}
	wire := protocol.Family{Plain: true}.WithData(e, map[string]string{"kind": e.Kind, "path": path})
	of, is := errors.AsType[*jsonrpc2.Error](wire)
	if !is {
		return missing
	}
	if err := term.JSON(cmd.ErrOrStderr(), of); err != nil {
		return err
	}
	return exitStatus(1)
}
