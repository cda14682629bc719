package cli

import (
	"cmp"
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
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/cli/turn"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/host"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

const promptHelp = `Run one prompt with an agent, and show what it does until it ends.

It runs in the project's daemon, which is started if none runs. All clients of the
daemon can see it and answer its questions.

The agent's text goes to standard output as it comes; its tools, questions and
changes of files go to standard error. One key answers a question: y allows, n denies,
t denies and asks you why, s allows the same for the rest of the session, p in the
whole project, e lets you edit the tool's input first, in $VISUAL or $EDITOR (if the
agent supports that), and v shows a question that is too long for the screen, with
$PAGER or less. What you typed before a question was shown is discarded. --yes
allows everything, --deny denies everything. Without a terminal and without either
flag, every question is denied.

Characters that would control the terminal, change the direction of text or be
invisible are written out, such as <U+202E>. If standard output is a pipe or a
file, it gets the agent's words unchanged.

Without a configured agent the demo agent answers; ` + "`duet-rpc agents`" + ` lists
others, ` + "`duet-rpc demo-agent --help`" + ` the words that it knows.

Without a prompt, a terminal opens a session: prompts are written in a box at
the bottom, also while the agent works. /help lists its commands and keys.

The arguments are the prompt, and the data of a pipe is their context. Without
arguments, or with - alone, the data is the prompt. If no data arrives for 5 s, the
arguments go alone: editors and CI leave unused pipes open. With - behind the
arguments it waits longer, as in: make | duet-rpc prompt "Why?" -

The session is kept: continue it with --continue and its number, such as 12, or with
-c, the last one. --continue 12.3 continues from the end of that turn. --fork 12 starts
another session that shares all turns of session 12, and --fork 12.3 its first three.

--background starts the turn, or queues it if no slot is free, prints its number, such
as 12.1, and ends. --wait shows the turn to its end. Both leave its questions to other
clients, and the turn goes on if you interrupt the command.

With --json each event is a line of JSON on standard output. The last line is
{"kind":"result",…} with session, turn, state, text, usage and cost_usd, or
{"kind":"error","message":…}. With --agents, each attempt has such a line, and claude@devbox
is an agent on a host, which begins with your files as with --on. --background
prints the started turn alone, and --wait the result alone. --output-schema FILE asks
for an answer that is JSON of that schema, checks it, and asks once more if it does not
fit; -o FILE writes the last message, or that JSON, to a file.

` + turn.Help + `
With --gate COMMAND the agent continues until the command succeeds. It runs after each
turn, where the agent works, and its complaints are the next prompt, until it passes
or --max-iterations turns have ended (docs/gates.md).

Exit status: 0 if the agent completed, and the gates pass; 1 if it failed or
another client ended it; 4 if gates still fail; 130 if you interrupted it (C-c;
press it twice to end at once).`

// promptOptions are the flags of the command.
type promptOptions struct {
	agent, cwd, from string
	set              agentSettings
	with             turn.AttachFlags
	title            string
	dirs             []string
	yes, deny, last  bool
	background, wait bool   // leave the questions to other clients
	steer            bool   // a working agent gets the prompt at once, if it can
	worktree         *bool  // nil: as configured
	on               string // the host; "": that of --host, or this machine
	base, uuid       string // of the next session, which begins with files of this machine on a host
	away             *host.Away
	here             bool     // continue a session of a host on this machine
	sandbox          string   // the level; "": as configured
	agents           []string // for several attempts
	first            string   // opens a session with this prompt
	opens            bool     // a prompt in the arguments opens a session, if there is a terminal
	fork             bool     // start another session from the turn from
	priority         int
	answer           decisionFlags
	timeout          time.Duration
	budget           limitFlags
	gates            gateFlags
}

func newPromptCommand(s *settings) *cobra.Command {
	var o promptOptions
	var fork string
	cmd := &cobra.Command{
		Use: "prompt [TEXT...]", Annotations: begins(),
		Short: "Run one prompt with an agent, and answer its questions here",
		Long:  promptHelp,
		Example: "  duet-rpc prompt \"Say hello\"\n  duet-rpc prompt -c \"And now the tests\"\n  duet-rpc prompt --background --agent claude \"Fix the build\"\n  " +
			"git diff | duet-rpc prompt --mode plan \"Review this\"",
		RunE: func(cmd *cobra.Command, args []string) error {
			if fork != "" {
				o.from, o.fork = fork, true
			}
			return inJSON(cmd, s, preparePrompt(cmd, s, o, args))
		},
	}
	f := cmd.Flags()
	agentFlag(cmd, s, &o.agent, "run the agent `NAME` (default: default_agent, else the first that is found, else demo)")
	f.StringVarP(&o.cwd, "cwd", "C", "", "have the agent work in `DIR` (default: the project's root)")
	f.StringVar(&o.from, "continue", "", "continue the session `ID`, such as 12; without an id, at the end, choose one; -c continues the last")
	f.BoolVarP(&o.last, "last", "c", false, "continue the session that was started last")
	_ = f.MarkHidden("last") // the usage of --continue has -c
	f.StringVar(&fork, "fork", "", "start another session that shares the turns of the session `ID` to its end, or to that of a turn")
	f.Var((*durationValue)(&o.timeout), "timeout", "how long the agent may take, such as 10m (default: limits.turn_timeout)")
	f.BoolVarP(&o.yes, "yes", "y", false, "allow everything that the agent asks")
	f.BoolVar(&o.deny, "deny", false, "deny everything that the agent asks")
	f.BoolVarP(&o.background, "background", "b", false, "print the number of the turn, and end while it works; its questions stay open")
	f.BoolVar(&o.wait, "wait", false, "leave the questions to other clients, and wait for their answers")
	f.BoolVar(&o.steer, "steer", false,
		"with --continue: send it to the agent while it works, if the agent supports that; else it is the next prompt")
	f.IntVar(&o.priority, "priority", 0, "of prompts that wait for a slot, the one with the highest `N` starts first")
	f.StringVar(&o.title, "title", "", "call the session `TITLE`")
	worktreeFlag(cmd, &o.worktree)
	f.StringVar(&o.on, "on", "", "send your commit and files to the host `NAME`, and run the agent in a worktree there")
	_ = cmd.RegisterFlagCompletionFunc("on", completeHosts)
	f.BoolVar(&o.here, "here", false, "with --fork 12@HOST: continue it on this machine, from what came here last")
	sandboxFlag(cmd, &o.sandbox)
	f.StringSliceVar(&o.agents, "agents", nil, agentsUsage)
	f.StringArrayVar(&o.dirs, "add-dir", nil, "let the agent use `DIR`, too; may be given several times")
	f.BoolVar(&o.opens, openFlag, false, "open a session with the prompt")
	_ = f.MarkHidden(openFlag)
	o.answer.Add(cmd)
	o.budget.Add(cmd)
	o.gates.Add(cmd)
	o.with.Add(cmd)
	directories(cmd, "cwd", "add-dir")
	o.set.addFlags(cmd, s, func(ctx context.Context, c *client.Client, cmd *cobra.Command, args []string) (protocol.AgentDescription, error) {
		if o.from == "" {
			return knownByFlag(ctx, c, cmd, args)
		}
		from, err := hubclient.LastTurn(ctx, c, o.from)
		if err != nil {
			return protocol.AgentDescription{}, err
		}
		return hubclient.DescribeAgent(ctx, c, "", from)
	})
	for _, name := range []string{"continue", "fork"} {
		_ = cmd.RegisterFlagCompletionFunc(name, completeAll(s, turnCandidates))
	}
	cmd.MarkFlagsMutuallyExclusive("yes", "deny", "background", "wait")
	cmd.MarkFlagsMutuallyExclusive("fork", "steer")
	for _, name := range []string{"agents", "cwd", "add-dir"} { // of directories and agents here
		cmd.MarkFlagsMutuallyExclusive("on", name)
	}
	for _, name := range []string{"agents", "cwd", "title", "add-dir", "worktree", "on"} { // flags of a new session
		for _, of := range []string{"continue", "last", "fork"} {
			cmd.MarkFlagsMutuallyExclusive(of, name)
		}
	}
	cmd.MarkFlagsMutuallyExclusive("continue", "last", "fork")
	cmd.MarkFlagsMutuallyExclusive("continue", "agent")
	cmd.MarkFlagsMutuallyExclusive("last", "agent")
	for _, name := range []string{"output-schema", "output-last-message"} { // they need the end of the turn
		cmd.MarkFlagsMutuallyExclusive("background", name)
		cmd.MarkFlagsMutuallyExclusive("wait", name)
	}
	for _, name := range []string{"agent", "model", "option", "output-schema", "output-last-message", "background", "wait", "priority"} { // of one agent
		cmd.MarkFlagsMutuallyExclusive("agents", name)
	}
	return cmd
}

// preparePrompt reads the prompt from the arguments and input, and runs it.
func preparePrompt(cmd *cobra.Command, s *settings, o promptOptions, args []string) error {
	isLeft := o.background || o.wait // the questions are left to other clients
	switch {
	case o.last:
		o.from = "last"
	case o.from == chosen && (isLeft || !canTalk(s)):
		return errors.New("--continue needs an id here: there is no terminal to choose a session on; `duet-rpc session list` lists them")
	}
	if o.steer && o.from == "" {
		return errors.New("--steer needs the session whose agent works: --continue ID, or -c for the last one")
	}
	if err := o.follow(s); err != nil {
		return err
	}
	if o.opens && canTalk(s) && len(o.agents) == 0 && !isLeft {
		o.first, args = strings.Join(args, " "), nil
	}
	if len(args) == 0 && canTalk(s) && len(o.agents) > 0 {
		return errors.New("--agents needs a prompt in the arguments: several agents cannot talk in one terminal")
	}
	if len(args) == 0 && canTalk(s) && !isLeft && !cmd.Flags().Changed("output-schema") && !cmd.Flags().Changed("output-last-message") && !cmd.Flags().Changed("gate") {
		if err := o.with.Read(cmd, s.root, nil); err != nil {
			return err
		}
		if err := o.makeAbsolute(s); err != nil {
			return err
		}
		if err := o.send(cmd, s); err != nil {
			return err
		}
		return runTalk(cmd, s, o)
	}
	if o.yes && len(args) == 0 {
		return errors.New(`--yes needs a prompt in the arguments, because the data of a pipe may come from anywhere: say what to do with it, such as: git diff | duet-rpc prompt --yes "Review this" (or - if it is the whole prompt)`)
	}
	if err := o.gates.Check(); err != nil {
		return err
	}
	text, err := promptWithInput(cmd.InOrStdin(), args, func(note string) { fmt.Fprintf(cmd.ErrOrStderr(), "— %s\n", note) }, usual) // also with --json
	if err != nil {
		return err
	}
	if err := o.with.Read(cmd, s.root, args); err != nil {
		return err
	}
	if text, err = o.answer.Asking(text); err != nil {
		return err
	}
	if err := o.makeAbsolute(s); err != nil {
		return err
	}
	if err := o.send(cmd, s); err != nil {
		return err
	}
	if o.away != nil {
		defer o.away.Close(context.WithoutCancel(cmd.Context()))
	}
	switch {
	case isLeft:
		return leavePrompt(cmd, s, o, text)
	case len(o.agents) > 0:
		return runAttempts(cmd, s, o, text)
	}
	return runPrompt(cmd, s, o, text)
}

// follow sets the host of --on to that of the agent of a new session, if it has one in the configuration.
func (o *promptOptions) follow(s *settings) error {
	if s.Host != "" || o.from != "" || o.here || len(o.agents) > 0 {
		return nil
	}
	there, host := s.hostOfAgent(cmp.Or(o.agent, os.Getenv("DUET_AGENT")))
	switch {
	case host == "", o.on != "" && o.on != host:
		return nil
	case o.cwd != "" || len(o.dirs) > 0:
		return fmt.Errorf("the agent works on the host %s: leave out --cwd and --add-dir, which name directories of this machine", host)
	}
	o.agent, o.on = there, host
	return nil
}

// hostOfAgent returns the host of an agent by the configuration, and its name there; "" is the default agent. host is ""
// for one of this machine, and for one that is not known: the daemon says what is wrong.
func (s *settings) hostOfAgent(name string) (there, host string) {
	c, err := s.Config()
	if err != nil {
		return name, ""
	}
	a, err := c.Resolve(name)
	if err != nil {
		return name, ""
	}
	return a.OnHost()
}

// send sends the files of this machine to the host of --on, or takes what came from a host.
func (o *promptOptions) send(cmd *cobra.Command, s *settings) error {
	if o.here {
		return s.continueHere(cmd, o)
	}
	if o.on == "" {
		return nil
	}
	signals, done := term.Interrupts()
	defer done()
	return s.sendTo(cmd.Context(), o.on, o, s.newView(cmd.OutOrStdout(), cmd.ErrOrStderr(), s.JSON), signals)
}

// makeAbsolute makes the directories of the options absolute.
func (o *promptOptions) makeAbsolute(s *settings) (err error) {
	if o.cwd, err = s.fullPath(o.cwd); err == nil {
		o.dirs, err = s.fullDirectories(o.dirs)
	}
	return err
}

// runPrompt runs one prompt to its end and returns the exit status as an error.
func runPrompt(cmd *cobra.Command, s *settings, o promptOptions, text string) error {
	view := s.newView(cmd.OutOrStdout(), cmd.ErrOrStderr(), s.JSON)
	h, err := openAttended(cmd.Context(), &s.Settings, view.Note)
	if err != nil {
		return err
	}
	defer h.Close()
	ctx := h.Context()
	p := &prompting{place: h.place, settings: s, view: view, options: o, text: text, interrupts: h.Interrupts}
	toItsEnd := func() (interrupted bool, err error) {
		interrupted, err = p.attend(ctx, h.Client)
		for err == nil && p.hubGone {
			view.Note(h.lost())
			if err = h.Again(); err == nil {
				interrupted, err = p.attend(ctx, h.Client)
			}
		}
		return interrupted, err
	}
	interrupted, err := toItsEnd()
	var unfit error // the reason why the answer does not fit the schema
	if err == nil && p.session.State == domain.Completed {
		if unfit = o.answer.Take(p.session); unfit != nil {
			view.Spent(p.session)
			view.Note("the answer: " + unfit.Error() + "; asking once more")
			p.options, p.text, p.session = promptOptions{from: p.session.ID, yes: o.yes, deny: o.deny}, o.answer.schema.Again(unfit), protocol.Turn{}
			if interrupted, err = toItsEnd(); err == nil {
				unfit = o.answer.Take(p.session)
			}
		}
	}
	if err != nil {
		return turn.InWords(err)
	}
	session := p.session
	if err := s.bring(ctx, h.Client, session); err != nil && ctx.Err() == nil {
		view.Note("its work is not here yet: " + turn.InWords(err).Error())
	}
	view.End(session)
	if s.JSON {
		if err := printResult(cmd.OutOrStdout(), session); err != nil {
			return err
		}
	}
	if err := statusOf(session, interrupted); err != nil || unfit != nil {
		return cmp.Or(err, unfit)
	}
	return o.answer.Write()
}

// prompting runs a prompt to its end, across restarts of the hub.
type prompting struct {
	place      place
	settings   *settings
	view       *turn.View
	options    promptOptions
	text       string
	interrupts <-chan os.Signal

	session     protocol.Turn // the zero value until it has started
	recommended bool          // the note about the sandbox was shown, or is not needed
	hubGone     bool          // the hub ended before the turn did, and the user did not stop it
}

// attend starts a turn, or continues the turn of a hub that has ended, and shows it to its
// end.
func (p *prompting) attend(ctx context.Context, c *client.Client) (interrupted bool, err error) {
	ctx, cancel := hubclient.WhileConnected(ctx, c)
	defer cancel()
	defer func() {
		if err != nil {
			err = hubclient.OrGone(ctx, err)
		}
		if p.session.ID == "" || interrupted || !errors.Is(err, hubclient.ErrHubGone) && (err != nil || !turn.IsOrphan(p.session)) {
			return
		}
		if !p.place.stopped() {
			p.hubGone, err = true, nil
		}
	}()
	again := p.hubGone
	p.hubGone = false
	if again {
		if p.session, _, err = hubclient.Turn(ctx, c, p.session.ID); err != nil {
			return false, err
		}
	}
	if !again || turn.IsOrphan(p.session) {
		o, text := p.options, p.text
		if again {
			p.view.Spent(p.session)
			o, text, again = promptOptions{from: p.session.ID}, turn.GoOnPrompt(p.text), false
		}
		if o.from != "" {
			if o.from, err = hubclient.LastTurn(ctx, c, o.from); err != nil {
				return false, err
			}
			if o.from != p.session.ID { // otherwise the agent has ended and asks again
				turn.ShowLeftOpen(ctx, c, o.from, p.view)
			}
		}
		started, err := startSession(ctx, c, p.view, o, text)
		if err != nil {
			return false, err // the turn that has ended may be continued once more
		}
		p.session = started
		if !p.recommended {
			p.settings.recommendSandbox(p.view.Note, p.options.yes || started.SkipPermissions, started.Mode, started.Sandbox)
			p.recommended = true
		}
	}
	options := attending(ctx, p.settings, p.interrupts)
	options.Yes, options.Deny, options.Again = p.options.yes, p.options.deny, again
	if !p.settings.JSON && term.IsTerminal(os.Stdin) && term.IsTerminal(os.Stderr) {
		options.SignIn = p.settings.signsIn
		options.Repeat = func(ctx context.Context, after protocol.Turn) (protocol.Turn, error) {
			return startSession(ctx, c, p.view, promptOptions{from: after.ID, with: p.options.with}, p.text)
		}
	}
	p.session, interrupted, err = turn.Attend(ctx, c, p.view, p.session, options)
	return interrupted, err
}

// leavePrompt starts or continues a session, and leaves its questions to other clients.
func leavePrompt(cmd *cobra.Command, s *settings, o promptOptions, text string) error {
	return withHub(cmd, s, func(ctx context.Context, c *client.Client) error {
		started, err := startPrompt(ctx, c, o, text)
		if err != nil {
			return err
		}
		session, _, err := hubclient.Turn(ctx, c, started.ID)
		if err == nil && o.away != nil {
			err = o.away.Note(ctx, session)
		}
		if err != nil {
			return err
		}
		if o.set.mode != "" {
			s.recommendSandbox(func(note string) { fmt.Fprintf(cmd.ErrOrStderr(), "— %s\n", note) }, false, session.Mode, session.Sandbox)
		}
		return printStarted(ctx, cmd, s, c, started, o.wait)
	})
}

// startSession starts or continues a session, and returns its turn.
func startSession(ctx context.Context, c *client.Client, view *turn.View, o promptOptions, text string) (protocol.Turn, error) {
	started, err := startPrompt(ctx, c, o, text)
	if err != nil {
		return protocol.Turn{}, err
	}
	noteBeside(view, started)
	session, _, err := hubclient.Turn(ctx, c, started.ID)
	if err == nil && o.away != nil {
		err = o.away.Note(ctx, session)
	}
	return session, err
}

func noteBeside(view *turn.View, started protocol.Started) {
	if words := hubclient.BesideWords(started.Beside); words != "" {
		view.Note(term.Line(words))
	}
}

// startPrompt starts or continues a session.
func startPrompt(ctx context.Context, c *client.Client, o promptOptions, text string) (protocol.Started, error) {
	started, err := startOrContinue(ctx, c, o, text)
	if o.away != nil && errors.As(err, new(*client.Error)) {
		o.away.Refuse(o.uuid)
	}
	return started, err
}

func startOrContinue(ctx context.Context, c *client.Client, o promptOptions, text string) (started protocol.Started, err error) {
	if err := o.gates.Check(); err != nil {
		return started, err
	}
	if o.from != "" {
		return continuePrompt(ctx, c, o, text)
	}
	options, err := agentOptionsValue(o.set.options)
	if err != nil {
		return started, err
	}
	params := o.startParams(text)
	params.Options = options
	params.Agent = cmp.Or(o.agent, os.Getenv("DUET_AGENT")) // the hub may not have this variable
	started, _, err = hubclient.SessionStart(ctx, c, params)
	return started, err
}

// startParams returns the parameters of a new session, without its agent and the agent's options.
func (o promptOptions) startParams(text string) protocol.StartParams {
	return protocol.StartParams{
		Prompt: text, Title: o.title, WorkingDir: o.cwd, Mode: o.set.mode, Model: o.set.model, Worktree: o.worktree,
		Base: o.base, SessionUUID: o.uuid, TimeoutMS: milliseconds(o.timeout),
		AgentSettings: protocol.AgentSettings{
			AdditionalDirectories: o.dirs, Budget: o.budget.Budget(), Sandbox: protocol.Sandbox(o.sandbox),
		},
		PromptContent: o.with.Content(), Gated: o.gates.Gated(), Priority: o.priority,
	}
}

// continuePrompt continues the session that o names.
func continuePrompt(ctx context.Context, c *client.Client, o promptOptions, text string) (started protocol.Started, err error) {
	next := protocol.NextTurn{
		TimeoutMS: milliseconds(o.timeout), PromptContent: o.with.Content(),
		AgentSettings: protocol.AgentSettings{Budget: o.budget.Budget(), Sandbox: protocol.Sandbox(o.sandbox)}, Gated: o.gates.Gated(), Priority: o.priority,
	}
	if o.fork {
		params := protocol.ForkParams{
			Turn: protocol.Ref(o.from), Prompt: text, Agent: o.agent, Mode: o.set.mode, Model: o.set.model, NextTurn: next,
		}
		if params.Options, err = agentOptionsValue(o.set.options); err != nil {
			return started, err
		}
		started, _, err = hubclient.SessionFork(ctx, c, params)
		return started, err
	}
	if !o.set.isEmpty() {
		settings, err := o.set.params(o.from)
		if err != nil {
			return started, err
		}
		if _, _, err := hubclient.Call[json.RawMessage](ctx, c, "session.set", settings); err != nil {
			return started, err
		}
	}
	params := protocol.PromptParams{Session: protocol.Ref(o.from), Prompt: &text, NextTurn: next}
	if o.steer {
		params.Deliver = "steer"
	}
	started, _, err = hubclient.SessionPrompt(ctx, c, params)
	return started, err
}

// milliseconds returns a duration for the hub; nil for none.
func milliseconds(d time.Duration) *uint {
	if d <= 0 {
		return nil
	}
	return new(uint(d.Milliseconds()))
}

// inJSON also prints an error as a line of JSON if --json is given.
func inJSON(cmd *cobra.Command, s *settings, err error) error {
	var status exitStatus
	if s.JSON && err != nil && !errors.As(err, &status) && !errors.Is(err, term.ErrInterrupted) {
		line, _ := json.Marshal(map[string]string{"kind": "error", "message": err.Error()}) // strings cannot fail
		fmt.Fprintf(cmd.OutOrStdout(), "%s\n", line)
	}
	return err
}

// chosen stands for the id of a session that the user chooses on the terminal.
const chosen = "?"

// agentSettings are the flags with an agent's settings.
type agentSettings struct {
	mode, model string
	options     []string // ID=VALUE
}

// addFlags adds the flags. known returns the agent whose modes, models and options they
// complete.
func (a *agentSettings) addFlags(cmd *cobra.Command, s *settings, known func(ctx context.Context, c *client.Client, cmd *cobra.Command, args []string) (protocol.AgentDescription, error)) {
	f := cmd.Flags()
	f.StringVar(&a.mode, "mode", "",
		"the agent's permissions: `MODE` is "+strings.Join(hubclient.DuetModes, ", ")+", or one of the agent's own modes")
	f.StringVarP(&a.model, "model", "m", "", "have the agent use `MODEL`")
	f.StringArrayVar(&a.options, "option", nil, "set an option of the agent, `ID=VALUE`; may be given several times")
	for name, list := range map[string]func(k protocol.AgentDescription) []string{
		"mode": modeCandidates, "model": modelCandidates, "option": optionCandidates,
	} {
		_ = cmd.RegisterFlagCompletionFunc(name, func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
			words, directive := completeAll(s, func(ctx context.Context, c *client.Client) []string {
				k, err := known(ctx, c, cmd, args)
				if err != nil {
					return nil
				}
				return list(k)
			})(cmd, args, word)
			if words == nil && name == "mode" { // no hub is running
				words = hubclient.DuetModes
			}
			return words, directive
		})
	}
}

// params returns the parameters of session.set.
func (a *agentSettings) params(session string) (protocol.SetSessionParams, error) {
	options, err := agentOptionsValue(a.options)
	return protocol.SetSessionParams{Session: protocol.Ref(session), Mode: ifGiven(a.mode), Model: ifGiven(a.model), Options: options}, err
}

// ifGiven returns a value for the parameters of a method; nil if it is empty.
func ifGiven(value string) *string {
	if value == "" {
		return nil
	}
	return &value
}

// isEmpty reports whether none of the flags was given.
func (a *agentSettings) isEmpty() bool { return a.mode == "" && a.model == "" && len(a.options) == 0 }

// knownByFlag describes the agent that --agent names.
func knownByFlag(ctx context.Context, c *client.Client, cmd *cobra.Command, _ []string) (protocol.AgentDescription, error) {
	agent, _ := cmd.Flags().GetString("agent") // "" without this flag
	return hubclient.DescribeAgent(ctx, c, agent, "")
}

// knownByID describes the agent that --agent names, or that of the session that is the first argument.
func knownByID(ctx context.Context, c *client.Client, cmd *cobra.Command, args []string) (protocol.AgentDescription, error) {
	if agent, _ := cmd.Flags().GetString("agent"); len(args) == 0 || agent != "" {
		return knownByFlag(ctx, c, cmd, nil)
	}
	return hubclient.DescribeAgent(ctx, c, "", args[0])
}

// The prompt: arguments and standard input.

// most limits standard input, in bytes.
const most = 8 << 20

// readPromptText returns the prompt: the arguments, or standard input if there are none or
// only "-".
func readPromptText(in io.Reader, args []string) (string, error) {
	text := strings.Join(args, " ")
	if text == "" || text == "-" {
		if term.IsTerminal(os.Stdin) {
			return "", errors.New(`give the agent a prompt, such as: duet-rpc prompt "Say hello"`)
		}
		var err error
		if text, err = readAll(in); err != nil {
			return "", err
		}
	}
	if strings.TrimSpace(text) == "" {
		return "", errors.New("the prompt is empty")
	}
	return text, nil
}

// patience is how long a pipe may be silent when there are arguments. After silently, a
// message says that the command waits. After atMost, it continues without the pipe. Editors
// and CI systems pass on pipes to which no process ever writes.
type patience struct{ silently, atMost time.Duration }

// usual gives a program time to start printing. For a slower program, a "-" after the
// arguments waits longer.
var usual = patience{2 * time.Second, 5 * time.Second}

// promptWithInput returns the prompt: the arguments, and data from a pipe or a file as their
// context. It waits for a silent pipe only if the last argument is "-". note prints a message
// to the user.
func promptWithInput(in io.Reader, args []string, note func(string), p patience) (string, error) {
	wanted := len(args) > 1 && args[len(args)-1] == "-"
	if wanted {
		args = args[:len(args)-1]
	}
	text := strings.Join(args, " ")
	switch {
	case strings.TrimSpace(text) == "" || text == "-":
		defer time.AfterFunc(p.silently, func() { note("reading the prompt from standard input") }).Stop()
		return readPromptText(in, args)
	case wanted && term.IsTerminal(in):
		return "", errors.New(`"-" reads a pipe or a file, but standard input is a terminal`)
	case !wanted && !isPiped(in):
		return text, nil
	case !wanted && !awaitInput(in, note, p):
		note(fmt.Sprintf("standard input had no data for %d s, so the prompt is sent without it; a - after the prompt waits for the "+
			"data", int(p.atMost.Seconds())))
		return text, nil
	}
	waiting := time.AfterFunc(p.silently, func() {
		note("reading standard input to its end; it goes along with the prompt")
	})
	context, err := readAll(in)
	waiting.Stop()
	if err != nil {
		return "", err
	}
	return joinPrompt(text, context), nil
}

// awaitInput waits for data or the end of input, and reports whether either came in time.
func awaitInput(in io.Reader, note func(string), p patience) bool {
	f, ok := in.(*os.File)
	if !ok || term.WaitReadable(f, p.silently) {
		return true
	}
	note("waiting for standard input, which goes along with the prompt; </dev/null goes without it")
	return term.WaitReadable(f, p.atMost-p.silently)
}

// joinPrompt joins an instruction and its context. A tag that does not occur in the context
// marks its beginning and end.
func joinPrompt(instruction, context string) string {
	if strings.TrimSpace(context) == "" {
		return instruction
	}
	mark, lower := "stdin", strings.ToLower(context)
	for n := 2; hasTag(lower, mark); n++ {
		mark = fmt.Sprintf("stdin-%d", n)
	}
	return fmt.Sprintf("%s\n\n<%s>\n%s\n</%s>", instruction, mark, strings.TrimRight(context, "\n"), mark)
}

// hasTag reports whether a text has a tag with this name, which an agent could take for the
// beginning or the end of the context. It also finds <name > and <name/>.
func hasTag(text, name string) bool {
	for _, begin := range []string{"<" + name, "</" + name} {
		for rest := text; ; {
			_, after, found := strings.Cut(rest, begin)
			if !found {
				break
			}
			if after == "" || !strings.ContainsAny(after[:1], "-0123456789abcdefghijklmnopqrstuvwxyz_") {
				return true
			}
			rest = after
		}
	}
	return false
}

// isPiped reports whether the input is a pipe or a file: not a terminal, /dev/null, or a
// socket of the parent process.
func isPiped(in io.Reader) bool {
	f, ok := in.(*os.File)
	if !ok {
		return true
	}
	info, err := f.Stat()
	return err == nil && (info.Mode().IsRegular() || info.Mode()&os.ModeNamedPipe != 0)
}

func readAll(in io.Reader) (string, error) {
	all, err := io.ReadAll(io.LimitReader(in, most+1))
	if err != nil {
		return "", fmt.Errorf("reading the prompt from standard input: %w", err)
	}
	if len(all) > most {
		return "", fmt.Errorf("the prompt on standard input is longer than %d bytes", most)
	}
	return string(all), nil
}
