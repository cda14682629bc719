package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/cli/turn"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

const agentsUsage = "send the prompt to several agents, each in its own worktree: `NAME[=MODEL],...`"

// attemptAgents reads the names and models of --agents.
func attemptAgents(list []string, mode string) (agents []protocol.AttemptAgent, err error) {
	for _, text := range list {
		name, model, _ := strings.Cut(text, "=")
		if name == "" {
			return nil, fmt.Errorf("--agents: %q has no agent's name: write claude,codex or claude=MODEL,claude=OTHER", strings.Join(list, ","))
		}
		agents = append(agents, protocol.AttemptAgent{Agent: name, Model: model, Mode: mode})
	}
	return agents, nil
}

// runAttempts runs one prompt with several agents to their end, and compares the results.
func runAttempts(cmd *cobra.Command, s *settings, o promptOptions, text string) error {
	agents, err := attemptAgents(o.agents, o.set.mode)
	if err != nil {
		return err
	}
	if o.worktree != nil && !*o.worktree {
		return errors.New("--agents needs a worktree for each agent: leave out --worktree=false")
	}
	view := s.newView(cmd.OutOrStdout(), cmd.ErrOrStderr(), s.JSON)
	h, err := openAttended(cmd.Context(), &s.Settings, view.Note)
	if err != nil {
		return err
	}
	defer h.Close()
	ctx, c := h.Context(), h.Client
	if err := o.gates.Check(); err != nil {
		return err
	}
	params := protocol.StartAttemptsParams{
		Prompt: text, Agents: agents, Title: o.title, WorkingDir: o.cwd, TimeoutMS: milliseconds(o.timeout),
		AgentSettings: protocol.AgentSettings{
			AdditionalDirectories: o.dirs, Budget: o.budget.Budget(), Sandbox: protocol.Sandbox(o.sandbox),
		},
		PromptContent: o.with.Content(), Gated: o.gates.Gated(),
	}
	launched, _, err := hubclient.AttemptStart(ctx, c, params)
	if err != nil {
		return turn.InWords(err)
	}
	var sessions []protocol.Turn
	for _, l := range launched.Turns {
		session, _, err := hubclient.Turn(ctx, c, l.ID)
		if err != nil {
			return turn.InWords(err)
		}
		sessions = append(sessions, session)
		view.Note(term.Line(session.Name + " · agent " + session.Agent + " · " + protocol.Value(session.Worktree).Branch))
	}
	s.recommendSandbox(view.Note, o.yes, sessions[0].Mode, sessions[0].Sandbox)
	options := attending(ctx, s, h.Interrupts)
	options.Yes, options.Deny = o.yes, o.deny
	attend := func() (interrupted bool, err error) {
		ctx, cancel := hubclient.WhileConnected(ctx, h.Client)
		defer cancel()
		if sessions, interrupted, err = turn.AttendAll(ctx, h.Client, view, sessions, options); err != nil {
			err = hubclient.OrGone(ctx, err)
		}
		return interrupted, err
	}
	interrupted, err := attend()
	for errors.Is(err, hubclient.ErrHubGone) && !interrupted && !h.place.stopped() {
		view.Note(h.lost())
		if err = h.Again(); err == nil {
			err = hubclient.OrGone(ctx, goOn(ctx, h.Client, sessions, text))
		}
		if err == nil {
			options.Again = true
			interrupted, err = attend()
		}
	}
	if err != nil {
		return turn.InWords(err)
	}
	if s.JSON {
		err = printResults(ctx, cmd.OutOrStdout(), h.Client, sessions)
	} else {
		err = showAttempts(ctx, cmd, s, h.Client, sessions[0].ID, false)
	}
	if err != nil {
		return turn.InWords(err)
	}
	switch {
	case interrupted:
		return exitStatus(term.Status)
	case !slices.ContainsFunc(sessions, func(s protocol.Turn) bool { return s.State == domain.Completed }):
		return exitStatus(1)
	}
	return nil
}

// printResults prints how each session ended, as a line of JSON.
func printResults(ctx context.Context, out io.Writer, c *client.Client, sessions []protocol.Turn) error {
	for _, s := range sessions {
		last, _, err := hubclient.Turn(ctx, c, s.SessionUUID) // with gates, a later one than s
		if err == nil {
			err = printResult(out, last)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// goOn continues the sessions that ended with their hub.
func goOn(ctx context.Context, c *client.Client, sessions []protocol.Turn, text string) error {
	for i := range sessions {
		session, _, err := hubclient.Turn(ctx, c, sessions[i].ID)
		if err == nil && turn.IsOrphan(session) {
			var next protocol.Started
			params := protocol.PromptParams{Session: protocol.Ref(session.ID), Prompt: new(turn.GoOnPrompt(text))}
			if err = c.Call(ctx, "session.prompt", params, &next); err == nil {
				session, _, err = hubclient.Turn(ctx, c, next.ID)
			}
		}
		if err != nil {
			return err
		}
		sessions[i] = session
	}
	return nil
}

const attemptsHelp = `Compare the attempts of several agents at one prompt (duet-rpc prompt --agents): how each
ended, its gates, what it changed since the common commit, its working time and cost.
Without SESSION they are those of the last prompt that had several.
`

func newAttempts(s *settings) *cobra.Command {
	var patch bool
	cmd := &cobra.Command{
		Use: "attempts [SESSION]", Args: atMost("SESSION"), ValidArgsFunction: completeFirst(s, turnCandidates),
		Short:   "Compare the attempts of several agents at one prompt",
		Long:    attemptsHelp + hubStatusHelp,
		Example: "  duet-rpc attempts\n  duet-rpc attempts 12 --patch",
		RunE: func(cmd *cobra.Command, args []string) error {
			return withHub(cmd, s, func(ctx context.Context, c *client.Client) error {
				id, err := attemptOf(ctx, c, args)
				if err != nil {
					return err
				}
				return showAttempts(ctx, cmd, s, c, id, patch)
			})
		},
	}
	cmd.Flags().BoolVarP(&patch, "patch", "p", false, "also show the changes of each")
	return cmd
}

// attemptOf returns the session that the arguments name, by default the last one that is one of several
// attempts.
func attemptOf(ctx context.Context, c *client.Client, args []string) (string, error) {
	if len(args) > 0 {
		return args[0], nil
	}
	sessions, _, err := hubclient.Sessions(ctx, c, protocol.SessionListParams{Filter: "normal", Limit: new(uint(200))})
	if err != nil {
		return "", err
	}
	for _, s := range sessions {
		if s.Attempts != "" {
			return s.ID, nil
		}
	}
	return "", errors.New("no prompt had several agents: duet-rpc prompt --agents NAME,NAME TEXT")
}

// showAttempts prints a comparison.
func showAttempts(ctx context.Context, cmd *cobra.Command, s *settings, c *client.Client, id string, patch bool) error {
	r, raw, err := hubclient.AttemptList(ctx, c, protocol.AttemptsParams{Session: protocol.Ref(id), Patch: patch})
	if err != nil {
		return err
	}
	if s.JSON {
		return term.Raw(cmd.OutOrStdout(), raw)
	}
	withGates := slices.ContainsFunc(r.Attempts, func(a protocol.Attempt) bool { return a.Gates != nil })
	columns := []string{"TURN", "AGENT", "STATE", "FILES", "LINES", "TIME", "COST"}
	if withGates {
		columns = slices.Insert(columns, 3, "GATES")
	}
	t := term.NewTable(cmd.OutOrStdout(), columns...)
	for _, a := range r.Attempts {
		agent := a.Agent
		if a.Model != "" {
			agent += " (" + a.Model + ")"
		}
		files, lines := fmt.Sprint(len(a.Files)+a.More), fmt.Sprintf("+%d -%d", a.Added, a.Removed)
		switch {
		case a.Unknown != "":
			files, lines = "?", a.Unknown
		case a.Landed && len(a.Files) == 0:
			lines = "no change"
		case a.Landed:
			lines += ", landed"
		}
		took := (time.Duration(a.Usage.TimeMS) * time.Millisecond).Round(time.Second).String()
		cells := []string{a.Name, agent, a.State.Words(), files, lines, took, costText(a.Usage.CostUSD)}
		if withGates {
			cells = slices.Insert(cells, 3, gatesText(a.Gates))
		}
		t.Row(cells...)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if patch {
		var text strings.Builder
		for _, a := range r.Attempts {
			fmt.Fprintf(&text, "\n%s · %s\n%s", a.Name, a.Agent, a.Patch)
			if a.PatchCut {
				fmt.Fprintf(&text, "(the rest is too long: git -C %s diff)\n", protocol.Value(a.Worktree).Dir)
			}
		}
		return printText(cmd.OutOrStdout(), text.String())
	}
	for _, a := range r.Attempts {
		if a.Unknown == "" && !a.Landed {
			progress(cmd, s, "land one with: duet-rpc land %s --discard-others; duet-rpc attempts --patch shows the changes", a.Name)
			break
		}
	}
	return nil
}

func gatesText(g *protocol.Gates) string {
	switch {
	case g == nil:
		return ""
	case len(g.Failing) > 0:
		return g.State + ": " + strings.Join(g.Failing, ", ")
	}
	return g.State
}

func costText(usd float64) string {
	if usd == 0 {
		return ""
	}
	return fmt.Sprintf("$%.2f", usd)
}
