package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/logging"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

const promptHelp = `Run one prompt with an agent, in this process and this directory.

What the agent says goes to standard output as it comes; what it does, its
questions and its changes of files go to standard error. Questions are asked on
the terminal: y allows, n denies and asks why, a allows the same for the rest
of the session, e lets you edit the input first. --yes allows all, --deny
denies all. Without a terminal and without either, questions are denied.

Without a configured agent the demo agent answers; ` + "`duet-rpc agents`" + ` lists
others, ` + "`duet-rpc demo-agent --help`" + ` the words that it knows.

The prompt is the arguments, or standard input if there are none. The session
is kept: --continue goes on with it, by any of its ids, or with "last".

Exit status: 0 if the agent completed, 1 if it failed, 130 if you interrupted
it (C-c; twice ends at once).`

// promptOptions are the flags of the command.
type promptOptions struct {
	agent, cwd, mode, from string
	yes, deny              bool
}

// statusInterrupted is the exit status after C-c, as a shell has it.
const statusInterrupted exitStatus = 130

func newPromptCommand(s *settings) *cobra.Command {
	var o promptOptions
	cmd := &cobra.Command{
		Use:     "prompt [TEXT...]",
		Short:   "Run one prompt with an agent, and answer its questions here",
		Long:    promptHelp,
		Example: "  duet-rpc prompt \"Say hello\"\n  duet-rpc prompt --agent claude \"Why does the build fail?\"\n  git diff | duet-rpc prompt --yes",
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := promptText(cmd.InOrStdin(), args)
			if err != nil {
				return err
			}
			return runPrompt(cmd, s, o, text)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.agent, "agent", "", "the agent to run (default: default_agent, else the first that is found, else demo)")
	f.StringVar(&o.cwd, "cwd", "", "the directory in which it works (default: the project's root)")
	f.StringVar(&o.mode, "mode", "", "the permission mode: default, acceptEdits, bypassPermissions or plan")
	f.StringVar(&o.from, "continue", "", "go on with a session: one of its ids, or last")
	f.BoolVarP(&o.yes, "yes", "y", false, "allow whatever the agent asks")
	f.BoolVar(&o.deny, "deny", false, "deny whatever the agent asks")
	cmd.MarkFlagsMutuallyExclusive("yes", "deny")
	cmd.MarkFlagsMutuallyExclusive("continue", "agent")
	cmd.MarkFlagsMutuallyExclusive("continue", "cwd")
	_ = cmd.RegisterFlagCompletionFunc("agent", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		c, err := loadConfig(s)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var names []string
		for _, a := range c.List() {
			names = append(names, a.Name)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	})
	return cmd
}

// promptText is the prompt: the arguments, or what comes in.
func promptText(in io.Reader, args []string) (string, error) {
	text := strings.Join(args, " ")
	if text == "" || text == "-" {
		if term.IsTerminal(int(os.Stdin.Fd())) {
			return "", errors.New(`say what the agent is to do, such as: duet-rpc prompt "Say hello"`)
		}
		const most = 8 << 20
		all, err := io.ReadAll(io.LimitReader(in, most+1))
		if err != nil {
			return "", fmt.Errorf("reading the prompt from standard input: %w", err)
		}
		if len(all) > most {
			return "", fmt.Errorf("the prompt on standard input is longer than %d bytes", most)
		}
		text = string(all)
	}
	if strings.TrimSpace(text) == "" {
		return "", errors.New("the prompt is empty")
	}
	return text, nil
}

// runPrompt runs one prompt to its end and returns the exit status as an
// error.
func runPrompt(cmd *cobra.Command, s *settings, o promptOptions, text string) error {
	if !cmd.Flags().Changed("log-level") && os.Getenv(environment["log-level"]) == "" {
		s.logLevel = logging.Level(quietLevel)
	}
	log := logging.Open(logging.Options{Level: s.logLevel.Slog(), Path: os.Getenv("DUET_RPC_LOG"), NoColor: s.noColor})
	defer log.Close(logGrace)
	interrupts := make(chan os.Signal, 2)
	signal.Notify(interrupts, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(interrupts)

	d := newDomain(s, log, claimProject(s))
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		d.close(ctx)
	}()
	ctx := cmd.Context()
	h, err := d.Hub(ctx)
	if err != nil {
		return err
	}
	view := newPromptView(cmd.OutOrStdout(), cmd.ErrOrStderr(), s)
	notices := make(chan hub.Notice, 256)
	subscription, err := h.Subscribe(ctx, hub.Filter{}, -1, func(ctx context.Context, n hub.Notice) error {
		select {
		case notices <- n:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	if err != nil {
		return err
	}
	defer subscription.Close()
	session, err := startPrompt(ctx, h, o, text)
	if err != nil {
		return err
	}
	view.begin(session)
	subscription.Start()
	asker := newAsker(cmd.ErrOrStderr(), o, view)
	if session, err = followPrompt(ctx, h, session, notices, interrupts, view, asker); err != nil {
		return err
	}
	view.end(session)
	switch session.State {
	case store.Completed:
		return nil
	case store.Interrupted, store.Cancelled:
		if asker.interrupted {
			return statusInterrupted
		}
	}
	return exitStatus(1)
}

// startPrompt launches or continues a session.
func startPrompt(ctx context.Context, h *hub.Hub, o promptOptions, text string) (hub.Session, error) {
	if o.from == "" {
		cwd := o.cwd
		return h.Launch(ctx, hub.LaunchSpec{Prompt: text, Agent: o.agent, CWD: cwd, Mode: o.mode, Source: "prompt"})
	}
	if o.from == "last" {
		list, err := h.Sessions(ctx, hub.RunFilter{Limit: 1})
		if err != nil {
			return hub.Session{}, err
		}
		if len(list) == 0 {
			return hub.Session{}, errors.New("there is no session yet to continue")
		}
		o.from = list[0].UUID
	}
	if o.mode != "" {
		if _, err := h.UpdateSettings(ctx, o.from, hub.SettingsChange{Mode: &o.mode}); err != nil {
			return hub.Session{}, err
		}
	}
	return h.Continue(ctx, hub.ContinueSpec{From: o.from, Prompt: text, Source: "prompt"})
}

// followPrompt shows what happens until the run has ended.
func followPrompt(ctx context.Context, h *hub.Hub, session hub.Session, notices <-chan hub.Notice, interrupts <-chan os.Signal, view *promptView, asker *asker) (hub.Session, error) {
	for {
		select {
		case n := <-notices:
			switch view.show(n) {
			case noticeAsks:
				asker.ask(ctx, h, view.question(n))
			case noticeEnds:
				return h.Session(ctx, session.UUID)
			}
		case answer := <-asker.answers:
			asker.answered(ctx, h, answer)
		case <-interrupts:
			if asker.interrupted {
				os.Exit(int(statusInterrupted))
			}
			asker.interrupted = true
			view.note("interrupting; once more to end at once")
			if _, err := h.Interrupt(ctx, session.UUID, "user_cancelled"); err != nil {
				view.note(err.Error())
			}
		}
	}
}
