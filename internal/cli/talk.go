package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/cli/turn"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

// talking is a session at the terminal, with its commands.
type talking struct {
	settings    *settings
	view        *turn.View
	talk        *turn.Talk
	place       place         // of the project
	set         promptOptions // for the next new session
	recommended bool          // the note about the sandbox was shown, or is not needed
	fork        string        // the turn from which the next prompt forks; "": none

	agent protocol.AgentDescription // as it is known
	files []string                  // for @; nil: not read yet
	read  time.Time                 // when files were read
}

// canTalk reports whether the user can hold a session here: standard input and output are a terminal.
func canTalk(s *settings) bool {
	return !s.JSON && term.IsTerminal(os.Stdin) && term.IsTerminal(os.Stdout)
}

// runTalk shows a session until the user leaves it. o has the settings of a new one, or
// the one to continue.
func runTalk(cmd *cobra.Command, s *settings, o promptOptions) error {
	for {
		err := talkOn(cmd, s, o)
		next, is := errors.AsType[*onAnother](err)
		if !is {
			return err
		}
		s, o = next.settings, next.set
	}
}

// onAnother leaves a session for a new one on another machine.
type onAnother struct {
	settings *settings
	set      promptOptions
}

func (*onAnother) Error() string        { return "the next session is on another machine" }
func (*onAnother) Is(target error) bool { return target == turn.ErrLeave }

// talkOn is runTalk until the user chooses another machine: then the error is an *onAnother.
func talkOn(cmd *cobra.Command, s *settings, o promptOptions) error {
	view := s.newView(cmd.OutOrStdout(), cmd.ErrOrStderr(), false)
	h, err := openAttended(cmd.Context(), &s.Settings, view.Note)
	if err != nil {
		return err
	}
	defer h.Close()
	ctx := h.Context()
	t := &talking{settings: s, view: view, place: h.place, set: o}
	if o.from == chosen {
		if o.from, err = pickSession(ctx, h.Client, view, h.Interrupts); o.from == "" || err != nil {
			return err
		}
	}
	var session protocol.Turn
	if o.from != "" {
		if session, _, err = hubclient.Turn(ctx, h.Client, o.from); err != nil {
			return turn.InWords(err)
		}
		t.set = promptOptions{set: o.set, with: o.with, timeout: o.timeout, budget: o.budget, sandbox: o.sandbox}
	}
	defer t.leaveHost(ctx)
	options := attending(ctx, s, h.Interrupts)
	options.Yes, options.Deny = o.yes, o.deny
	options.SignIn = s.signsIn
	options.Repeat = func(ctx context.Context, after protocol.Turn) (protocol.Turn, error) {
		return startSession(ctx, h.Client, view, promptOptions{from: after.ID}, after.Prompt)
	}
	t.talk = turn.NewTalk(view, session, turn.TalkOptions{
		Options: options, Dir: h.place.root, Shell: remoteShell(h.host), First: o.first, History: earlierPrompts(ctx, h.Client), Footer: t.footer,
		Send: t.send, Command: t.command, NextMode: t.nextMode, Reported: t.reported,
		Ended: func(ctx context.Context, c *client.Client, session protocol.Turn) { _ = s.bring(ctx, c, session) }, // land tries again
		Complete: func(line string, isFirst bool) (int, []term.Candidate) {
			return t.complete(ctx, h.Client, line, isFirst)
		},
	})
	t.describe(ctx, h.Client)
	t.greet(ctx, h.Client, session)
	if w := session.Worktree; w != nil && w.Gone {
		t.leaveWorktree(ctx, h.Client, session)
	}
	for {
		err := t.talk.Run(ctx, h.Client)
		switch {
		case errors.As(err, new(*onAnother)):
			t.goodbye()
			return err
		case errors.Is(err, turn.ErrLeave):
			t.goodbye()
			return nil
		case !errors.Is(err, hubclient.ErrHubGone) || h.place.stopped():
			return turn.InWords(err)
		}
		if err := h.Again(); err != nil {
			return err
		}
	}
}

// leaveHost removes the host that was made for a session that never began.
func (t *talking) leaveHost(ctx context.Context) {
	if t.set.away != nil && t.set.uuid != "" {
		t.set.away.Refuse(t.set.uuid)
		t.set.away.Close(context.WithoutCancel(ctx))
	}
}

// greet says which session this is.
func (t *talking) greet(ctx context.Context, c *client.Client, session protocol.Turn) {
	t.view.Note(term.Line(t.place.name + " · /help lists the commands"))
	if session.ID != "" && (session.Worktree == nil || !session.Worktree.Gone) {
		t.continues(ctx, c, session)
	}
}

// continues shows the end of a session, and says that the next prompt continues it.
func (t *talking) continues(ctx context.Context, c *client.Client, s protocol.Turn) {
	if err := t.showEnd(ctx, c, s); err != nil {
		t.view.Note(turn.InDialogue(err).Error())
	}
	t.view.Note(term.Line("your next prompt continues \"" + term.Short(s.SessionTitle) + "\" after " + s.Name))
}

// itemsShown is how many items of a session are read to show its end.
const itemsShown = 100

// showEnd shows the last turns of a session, as far as they fit on the screen.
func (t *talking) showEnd(ctx context.Context, c *client.Client, s protocol.Turn) error {
	page, _, err := hubclient.SessionItems(ctx, c, protocol.ItemsParams{Session: protocol.Ref(s.ID), Limit: new(uint(itemsShown))})
	if err != nil {
		return err
	}
	items := slices.DeleteFunc(page.Items, func(i *protocol.SessionItem) bool {
		return i.TurnUUID == s.ID && !s.State.Ended() // it is shown from its beginning
	})
	t.view.ShowEnd(turn.Transcript{Items: items}, page.NextBefore > 0, fmt.Sprintf("duet-rpc session show --transcript %d", s.Session))
	return nil
}

// goodbye says how to return to the session.
func (t *talking) goodbye() {
	s := t.talk.Session
	switch {
	case s.ID == "":
		return
	case t.talk.IsBusy():
		t.view.Note(fmt.Sprintf("%s continues without this terminal; back with: duet-rpc prompt --continue %d", s.Name, s.Session))
	default:
		t.view.Note(fmt.Sprintf("back with: duet-rpc prompt --continue %d", s.Session))
	}
}

// footer describes the agent and its settings.
func (t *talking) footer() string {
	s := t.talk.Session
	agent, mode, model := s.Agent, s.Mode, ""
	if s.ID == "" {
		agent, mode, model = t.agent.Agent, t.set.set.mode, t.set.set.model
		if protocol.Value(t.set.worktree) {
			model = strings.TrimSpace(model + " in a worktree")
		}
	} else if now := t.agent.Reported().Model; now != nil {
		model = now.Current
	}
	var parts []string
	if mode == catalog.ModeDefault {
		mode = ""
	}
	for _, part := range []string{agent, t.modeName(mode), t.ownMode(), model} {
		if part != "" && part != "default" {
			parts = append(parts, part)
		}
	}
	if s.Worktree != nil {
		parts = append(parts, s.Worktree.Branch)
	}
	if used, limit := protocol.Value(s.ContextTokens), protocol.Value(s.ContextSize); limit > 0 {
		parts = append(parts, fmt.Sprintf("context %.0f %%", 100*float64(used)/float64(limit)))
	}
	if asks := t.talk.AsksElsewhere(); len(asks) == 1 {
		parts = append(parts, fmt.Sprintf("session %d asks: /resume %d", asks[0], asks[0]))
	} else if len(asks) > 1 {
		parts = append(parts, fmt.Sprintf("%d other sessions ask: /resume %d", len(asks), asks[0]))
	}
	keys := "RET sends, C-d leaves"
	if t.talk.IsBusy() {
		keys = "C-c interrupts, RET queues, C-s sends now"
	}
	return "  " + term.Line(strings.Join(append(parts, keys), " · "))
}

// ownMode returns the mode that the session's agent reports, if it has another name than Duet's
// modes and the mode in force, or "". In some of them it acts without asking.
func (t *talking) ownMode() string {
	s, now := t.talk.Session, t.agent.Reported().Mode
	if s.ID == "" || now == nil || now.Current == s.Mode || slices.Contains(
		[]string{catalog.ModeDefault, catalog.ModeAcceptEdits, catalog.ModeBypass, catalog.ModePlan}, catalog.ModeName(now.Current),
	) {
		return ""
	}
	for _, choice := range now.Choices {
		if choice.ID == now.Current && choice.Name != "" {
			return choice.Name
		}
	}
	return now.Current
}

// modeName returns the name of a mode that clients may request, or its id.
func (t *talking) modeName(id string) string {
	for _, mode := range t.agent.Modes {
		if mode.ID == id && mode.Name != "" {
			return mode.Name
		}
	}
	return id
}

// reported reads what the session's agent has reported, and the mode that is in force now.
func (t *talking) reported(ctx context.Context, c *client.Client) {
	t.describe(ctx, c)
	if t.talk.Session.ID == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, describeWithin)
	defer cancel()
	if now, _, err := hubclient.Turn(ctx, c, t.talk.Session.ID); err == nil {
		t.talk.Session.Mode, t.talk.Session.RequestedMode, t.talk.Session.AgentMode = now.Mode, now.RequestedMode, now.AgentMode
	}
}

// describe reads what is known of the session's agent.
func (t *talking) describe(ctx context.Context, c *client.Client) {
	ctx, cancel := context.WithTimeout(ctx, describeWithin)
	defer cancel()
	agent := cmp.Or(t.set.agent, os.Getenv("DUET_AGENT"))
	if known, err := hubclient.DescribeAgent(ctx, c, agent, t.talk.Session.ID); err == nil {
		t.agent = known
	}
}

// describeWithin is how long the prompt box waits for a description of the agent.
const describeWithin = 500 * time.Millisecond

// send sends a prompt with the files that it mentions.
func (t *talking) send(ctx context.Context, c *client.Client, text string, steer bool) (protocol.Started, error) {
	o := t.set
	if err := o.with.Mentioned(t.settings.root, text, t.view.Note); err != nil {
		return protocol.Started{}, err
	}
	o.from = t.talk.Session.ID
	if o.from == "" && t.fork != "" {
		o.from, o.fork = t.fork, true
	}
	if own := t.talk.Session.Sandbox; o.from != "" && !o.fork && domain.StrongerSandbox(own, o.sandbox) == own {
		o.sandbox = "" // the session has it; a prompt with settings cannot reach a working agent
	}
	o.steer = steer && t.talk.IsBusy()
	if o.from != "" && !o.fork && !o.steer {
		o.from = t.talk.Session.SessionUUID // its last turn, which may not be shown yet
	}
	started, err := startOrContinue(ctx, c, o, text)
	if err != nil && !errors.As(err, new(*client.Error)) {
		t.set.away = nil // the session may have begun: its host stays
	}
	if err == nil { // later prompts have what was set since
		t.set.with, t.set.set, t.fork = turn.AttachFlags{}, agentSettings{}, ""
		if session, _, err := hubclient.Turn(ctx, c, started.ID); err == nil && !t.recommended {
			t.settings.recommendSandbox(t.view.Note, t.set.yes || session.SkipPermissions, session.Mode, session.Sandbox)
			t.recommended = true
		}
		if o.from == "" {
			t.set.worktree, t.set.base, t.set.uuid = nil, "", "" // they were for this session
		}
		noteBeside(t.view, started)
	}
	return started, err
}

// earlierPrompts returns the prompts of people in the project, the newest last.
func earlierPrompts(ctx context.Context, c *client.Client) (prompts []string) {
	turns, _, err := hubclient.Turns(ctx, c, protocol.ListTurnsParams{Limit: new(uint(200))})
	if err != nil {
		return nil // a history is a convenience
	}
	for _, s := range turns {
		if s.Prompt != "" && s.Source != string(domain.SourceTrigger) && !slices.Contains(prompts, s.Prompt) {
			prompts = append(prompts, s.Prompt)
		}
	}
	slices.Reverse(prompts)
	return prompts
}

// talkCommand is a command of a session at the terminal.
type talkCommand struct {
	name, argument, note string
	run                  talkFunc
}

type talkFunc func(t *talking, ctx context.Context, c *client.Client, argument string) error

// afterTurn refuses a command before the first turn.
func afterTurn(run talkFunc) talkFunc {
	return func(t *talking, ctx context.Context, c *client.Client, argument string) error {
		if t.talk.Session.ID == "" {
			return errors.New("there is no turn yet")
		}
		return run(t, ctx, c, argument)
	}
}

// talkCommands returns the commands, in the order in which they are listed.
func talkCommands() []talkCommand {
	return []talkCommand{
		{"help", "", "list the commands and keys", (*talking).help},
		{"new", "", "begin another session", (*talking).begin},
		{"resume", "[ID]", "choose an earlier session, and continue it", (*talking).resume},
		{"agent", "[NAME]", "list the agents, or choose another one", (*talking).chooseAgent},
		{"model", "[NAME]", "list the agent's models, or choose one", (*talking).chooseModel},
		{"mode", "[MODE]", "list the permission modes, or choose one", (*talking).chooseMode},
		{"diff", "", "show the changes of the last turn", afterTurn((*talking).diff)},
		{"review", "", "accept or revert each change", afterTurn((*talking).review)},
		{"fork", "", "begin another session that shares this one up to its last turn", afterTurn((*talking).forkHere)},
		{"rewind", "[ID]", "go back to before the last turn, or another one: files and session", afterTurn((*talking).rewind)},
		{"worktree", "", "have the next new session work in a git worktree, or not", (*talking).inWorktree},
		{"on", "[HOST]", "begin another session on a host, with your commit and files; alone: on this machine", (*talking).on},
		{"land", "[METHOD]", "bring the changes in the worktree to your branch: merge, squash, rebase or patch", afterTurn((*talking).land)},
		{"discard", "", "delete the worktree and its branch", afterTurn((*talking).discard)},
		{"cost", "", "show the time, tokens and cost of the session", afterTurn((*talking).cost)},
		{"title", "TEXT", "name the session", (*talking).title},
		{"exit", "", "leave; the session is kept", (*talking).exit},
	}
}

// command runs a command. ok is false if the agent has one of this name: then it is a prompt.
func (t *talking) command(ctx context.Context, c *client.Client, text string) (ok bool, err error) {
	name, argument, _ := strings.Cut(text, " ")
	commands := talkCommands()
	i := slices.IndexFunc(commands, func(known talkCommand) bool {
		return known.name == name || known.name == "exit" && name == "quit"
	})
	if i >= 0 {
		return true, commands[i].run(t, ctx, c, strings.TrimSpace(argument))
	}
	for _, agents := range t.agent.Reported().Commands {
		if agents.Name == name {
			return false, nil
		}
	}
	if strings.Contains(name, "/") { // a path
		return false, nil
	}
	var near []string
	for _, known := range commands {
		if strings.HasPrefix(known.name, name) || strings.HasPrefix(name, known.name) || len(name) > 2 && strings.Contains(known.name, name[:2]) {
			near = append(near, "/"+known.name)
		}
	}
	text = "there is no command /" + name + "; /help lists them"
	if len(near) > 0 {
		text += "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return false, fmt.Errorf("%w: %s", errNoCommand, text)
}

var errNoCommand = errors.New("nothing was sent")

func (t *talking) help(context.Context, *client.Client, string) error {
	var table pairs
	for _, known := range talkCommands() {
		table.add("/"+strings.TrimSpace(known.name+" "+known.argument), known.note)
	}
	for _, agents := range t.agent.Reported().Commands {
		table.add("/"+agents.Name, agents.Description+" (of the agent)")
	}
	for _, key := range [][2]string{
		{"RET", "send; while the agent works, the prompt waits for the end of its turn"},
		{"C-s", "send at once, if the agent takes prompts while it works; else as the next prompt"},
		{"M-RET, C-j, \\ RET", "a new line"},
		{"TAB", "complete a /command or an @file, which is sent along"},
		{"!COMMAND", "run a command of your shell here; its output goes along with your next prompt (! alone drops it)"},
		{"up, down", "earlier prompts; in an empty box, up takes a queued prompt back"},
		{"C-r", "find an earlier prompt that contains the typed text"},
		{"S-TAB", "the next permission mode: default, acceptEdits, plan"},
		{"C-x C-e", "write the prompt in $VISUAL or $EDITOR"},
		{"C-c, ESC", "interrupt the turn"},
		{"C-d", "leave; the session is kept"},
	} {
		table.add(key[0], key[1])
	}
	return table.print()
}

func (t *talking) begin(ctx context.Context, c *client.Client, _ string) error {
	if s := t.talk.Session; s.ID != "" && t.set.agent == "" {
		t.set.agent = s.Agent
	}
	t.fork = ""
	t.talk.Show(protocol.Turn{})
	t.describe(ctx, c)
	t.view.Note("your next prompt begins another session; /resume goes back")
	return nil
}

func (t *talking) resume(ctx context.Context, c *client.Client, id string) error {
	if id == "" {
		var err error
		if id, err = pickSession(ctx, c, t.view, nil); id == "" || err != nil {
			return err
		}
	}
	session, _, err := hubclient.Turn(ctx, c, id)
	if err != nil {
		return err
	}
	t.fork = ""
	if w := session.Worktree; w != nil && w.Gone {
		t.leaveWorktree(ctx, c, session)
		return nil
	}
	t.talk.Show(session)
	t.describe(ctx, c)
	t.continues(ctx, c, session)
	return nil
}

func (t *talking) chooseAgent(ctx context.Context, c *client.Client, name string) error {
	if name == "" {
		agents, err := hubclient.Agents(ctx, c)
		if err != nil {
			return err
		}
		var table pairs
		for _, a := range agents {
			table.add(a.Name, agentNote(a))
		}
		return table.print()
	}
	if t.talk.Session.ID == "" {
		if _, err := hubclient.DescribeAgent(ctx, c, name, ""); err != nil {
			return err
		}
		t.set.agent = name
		t.describe(ctx, c)
		return nil
	}
	return t.change(ctx, c, protocol.SetSessionParams{Agent: &name}, "Agent: "+name)
}

func (t *talking) chooseModel(ctx context.Context, c *client.Client, name string) error {
	switch {
	case name == "":
		return listCandidates(modelCandidates(t.agent), "the agent lists its models once it has started")
	case t.talk.Session.ID == "":
		t.set.set.model = name
		return nil
	}
	return t.change(ctx, c, protocol.SetSessionParams{Model: &name}, "Model: "+name)
}

func (t *talking) chooseMode(ctx context.Context, c *client.Client, mode string) error {
	switch {
	case mode == "":
		return listCandidates(modeCandidates(t.agent), "")
	case t.talk.Session.ID == "":
		t.set.set.mode = mode
		return nil
	}
	return t.change(ctx, c, protocol.SetSessionParams{Mode: &mode}, "Mode: "+t.modeName(mode))
}

// nextMode changes to the next of Duet's modes that the agent has. None of them lets commands run unasked.
func (t *talking) nextMode(ctx context.Context, c *client.Client) error {
	modes := slices.DeleteFunc([]string{catalog.ModeDefault, catalog.ModeAcceptEdits, catalog.ModePlan}, func(mode string) bool {
		return !slices.ContainsFunc(t.agent.Modes, func(m protocol.Mode) bool { return m.ID == mode })
	})
	if len(modes) == 0 {
		return errors.New("the modes are not known yet; /mode sets one")
	}
	mode := cmp.Or(t.set.set.mode, catalog.ModeDefault)
	if s := t.talk.Session; s.ID != "" {
		mode = s.Mode
	}
	return t.chooseMode(ctx, c, modes[(slices.Index(modes, mode)+1)%len(modes)])
}

// listCandidates prints candidates of a shell's completion.
func listCandidates(list []string, none string) error {
	var table pairs
	for _, candidate := range list {
		name, note, _ := strings.Cut(candidate, "\t")
		table.add(name, note)
	}
	if len(list) == 0 && none != "" {
		return errors.New(none)
	}
	return table.print()
}

// pairs are lines of a name and a note.
type pairs [][2]string

func (p *pairs) add(name, note string) { *p = append(*p, [2]string{name, note}) }

func (p pairs) print() error {
	width := 0
	for _, pair := range p {
		width = max(width, utf8.RuneCountInString(pair[0]))
	}
	for _, pair := range p {
		line := fmt.Sprintf("  %-*s  %s", width, term.Line(pair[0]), term.Line(pair[1]))
		if _, err := fmt.Fprintln(os.Stdout, term.Lines(os.Stdout, line)); err != nil {
			return err
		}
	}
	return nil
}

// change changes a setting of the session. done says which one.
func (t *talking) change(ctx context.Context, c *client.Client, params protocol.SetSessionParams, done string) error {
	params.Session = protocol.Ref(t.talk.Session.ID)
	r, _, err := hubclient.Call[protocol.SetSessionResult](ctx, c, "session.set", params)
	if err != nil {
		return err
	}
	if r.Turn.ID == t.talk.Session.ID {
		t.talk.Session = r.Turn
	}
	t.describe(ctx, c)
	if !r.Live {
		done += ", from the next prompt on"
	}
	t.view.Note(term.Line(done))
	return nil
}

func (t *talking) diff(ctx context.Context, c *client.Client, _ string) error {
	return printDiff(ctx, c, os.Stdout, t.talk.Session.ID)
}

// review asks about each open change of the last turn.
func (t *talking) review(ctx context.Context, c *client.Client, _ string) error {
	return reviewChanges(ctx, c, t.view, t.talk.Session, func(ctx context.Context) (string, error) {
		return t.talk.Ask(
			ctx, turn.InPrompt(reviewKeys),
		)
	})
}

// rewind restores the files to their state before a turn, and has the next prompt continue the
// session from there.
func (t *talking) rewind(ctx context.Context, c *client.Client, id string) error {
	if err := t.stillWorks(); err != nil {
		return err
	}
	session, _, err := hubclient.Turn(ctx, c, cmp.Or(id, t.talk.Session.ID))
	if err != nil {
		return err
	}
	params := protocol.RewindParams{Turn: protocol.Ref(session.ID), Preview: true}
	r, _, err := hubclient.SessionRewind(ctx, c, params)
	if err != nil {
		return err
	}
	if params.Preview = false; r.Checkpoint {
		showRewind(t.view, session, r)
		n := restoredBy(r)
		question, words := rewindQuestion(n)+" [y] Yes", "y"
		if n == 0 {
			question = "Go back in the session? [y] Yes"
		}
		if n < len(r.Files) {
			question, words = question+", [a] All of them", words+"a"
		}
		if len(r.Files) > 0 {
			question, words = question+", [k] Keep the files", words+"k"
		}
		answer, err := t.talk.Ask(ctx, question+", [n] No: ")
		if answer = strings.ToLower(answer); err != nil || answer == "" || !strings.Contains(words, answer[:1]) {
			return err
		}
		if params.All = answer[0] == 'a'; answer[0] != 'k' && (n > 0 || params.All) {
			if r, _, err = hubclient.SessionRewind(ctx, c, params); err != nil {
				return err
			}
			showRewound(t.view, session, protocol.RewindResult{Files: r.Files}, false)
		}
	} else {
		t.view.Note(notRecorded(session))
	}
	t.set.agent, t.fork = session.Agent, r.ForkTurn
	t.talk.Show(protocol.Turn{})
	t.describe(ctx, c)
	t.view.Note(fmt.Sprintf("your next prompt continues from before %s; /resume %d returns to the session as it was", session.Name,
		session.Session))
	t.talk.Write(r.Prompt)
	return nil
}

// stillWorks is the error of a command that needs the end of the turn, or nil.
func (t *talking) stillWorks() error {
	if !t.talk.IsBusy() {
		return nil
	}
	return fmt.Errorf("%s still works: wait for its end, or interrupt it", t.talk.Session.Name)
}

func (t *talking) forkHere(ctx context.Context, c *client.Client, _ string) error {
	if err := t.stillWorks(); err != nil {
		return err
	}
	s := t.talk.Session
	t.set.agent, t.fork = s.Agent, s.ID
	t.talk.Show(protocol.Turn{})
	t.describe(ctx, c)
	t.view.Note(fmt.Sprintf("your next prompt begins a session that shares this one up to %s; /resume %d returns", s.Name, s.Session))
	return nil
}

func (t *talking) inWorktree(context.Context, *client.Client, string) error {
	t.set.worktree = new(!protocol.Value(t.set.worktree))
	text := "the next session works in " + term.Line(t.place.name)
	if *t.set.worktree {
		text = "the next session works in its own git worktree; /land brings its changes to your branch"
	}
	if t.talk.Session.ID != "" {
		text += "; /new begins it"
	}
	t.view.Note(text)
	return nil
}

// on leaves for a new session on a host, or on this machine.
func (t *talking) on(ctx context.Context, _ *client.Client, name string) error {
	own, set := *t.settings, t.set
	set.from, set.first, set.worktree, set.base, set.uuid, set.away = "", "", nil, "", "", nil
	if name == "" {
		if own.Host == "" {
			return errors.New("the agent works on this machine: /on HOST begins a session on a host; `duet-rpc hosts` lists them")
		}
		own.Host, own.Root = "", own.Here
		return &onAnother{&own, set}
	}
	if own.Host != "" {
		own.Host, own.Root = "", own.Here
	}
	if err := own.sendTo(ctx, name, &set, t.view, t.talk.Signals); err != nil {
		return turn.InWords(err)
	}
	return &onAnother{&own, set}
}

func (t *talking) land(ctx context.Context, c *client.Client, method string) error {
	r, _, err := t.settings.land(ctx, c, t.talk.Session, protocol.LandParams{Method: protocol.LandMethod(method)})
	if err == nil {
		showLanded(t.view, r)
	}
	return err
}

func (t *talking) discard(ctx context.Context, c *client.Client, _ string) error {
	session := t.talk.Session
	r, _, err := t.settings.discard(ctx, c, session, false, func(l protocol.Losses) error {
		showLosses(t.view, l)
		answer, err := t.talk.Ask(ctx, "Discard the worktree with this work? [y] Yes, [n] No: ")
		if err == nil && !strings.HasPrefix(strings.ToLower(answer), "y") {
			err = errors.New("nothing was discarded")
		}
		return err
	})
	if err == nil {
		showDiscarded(t.view, t.settings.Host, r)
		if r.Host == protocol.HostRemoved {
			t.talk.Show(protocol.Turn{}) // it is no session to come back to
			return t.on(ctx, c, "")
		}
		t.leaveWorktree(ctx, c, session)
	}
	return err
}

// leaveWorktree has the next prompt continue a session whose worktree is gone in the project's
// directory.
func (t *talking) leaveWorktree(ctx context.Context, c *client.Client, s protocol.Turn) {
	t.set.agent, t.fork = s.Agent, s.ID
	t.talk.Show(protocol.Turn{})
	t.describe(ctx, c)
	t.view.Note("your next prompt continues this session in " + term.Line(t.place.name))
}

func (t *talking) cost(ctx context.Context, c *client.Client, _ string) error {
	u, _, err := hubclient.Call[protocol.UsageResult](ctx, c, "usage.get",
		protocol.UsageParams{Session: protocol.Ref(t.talk.Session.ID), By: "model"})
	if err != nil {
		return err
	}
	return printTable(os.Stdout, "model", u)
}

func (t *talking) title(ctx context.Context, c *client.Client, title string) error {
	switch {
	case title == "":
		return errors.New("/title needs a title: /title TEXT")
	case t.talk.Session.ID == "":
		t.set.title = title
	default:
		params := protocol.RenameSessionParams{Session: protocol.Ref(t.talk.Session.ID), Title: title}
		if _, _, err := hubclient.SessionRename(ctx, c, params); err != nil {
			return err
		}
	}
	t.view.Note(term.Line("Renamed: " + title))
	return nil
}

func (t *talking) exit(context.Context, *client.Client, string) error { return turn.ErrLeave }

// complete returns the candidates for a command, its argument or a file.
func (t *talking) complete(ctx context.Context, c *client.Client, line string, isFirst bool) (replaces int, list []term.Candidate) {
	if command, isCommand := strings.CutPrefix(line, "/"); isFirst && isCommand {
		name, argument, hasArgument := strings.Cut(command, " ")
		if hasArgument {
			return len(argument), matching(t.arguments(ctx, c, name), argument)
		}
		for _, known := range talkCommands() {
			text := "/" + known.name
			if known.argument != "" {
				text += " "
			}
			list = append(list, term.Candidate{Text: text, Note: known.note})
		}
		for _, agents := range t.agent.Reported().Commands {
			list = append(list, term.Candidate{Text: "/" + agents.Name + " ", Note: agents.Description})
		}
		return len(line), matching(list, line)
	}
	word := line[strings.LastIndexAny(line, " \t")+1:]
	if path, isFile := strings.CutPrefix(word, "@"); isFile {
		return len(word), t.matchingFiles(path)
	}
	return 0, nil
}

// matching returns the candidates that begin with a word.
func matching(list []term.Candidate, word string) (fit []term.Candidate) {
	for _, candidate := range list {
		if strings.HasPrefix(candidate.Text, word) {
			fit = append(fit, candidate)
		}
	}
	return fit
}

// arguments returns the candidates for the argument of a command.
func (t *talking) arguments(ctx context.Context, c *client.Client, command string) (list []term.Candidate) {
	var words []string
	switch command {
	case "agent":
		ctx, cancel := context.WithTimeout(ctx, describeWithin)
		defer cancel()
		agents, _ := hubclient.Agents(ctx, c) // without them nothing is offered
		for _, a := range agents {
			words = append(words, a.Name+"\t"+agentNote(a))
		}
	case "rewind":
		ctx, cancel := context.WithTimeout(ctx, describeWithin)
		defer cancel()
		turns, _, _ := hubclient.Turns(ctx, c, protocol.ListTurnsParams{Session: protocol.Ref(t.talk.Session.ID), Limit: new(uint(200))})
		for _, s := range turns {
			words = append(words, s.Name+"\t"+term.Short(s.Prompt))
		}
	case "on":
		words, _ = completeHosts(nil, nil, "")
	case "land":
		words = protocol.LandMethod("").Accepted()[1:]
	case "model":
		words = modelCandidates(t.agent)
	case "mode":
		words = modeCandidates(t.agent)
	}
	for _, word := range words {
		name, note, _ := strings.Cut(word, "\t")
		list = append(list, term.Candidate{Text: name, Note: note})
	}
	return list
}

// Limits of the completion of files.
const (
	mostFiles     = 50_000
	mostFileFits  = 50
	filesAreFresh = 10 * time.Second
)

// matchingFiles returns the project's files whose path contains a text, those whose name begins
// with it first.
func (t *talking) matchingFiles(text string) (list []term.Candidate) {
	if t.place.root == "" { // the files are on a host
		return nil
	}
	if t.files == nil || time.Since(t.read) > filesAreFresh {
		t.files, t.read = filesBelow(t.place.root), time.Now()
	}
	text = strings.ToLower(text)
	var others []term.Candidate
	for _, path := range t.files {
		lower := strings.ToLower(path)
		switch {
		case !strings.Contains(lower, text):
			continue
		case strings.HasPrefix(lower, text), strings.HasPrefix(filepath.Base(lower), text):
			list = append(list, term.Candidate{Text: "@" + path + " "})
		default:
			others = append(others, term.Candidate{Text: "@" + path + " "})
		}
	}
	list = append(list, others...)
	return list[:min(len(list), mostFileFits)]
}

// filesBelow lists the files of a project by their paths, without hidden directories and those
// of packages.
func filesBelow(root string) (files []string) {
	_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || len(files) >= mostFiles {
			return filepath.SkipDir
		}
		name := entry.Name()
		switch {
		case !entry.IsDir() && !strings.ContainsAny(name, " \t\n"):
			if below, err := filepath.Rel(root, path); err == nil {
				files = append(files, below)
			}
		case entry.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "node_modules" || name == "vendor"):
			return filepath.SkipDir
		}
		return nil
	})
	return files
}

// agentNote describes an agent in a list.
func agentNote(a domain.Agent) string {
	if a.Host != "" {
		return a.Title + ", on " + a.Host
	}
	if !a.Available {
		return a.Title + ", not installed"
	}
	return a.Title
}
