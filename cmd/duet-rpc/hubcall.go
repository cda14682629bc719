package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/host"
	"github.com/duet-rpc/duet-rpc/internal/logging"
)

// hubStatusHelp is what the commands over a hub have in common.
const hubStatusHelp = `
It talks to the project's hub, which is an editor's process or a daemon
(` + "`duet-rpc daemon start`" + `). With --json the hub's answer is printed as it is.

Exit status: 0 if it was done; 1 if it was refused or failed, or no hub runs
here or answers; 130 if you interrupted it, at once if you do so twice.`

// withHub runs do with a connection to the project's hub, until a signal
// comes. What the hub refuses is said in its own words.
func withHub(cmd *cobra.Command, s *settings, do func(context.Context, *client.Client) error, opts ...client.Option) error {
	return inItsWords(connected(cmd, s, do, opts...))
}

// beginsWork marks a command for which a daemon is started where none runs and
// the configuration wants one; others have nothing to do with a hub that knows
// nothing yet.
const beginsWork = "begins-work"

// beginning is the mark.
func beginning() map[string]string { return map[string]string{beginsWork: "yes"} }

// inItsWords is an error as the hub said it, or as it is.
func inItsWords(err error) error {
	var refused *client.Error
	if errors.As(err, &refused) {
		return errors.New(oneLine(strings.TrimPrefix(refused.Message, "Internal error: ")))
	}
	return err
}

// connected is withHub that leaves errors as they are.
func connected(cmd *cobra.Command, s *settings, do func(context.Context, *client.Client) error, opts ...client.Option) error {
	p, err := s.Project()
	if err != nil {
		return err
	}
	ctx, stop := untilInterrupted(cmd.Context())
	defer stop()
	if logging.LogsMessages(os.Getenv) {
		log := s.OpenLog()
		defer log.Close(logGrace)
		messages := log.Messages()
		opts = append(opts, client.WithTrace(func(sent bool, message []byte) { messages("hub", sent, message) }))
	}
	c, err := host.Dial(ctx, &s.Settings, p, opts...)
	if err != nil && cmd.Annotations[beginsWork] != "" && host.MayComeYet(err) && host.WantsDaemon(&s.Settings) {
		if err = host.EnsureDaemon(ctx, &s.Settings, p); err == nil {
			c, err = host.Dial(ctx, &s.Settings, p, opts...)
		}
	}
	if err == nil {
		defer c.Close()
		err = do(ctx, c)
	}
	var status exitStatus
	if err != nil && ctx.Err() != nil && !errors.As(err, &status) {
		return statusInterrupted
	}
	return err
}

// ask calls a method, and returns the result decoded and as it is.
func ask[R any](ctx context.Context, c *client.Client, method string, params any) (result R, raw json.RawMessage, err error) {
	if err := c.Call(ctx, method, params, &raw); err != nil {
		return result, nil, err
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return result, nil, fmt.Errorf("reading what the hub answered to %s: %w", method, err)
	}
	return result, raw, nil
}

// errHubGone says that the hub went while something was waited for.
var errHubGone = errors.New("the hub has gone; what it ran can be continued when there is another one")

// whileThere is a context that ends with the connection: what is waited for
// does not come from another hub.
func whileThere(ctx context.Context, c *client.Client) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	off := c.OnState(func(state client.State) {
		if state != client.Connected {
			cancel(errHubGone)
		}
	})
	return ctx, func() { off(); cancel(nil) }
}

// unlessGone is an error of what was done with a context of whileThere, or
// that the hub has gone, if that is why.
func unlessGone(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errHubGone) || errors.Is(err, client.ErrDisconnected) {
		return errHubGone
	}
	return err
}

// printRaw prints JSON as it is, on a line.
func printRaw(out io.Writer, raw json.RawMessage) error {
	_, err := fmt.Fprintf(out, "%s\n", inert(raw))
	return err
}

// inert escapes what JSON allows as it is and terminals obey: such characters
// stand in strings alone, so the value stays the same.
func inert(raw json.RawMessage) string {
	var b strings.Builder
	for _, r := range string(raw) {
		if r >= 0x7f && r < 0xa0 {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// progress says something beside the result.
func progress(cmd *cobra.Command, s *settings, format string, args ...any) {
	if !s.json {
		fmt.Fprintf(cmd.ErrOrStderr(), "— %s\n", oneLine(fmt.Sprintf(format, args...)))
	}
}

// completeWithin bounds what a shell waits for at a key.
const completeWithin = time.Second

// A completer lists candidates, as "word\tdescription".
type completer func(ctx context.Context, c *client.Client) []string

// completeFirst completes the first argument by what the hub knows, and
// nothing where no hub runs.
func completeFirst(s *settings, list completer) cobra.CompletionFunc {
	all := completeAll(s, list)
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return all(cmd, args, word)
	}
}

// completeAll completes every argument, or the value of a flag.
func completeAll(s *settings, list completer) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		_ = s.complete(cmd) // a shell wants no errors
		p, err := s.Project()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completeWithin)
		defer cancel()
		c, err := host.Dial(ctx, &s.Settings, p)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer c.Close()
		var fit []string
		for _, candidate := range list(ctx, c) {
			if strings.HasPrefix(candidate, word) {
				fit = append(fit, candidate)
			}
		}
		return fit, cobra.ShellCompDirectiveNoFileComp
	}
}

// taskIDs lists the last tasks.
func taskIDs(ctx context.Context, c *client.Client) []string {
	tasks, _, _ := ask[[]listedTask](ctx, c, "task.list", map[string]int{"limit": 50})
	var out []string
	for _, t := range tasks {
		out = append(out, t.ID+"\t"+short(t.State+" · "+t.Prompt))
	}
	return out
}

// methodNames lists the hub's methods.
func methodNames(ctx context.Context, c *client.Client) []string {
	methods, _, _ := ask[[]struct{ Name, Description string }](ctx, c, "listMethods", nil)
	var out []string
	for _, m := range methods {
		out = append(out, m.Name+"\t"+short(m.Description))
	}
	return out
}

// agentFlag adds --agent, which completes by the configuration.
func agentFlag(cmd *cobra.Command, s *settings, name *string, usage string) {
	cmd.Flags().StringVar(name, "agent", "", usage)
	_ = cmd.RegisterFlagCompletionFunc("agent", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		_ = s.complete(cmd)
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

// oneOf adds a flag that takes one of some words; the hub refuses others.
func oneOf(cmd *cobra.Command, value *string, name, usage string, words ...string) {
	cmd.Flags().StringVar(value, name, "", usage+": "+strings.Join(words, ", "))
	_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

// directories lets flags complete names of directories.
func directories(cmd *cobra.Command, flags ...string) {
	for _, name := range flags {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs))
	}
}

// exactly wants as many arguments as there are names.
func exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > len(names) {
			return fmt.Errorf("%q takes %s and nothing more, got %q", cmd.CommandPath(), strings.Join(names, " "), args[len(names)])
		}
		return atLeast(names...)(cmd, args)
	}
}

// atLeast wants arguments by these names, and takes more of the last.
func atLeast(names ...string) cobra.PositionalArgs {
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

// group is a command that only has others below it.
func group(use, title, help string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: title, Long: help, Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(commands...)
	return cmd
}
