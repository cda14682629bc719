package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
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

const agentsUsage = "send the prompt to several agents, each in its own worktree: `NAME[@HOST][=MODEL],...`"

// A chosenAgent is one of --agents.
type chosenAgent struct {
	protocol.AttemptAgent
	host string // "": this machine
}

// chosenAgents reads the names, hosts and models of --agents.
func (s *settings) chosenAgents(list []string, mode string) (agents []chosenAgent, err error) {
	for _, text := range list {
		name, model, _ := strings.Cut(text, "=")
		name, host, isAway := strings.Cut(name, "@")
		if name == "" || isAway && host == "" {
			return nil, fmt.Errorf("--agents: %q has no agent's name: write claude,codex or claude=MODEL,claude=OTHER or claude@HOST", strings.Join(list, ","))
		}
		if !isAway && s.Host == "" {
			name, host = s.hostOfAgent(name)
		}
		agents = append(agents, chosenAgent{protocol.AttemptAgent{Agent: name, Model: model, Mode: mode}, host})
	}
	return agents, nil
}

// hostsOf returns the hosts of agents, each once.
func hostsOf(agents []chosenAgent) (hosts []string) {
	for _, a := range agents {
		if a.host != "" && !slices.Contains(hosts, a.host) {
			hosts = append(hosts, a.host)
		}
	}
	return hosts
}

// runAttempts runs one prompt with several agents to their end, and compares the results.
func runAttempts(cmd *cobra.Command, s *settings, o promptOptions, text string) error {
	agents, err := s.chosenAgents(o.agents, o.set.mode)
	if err != nil {
		return err
	}
	if o.worktree != nil && !*o.worktree {
		return errors.New("--agents needs a worktree for each agent: leave out --worktree=false")
	}
	if err := o.gates.Check(); err != nil {
		return err
	}
	hosts := hostsOf(agents)
	switch {
	case len(hosts) == 0:
	case s.Host != "":
		return fmt.Errorf("%s@%s begins with the files of this machine: leave out --host %s", agents[0].Agent, hosts[0], s.Host)
	case o.cwd != "" || len(o.dirs) > 0:
		return errors.New("--cwd and --add-dir name directories of this machine: leave them out beside an agent on a host")
	case len(agents) > mostAttempts || len(agents) < 2:
		return fmt.Errorf("--agents takes 2 to %d agents, got %d", mostAttempts, len(agents))
	}
	view := s.newView(cmd.OutOrStdout(), cmd.ErrOrStderr(), s.JSON)
	w := &attempting{cmd: cmd, settings: s, view: view, options: o, text: text, agents: agents}
	defer w.close()
	if len(hosts) == 0 {
		err = w.startHere()
	} else {
		err = w.startOnHosts()
	}
	if err != nil {
		return turn.InWords(err)
	}
	for _, m := range w.members {
		view.Note(term.Line(m.Label() + " · agent " + m.Agent + " · " + protocol.Value(m.Worktree).Branch))
	}
	first := w.members[0]
	s.recommendSandbox(view.Note, o.yes, first.Mode, first.Sandbox)
	options := attending(w.ctx, s, w.interrupts)
	options.Yes, options.Deny = o.yes, o.deny
	members, interrupted, err := turn.AttendAll(w.ctx, view, w.members, options, w.bring)
	w.bringing.Wait()
	if err != nil {
		return turn.InWords(err)
	}
	if s.JSON {
		err = printResults(w.ctx, cmd.OutOrStdout(), members)
	} else if found, err2 := w.group(members); err2 == nil {
		err = found.show(cmd, s, false)
	} else {
		err = err2
	}
	if err != nil {
		return turn.InWords(err)
	}
	switch {
	case interrupted:
		return exitStatus(term.Status)
	case !slices.ContainsFunc(members, func(m turn.Member) bool { return m.State == domain.Completed }):
		return exitStatus(1)
	}
	return nil
}

// mostAttempts is how many attempts one prompt can have, as a daemon has it.
const mostAttempts = 10

// attempting runs a prompt with several agents, here and on hosts.
type attempting struct {
	cmd      *cobra.Command
	settings *settings
	view     *turn.View
	options  promptOptions
	text     string
	agents   []chosenAgent

	ctx        context.Context
	interrupts <-chan os.Signal
	places     []*attemptPlace
	members    []turn.Member
	id         string // that all attempts have; "": none is on a host
	bringing   sync.WaitGroup
}

// attemptPlace is the daemon of a host, or of this machine, and the repository whose work is there.
type attemptPlace struct {
	*attended
	settings *settings
	away     *host.Away // nil: this machine
	place    *turn.Place
}

func (w *attempting) close() {
	for _, p := range w.places {
		p.Close()
	}
	w.places = nil
}

// open connects to a daemon. The signals and the context of the first one are those of the command.
func (w *attempting) open(on *settings, away *host.Away) (*attemptPlace, error) {
	h, err := openAttended(w.cmd.Context(), &on.Settings, w.view.Note)
	if err != nil {
		return nil, err
	}
	p := &attemptPlace{attended: h, settings: on, away: away}
	p.place = &turn.Place{Host: on.Host, Hub: h.Client, Named: on.named}
	if away == nil {
		p.place.Host = "" // of --host, too: all attempts are there
	}
	p.place.Lost = func() string {
		if h.place.stopped() {
			return ""
		}
		return h.lost()
	}
	p.place.Again = func(ctx context.Context, note func(string)) (*client.Client, error) {
		return h.redial(ctx, note, func(c *client.Client) error { return w.goOn(ctx, c, p.place) })
	}
	w.places = append(w.places, p)
	if w.ctx == nil {
		w.ctx, w.interrupts = h.Context(), h.Interrupts
	}
	return p, nil
}

// startHere starts all attempts with one request.
func (w *attempting) startHere() error {
	p, err := w.open(w.settings, nil)
	if err != nil {
		return err
	}
	start := w.options.startParams(w.text)
	params := protocol.StartAttemptsParams{
		Prompt: w.text, Title: start.Title, WorkingDir: start.WorkingDir, TimeoutMS: start.TimeoutMS,
		AgentSettings: start.AgentSettings, PromptContent: start.PromptContent, Gated: start.Gated,
	}
	for _, a := range w.agents {
		params.Agents = append(params.Agents, a.AttemptAgent)
	}
	launched, _, err := hubclient.AttemptStart(w.ctx, p.Client, params)
	if err != nil {
		return err
	}
	for _, l := range launched.Turns {
		session, _, err := hubclient.Turn(w.ctx, p.Client, l.ID)
		if err != nil {
			return err
		}
		w.members = append(w.members, turn.Member{Turn: session, Place: p.place})
	}
	return nil
}

// bring fetches the work of an attempt on a host, which may vanish while others work.
func (w *attempting) bring(m turn.Member) {
	for _, p := range w.places {
		if p.place == m.Place && p.away != nil {
			hub := m.Hub
			w.bringing.Go(func() { _, _, _ = p.away.Fetch(w.ctx, hub, m.Turn) }) // otherwise land fetches it
		}
	}
}

// goOn continues the sessions of a place that ended with their daemon.
func (w *attempting) goOn(ctx context.Context, c *client.Client, at *turn.Place) error {
	for _, m := range w.members {
		if m.Place != at {
			continue
		}
		session, _, err := hubclient.Turn(ctx, c, m.SessionUUID)
		if err == nil && turn.IsOrphan(session) {
			params := protocol.PromptParams{Session: protocol.Ref(session.ID), Prompt: new(turn.GoOnPrompt(w.text))}
			_, _, err = hubclient.SessionPrompt(ctx, c, params)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// group returns the attempts for a comparison.
func (w *attempting) group(members []turn.Member) (*group, error) {
	g := &group{settings: w.settings, id: w.id, attempts: protocol.AttemptsParams{Session: protocol.Ref(members[0].ID)}}
	if w.id != "" {
		g.attempts = protocol.AttemptsParams{Attempts: w.id}
	}
	return g, g.read(w.ctx, false)
}

// printResults prints how each session ended, as a line of JSON.
func printResults(ctx context.Context, out io.Writer, members []turn.Member) error {
	for _, m := range members {
		last, _, err := hubclient.Turn(ctx, m.Hub, m.SessionUUID) // with gates, a later one
		if err != nil && m.Host != "" {
			last, err = m.Turn, nil // it cannot be reached
		}
		if err == nil {
			r := resultOf(last)
			r.Host = m.Host
			if m.Host != "" {
				r.Turn += "@" + m.Host
			}
			err = printLine(out, r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

const attemptsHelp = `Compare the attempts of several agents at one prompt (duet-rpc prompt --agents): how each
ended, its gates, what it changed since the common commit, its working time and cost.
Without SESSION they are those of the last prompt that had several. Of a host that cannot
be reached, this shows what came here last.
`

func newAttempts(s *settings) *cobra.Command {
	var patch bool
	cmd := &cobra.Command{
		Use: "attempts [SESSION]", Args: atMost("SESSION"), ValidArgsFunction: completeFirst(s, turnCandidates),
		Short:   "Compare the attempts of several agents at one prompt",
		Long:    attemptsHelp + hubStatusHelp,
		Example: "  duet-rpc attempts\n  duet-rpc attempts 12 --patch\n  duet-rpc attempts 1@devbox",
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := term.UntilInterrupted(cmd.Context())
			defer stop()
			g, err := s.groupOf(ctx, args)
			if err == nil {
				err = g.read(ctx, patch)
			}
			if err == nil {
				err = g.show(cmd, s, patch)
			}
			if err != nil && ctx.Err() != nil {
				return term.ErrInterrupted
			}
			return turn.InWords(err)
		},
	}
	cmd.Flags().BoolVarP(&patch, "patch", "p", false, "also show the changes of each")
	return cmd
}

// show prints a comparison.
func (g *group) show(cmd *cobra.Command, s *settings, patch bool) error {
	if s.JSON {
		if g.raw != nil {
			return term.Raw(cmd.OutOrStdout(), g.raw)
		}
		return printLine(cmd.OutOrStdout(), map[string]any{"prompt": g.prompt, "attempts": g.list})
	}
	withGates := slices.ContainsFunc(g.list, func(a attempt) bool { return a.Gates != nil })
	columns := []string{"TURN", "AGENT", "STATE", "FILES", "LINES", "TIME", "COST"}
	if withGates {
		columns = slices.Insert(columns, 3, "GATES")
	}
	t := term.NewTable(cmd.OutOrStdout(), columns...)
	for _, a := range g.list {
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
		if a.Away != "" {
			took = ""
		}
		cells := []string{a.Name, agent, a.State.Words(), files, lines, took, costText(a.Usage.CostUSD)}
		if withGates {
			cells = slices.Insert(cells, 3, gatesText(a.Gates))
		}
		t.Row(cells...)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, a := range g.list {
		if a.Away != "" {
			progress(cmd, s, "%s as it came here %s ago: %s", a.Name, term.Age(a.seen.Active), a.Away)
		}
	}
	if patch {
		var text strings.Builder
		for _, a := range g.list {
			fmt.Fprintf(&text, "\n%s · %s\n%s", a.Name, a.Agent, a.Patch)
			if a.PatchCut {
				fmt.Fprintf(&text, "(the rest is too long: git -C %s diff)\n", protocol.Value(a.Worktree).Dir)
			}
		}
		return printText(cmd.OutOrStdout(), text.String())
	}
	for _, a := range g.list {
		if a.Unknown == "" && !a.Landed && a.Away == "" {
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
