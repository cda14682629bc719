package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	values "github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/logging"
)

const promptHelp = `Run one prompt with an agent, and show what it does until it ends.

It runs in the project's hub: an editor's process or a daemon if there is one,
else in this process. Others who look at the hub see it, too, and may answer
its questions.

What the agent says goes to standard output as it comes; what it does, its
questions and its changes of files go to standard error. Questions are asked on
the terminal: y allows, n denies and asks why, a allows the same for the rest
of the session, e lets you edit the input first, where the agent heeds that, v
shows all of what is too long for a screen, with $PAGER or less. What was typed
before a question was asked is thrown away. --yes allows all, --deny denies all.
Without a terminal and without either, questions are denied.

Characters that steer a terminal, change the direction of the text or are not
seen are written out, as <U+202E>. Only in a pipe or a file standard output has
what the agent says as it is.

Without a configured agent the demo agent answers; ` + "`duet-rpc agents`" + ` lists
others, ` + "`duet-rpc demo-agent --help`" + ` the words that it knows.

The prompt is the arguments, or standard input if there are none. The session
is kept: --continue goes on with it, by any of its ids, or with "last".

Exit status: 0 if the agent completed; 1 if it failed, or somebody else ended
it; 130 if you interrupted it (C-c; twice ends at once).`

// promptOptions are the flags of the command.
type promptOptions struct {
	agent, cwd, mode, from string
	yes, deny              bool
}

// permissionModes are what --mode takes.
var permissionModes = []string{catalog.ModeDefault, catalog.ModeAcceptEdits, catalog.ModeBypass, catalog.ModePlan}

// statusInterrupted is the exit status after C-c, as a shell has it.
const statusInterrupted exitStatus = 130

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
			return runPrompt(cmd, s, o, text)
		},
	}
	f := cmd.Flags()
	agentFlag(cmd, s, &o.agent, "the agent to run (default: default_agent, else the first that is found, else demo)")
	f.StringVar(&o.cwd, "cwd", "", "the directory in which it works (default: the project's root)")
	f.StringVar(&o.mode, "mode", "", "what it may do without asking: "+strings.Join(permissionModes, ", "))
	f.StringVar(&o.from, "continue", "", "go on with a session: one of its ids, or last")
	f.BoolVarP(&o.yes, "yes", "y", false, "allow whatever the agent asks")
	f.BoolVar(&o.deny, "deny", false, "deny whatever the agent asks")
	directories(cmd, "cwd")
	_ = cmd.RegisterFlagCompletionFunc("mode", cobra.FixedCompletions(permissionModes, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("continue", completeAll(s, func(ctx context.Context, c *client.Client) []string {
		return append([]string{"last\tthe session that was begun last"}, taskIDs(ctx, c)...)
	}))
	cmd.MarkFlagsMutuallyExclusive("yes", "deny")
	cmd.MarkFlagsMutuallyExclusive("continue", "agent")
	cmd.MarkFlagsMutuallyExclusive("continue", "cwd")
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
	log := s.openLog()
	defer log.Close(logGrace)
	interrupts, stop := interrupts()
	defer stop()

	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	view := newPromptView(cmd.OutOrStdout(), cmd.ErrOrStderr(), s)
	if p, err := findProject(s); err == nil {
		for _, note := range p.Notes {
			view.note(oneLine(note))
		}
	}
	var h *openedHub
	if err := orInterrupted(interrupts, cancel, func() (err error) {
		h, err = openHub(ctx, s, log)
		return err
	}); err != nil {
		return err
	}
	defer h.close(interrupts, view.note)
	asker := newAsker(cmd.ErrOrStderr(), o, view, h.Client)
	var stopContinued func()
	asker.continued, stopContinued = continued()
	defer stopContinued()
	asker.silence = watchSilence(ctx, h.Client, s.answerWithin, func() string { return whySilent(ctx, s) })
	session, err := promptSession(ctx, h.Client, o, text, interrupts, view, asker)
	if err != nil {
		return inItsWords(err)
	}
	view.end(session)
	switch {
	case session.Status == string(values.Completed):
		return nil
	case session.Status == string(values.Interrupted) && asker.interrupted:
		return statusInterrupted
	}
	return exitStatus(1)
}

// promptSession starts a session and follows it to its end.
func promptSession(ctx context.Context, c *client.Client, o promptOptions, text string, interrupts <-chan os.Signal, view *promptView, asker *asker) (session listedSession, err error) {
	ctx, cancel := whileThere(ctx, c)
	defer cancel()
	defer func() {
		if err != nil {
			err = unlessGone(ctx, err)
		}
	}()
	begun, err := startPrompt(ctx, c, o, text)
	if err != nil {
		return session, err
	}
	if session, _, err = sessionState(ctx, c, begun.SessionID); err != nil {
		return session, err
	}
	view.begin(session)
	if o.from != "" {
		tellLeftOpen(ctx, c, session.ThreadID, view)
	}
	events, refused := make(chan client.Event), make(chan error, 1)
	sub, err := c.Subscribe(ctx, client.SubscribeOptions{Session: session.ID, Since: new(int64)}, func(e client.Event) {
		select {
		case events <- e:
		case <-ctx.Done():
		}
	})
	if err != nil {
		return session, err
	}
	defer func() { cancel(); sub.Close() }()
	asker.signals = interrupts
	asker.interrupt = func() {
		if asker.interrupted {
			os.Exit(int(statusInterrupted))
		}
		asker.interrupted = true
		view.note("interrupting; once more to end at once")
		go func() { // a second signal is looked at meanwhile
			refused <- c.Call(ctx, "interruptSession", map[string]string{"session_id": session.ID, "reason": "user_cancelled"}, nil)
		}()
	}
	for {
		select {
		case e := <-events:
			switch view.show(e) {
			case noticeAsks:
				asker.ask(ctx, askingOf(e))
			case noticeResolves:
				asker.resolved(gistOf(e))
			case noticeEnds:
				session, _, err = sessionState(ctx, c, session.ID)
				return session, err
			case noticeShown:
			}
		case answer := <-asker.answers:
			asker.answered(ctx, answer)
		case <-asker.continued:
			asker.next()
		case text := <-asker.silence:
			view.note(text)
		case <-interrupts:
			asker.interrupt()
		case err := <-refused:
			if err != nil {
				view.note(inItsWords(err).Error())
			}
		case <-sub.Done():
			return session, errors.Join(errors.New("the hub tells nothing more of it"), sub.Err())
		case <-ctx.Done():
			return session, context.Cause(ctx)
		}
	}
}

// startPrompt launches or continues a session.
func startPrompt(ctx context.Context, c *client.Client, o promptOptions, text string) (begun started, err error) {
	if o.from == "" {
		if o.agent == "" {
			o.agent = os.Getenv("DUET_AGENT") // which the hub need not have
		}
		if o.cwd, err = fullPath(o.cwd); err != nil {
			return begun, err
		}
		params := map[string]string{"query": text}
		for name, value := range map[string]string{"agent": o.agent, "working_dir": o.cwd, "permission_mode": o.mode} {
			if value != "" {
				params[name] = value
			}
		}
		begun, _, err = ask[started](ctx, c, "launchSession", params)
		return begun, err
	}
	if o.from == "last" {
		list, _, err := ask[struct{ Sessions []listedSession }](ctx, c, "listSessions", map[string]int{"limit": 1})
		if err != nil {
			return begun, err
		}
		if len(list.Sessions) == 0 {
			return begun, errors.New("there is no session yet to continue")
		}
		o.from = list.Sessions[0].ID
	}
	if o.mode != "" {
		if err := c.Call(ctx, "updateSessionSettings", map[string]string{"session_id": o.from, "permission_mode": o.mode}, nil); err != nil {
			return begun, err
		}
	}
	begun, _, err = ask[started](ctx, c, "continueSession", map[string]string{"session_id": o.from, "query": text})
	return begun, err
}
