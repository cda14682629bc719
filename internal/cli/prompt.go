package cli

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/attachment"
	"github.com/duet-rpc/duet-rpc/internal/cli/candidate"
	"github.com/duet-rpc/duet-rpc/internal/cli/flagvalue"
	"github.com/duet-rpc/duet-rpc/internal/cli/interrupt"
	"github.com/duet-rpc/duet-rpc/internal/cli/output"
	"github.com/duet-rpc/duet-rpc/internal/cli/tty"
	"github.com/duet-rpc/duet-rpc/internal/cli/turn"
	"github.com/duet-rpc/duet-rpc/internal/cli/wire"
	"github.com/duet-rpc/duet-rpc/internal/host"
	"github.com/duet-rpc/duet-rpc/internal/logging"
)

const promptHelp = `Run one prompt with an agent, and show what it does until it ends.

It runs in the project's hub: in an editor's process or a daemon if there is one,
else in this process. Everybody connected to the hub can see it and answer its
questions.

What the agent says goes to standard output as it comes; what it does, what it
asks and how it changes files goes to standard error. Questions are asked on the
terminal: y allows, n denies and asks you why, a allows the same for the rest of
the session, e lets you edit the tool's input first (if the agent supports that),
and v shows a question that is too long for the screen, with $PAGER or less. What
you typed before a question was shown is discarded. --yes allows everything,
--deny denies everything. Without a terminal and without either flag, every
question is denied.

Characters that would control the terminal, change the direction of text or be
invisible are written out, such as <U+202E>. If standard output is a pipe or a
file, it gets the agent's words unchanged.

Without a configured agent the demo agent answers; ` + "`duet-rpc agents`" + ` lists
others, ` + "`duet-rpc demo-agent --help`" + ` the words that it knows.

The prompt is the arguments, or standard input if there are none. The session
is kept: continue it with --continue and any of its ids, or "last".

` + attachment.Help + `
Exit status: 0 if the agent completed; 1 if it failed or somebody else ended
it; 130 if you interrupted it (C-c; press it twice to end at once).`

// promptOptions are the flags of the command.
type promptOptions struct {
	agent, cwd, from string
	set              agentSettings
	with             attachment.Flags
	yes, deny        bool
	timeout          time.Duration
}

func newPromptCommand(s *settings) *cobra.Command {
	var o promptOptions
	cmd := &cobra.Command{
		Use:     "prompt [TEXT...]",
		Short:   "Run one prompt with an agent, and answer its questions here",
		Long:    promptHelp,
		Example: "  duet-rpc prompt \"Say hello\"\n  duet-rpc prompt --agent claude \"Why does the build fail?\"\n  (echo \"Review this:\"; git diff) | duet-rpc prompt --yes",
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := promptText(cmd.InOrStdin(), args)
			if err != nil {
				return err
			}
			if err := o.with.Read(cmd, s, args); err != nil {
				return err
			}
			return runPrompt(cmd, s, o, text)
		},
	}
	f := cmd.Flags()
	agentFlag(cmd, s, &o.agent, "the agent to run (default: default_agent, else the first that is found, else demo)")
	f.StringVar(&o.cwd, "cwd", "", "the directory in which the agent works (default: the project's root)")
	f.StringVar(&o.from, "continue", "", "continue a session: any of its ids, or last")
	f.Var((*flagvalue.Duration)(&o.timeout), "timeout", "how long the agent may take, such as 10m (default: limits.run_timeout)")
	f.BoolVarP(&o.yes, "yes", "y", false, "allow everything that the agent asks")
	f.BoolVar(&o.deny, "deny", false, "deny everything that the agent asks")
	o.with.Add(cmd)
	directories(cmd, "cwd")
	o.set.addFlags(cmd, s, func(ctx context.Context, c *client.Client, cmd *cobra.Command, args []string) (wire.Known, error) {
		if o.from == "" {
			return knownByFlag(ctx, c, cmd, args)
		}
		from, err := wire.Named(ctx, c, o.from)
		if err != nil {
			return wire.Known{}, err
		}
		return wire.KnownOf(ctx, c, "", from)
	})
	_ = cmd.RegisterFlagCompletionFunc("continue", completeAll(s, func(ctx context.Context, c *client.Client) []string {
		return append([]string{"last\tthe session that was started last"}, candidate.Tasks(ctx, c)...)
	}))
	cmd.MarkFlagsMutuallyExclusive("yes", "deny")
	cmd.MarkFlagsMutuallyExclusive("continue", "agent")
	cmd.MarkFlagsMutuallyExclusive("continue", "cwd")
	return cmd
}

// quietLevel is how much is logged beside a conversation unless told
// otherwise: what went wrong.
const quietLevel = slog.LevelError

// runPrompt runs one prompt to its end and returns the exit status as an
// error.
func runPrompt(cmd *cobra.Command, s *settings, o promptOptions, text string) error {
	if !cmd.Flags().Changed("log-level") && os.Getenv(environment["log-level"]) == "" {
		s.LogLevel = logging.Level(quietLevel)
	}
	log := s.OpenLog()
	defer log.Close(logGrace)
	interrupts, stop := interrupt.Signals()
	defer stop()
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()

	view := turn.NewView(cmd.OutOrStdout(), cmd.ErrOrStderr(), s.NoColor, s.json)
	if p, err := s.Project(); err == nil {
		for _, note := range p.Notes {
			view.Note(output.Line(note))
		}
	}
	var h *host.Connection
	if err := interrupt.Or(interrupts, cancel, func() (err error) {
		h, err = host.Connect(ctx, &s.Settings, log)
		return err
	}); err != nil {
		return err
	}
	defer h.Close(interrupts, view.Note)
	session, interrupted, err := attendPrompt(ctx, s, h.Client, view, o, text, interrupts)
	if err != nil {
		return wire.Refusal(err)
	}
	switch {
	case session.Status == wire.Completed:
		return nil
	case session.Status == wire.Interrupted && interrupted:
		return interrupt.Err
	}
	return exitStatus(1)
}

// attendPrompt starts a session and shows it to its end.
func attendPrompt(ctx context.Context, s *settings, c *client.Client, view *turn.View, o promptOptions, text string, interrupts <-chan os.Signal) (session wire.Session, interrupted bool, err error) {
	ctx, cancel := wire.WhileConnected(ctx, c)
	defer cancel()
	defer func() {
		if err != nil {
			err = wire.OrGone(ctx, err)
		}
	}()
	if o.from != "" {
		if o.from, err = wire.Named(ctx, c, o.from); err != nil {
			return session, false, err
		}
		turn.ShowLeftOpen(ctx, c, o.from, view)
	}
	started, err := startPrompt(ctx, c, o, text)
	if err != nil {
		return session, false, err
	}
	if session, _, err = wire.SessionState(ctx, c, started.SessionID); err != nil {
		return session, false, err
	}
	options := turn.Options{
		Yes: o.yes, Deny: o.deny, Signals: interrupts, EndNow: func() { os.Exit(interrupt.Status) },
		SilentAfter: s.AnswerWithin, WhySilent: func() string { return whySilent(ctx, s) },
	}
	if !s.json && tty.Is(os.Stdin) && tty.Is(os.Stderr) {
		options.SignIn = func(ctx context.Context, agent, method string) error {
			return s.agentsOptions().Login(ctx, os.Stderr, agent, method)
		}
		options.Again = func(ctx context.Context, after wire.Session) (wire.Session, error) {
			started, err := startPrompt(ctx, c, promptOptions{from: after.ID, with: o.with}, text)
			if err != nil {
				return wire.Session{}, err
			}
			session, _, err := wire.SessionState(ctx, c, started.SessionID)
			return session, err
		}
	}
	return turn.Attend(ctx, c, view, session, options)
}

// whySilent says of a hub that has been reached before why it does not answer.
func whySilent(ctx context.Context, s *settings) string {
	silent := &host.SilentError{Held: true}
	if p, err := s.Project(); err == nil {
		silent.PID, _ = p.Holder(ctx)
	}
	return silent.Error()
}

// startPrompt launches or continues a session.
func startPrompt(ctx context.Context, c *client.Client, o promptOptions, text string) (started wire.Started, err error) {
	if o.from == "" {
		if o.agent == "" {
			o.agent = os.Getenv("DUET_AGENT") // which the hub need not have
		}
		if o.cwd, err = fullPath(o.cwd); err != nil {
			return started, err
		}
		params := map[string]any{"query": text, "timeout_ms": o.timeout.Milliseconds()}
		o.with.Into(params)
		members := map[string]string{"agent": o.agent, "working_dir": o.cwd, "permission_mode": o.set.mode, "model": o.set.model}
		if err := wire.Wanted(params, members, o.set.options); err != nil {
			return started, err
		}
		started, _, err = wire.Call[wire.Started](ctx, c, "launchSession", params)
		return started, err
	}
	if !o.set.isEmpty() {
		params := map[string]any{"session_id": o.from}
		if err := o.set.params(params); err != nil {
			return started, err
		}
		if err := c.Call(ctx, "session.set", params, nil); err != nil {
			return started, err
		}
	}
	params := map[string]any{"session_id": o.from, "query": text, "timeout_ms": o.timeout.Milliseconds()}
	o.with.Into(params)
	started, _, err = wire.Call[wire.Started](ctx, c, "continueSession", params)
	return started, err
}
