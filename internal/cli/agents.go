package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/agentlink"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/internal/shellcommand"
)

// duet-rpc agents: list and check agents, sign in and out, add, update and remove agents.

// explainedConfig returns the configuration, or an error to show to the user.
func (s *settings) explainedConfig() (*config.Config, error) {
	c, err := s.Config()
	if err != nil {
		return nil, config.Explain(err)
	}
	return c, nil
}

// workingTurns returns the agent's running turns in this project; none if no hub runs.
func workingTurns(cmd *cobra.Command, s *settings, agent string) (turns []string) {
	_ = connected(cmd, s, func(ctx context.Context, c *client.Client) error {
		list, _, err := hubclient.Turns(ctx, c, protocol.ListTurnsParams{
			Agent: agent, States: []domain.State{domain.Starting, domain.Running, domain.WaitingInput, domain.Interrupting},
		})
		for _, t := range list {
			turns = append(turns, t.Name)
		}
		return err
	})
	return turns
}

// newAgentsCommand returns the agents command.
func newAgentsCommand(s *settings) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "agents",
		Short: "List the agents you can use, and how to get others",
		Long: `List the agents that you can use, their versions, whether you are signed in, and how
to get others. No agent is started: the sign-in is each agent's last report, with its
age. "likely" means that the agent has not reported yet, but has a key or a login.
` + "`duet-rpc agents check`" + ` starts agents and asks them.

Exit status: 0 if they are listed; 1 if the configuration is wrong.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := s.explainedConfig()
			if err != nil {
				return err
			}
			list := describe(cmd.Context(), c, s)
			if s.JSON {
				return term.JSON(cmd.OutOrStdout(), map[string]any{"agents": list})
			}
			return printAgents(cmd.OutOrStdout(), list)
		},
	}
	cmd.AddCommand(newCheck(s), newLogin(s), newLogout(s), newAdd(s), newUpdate(s), newRemove(s))
	return cmd
}

const checkHelp = `Start agents, and show their versions, the ways to sign in, and whether you are
signed in, if they report it. Without a NAME all installed agents are asked. Each
is started in an empty directory, gets no prompt, and is ended after about a minute
at most.

"opens sessions" means that an agent starts, and has not reported whether you are
signed in: some agents check only when they get a prompt.

Exit status: 0 if each could be asked; 1 if one could not.`

func newCheck(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:               "check [NAME...]",
		Short:             "Start agents, and print their versions and sign-ins",
		Long:              checkHelp,
		ValidArgsFunction: s.completeAgents,
		RunE: func(cmd *cobra.Command, names []string) error {
			c, err := s.explainedConfig()
			if err != nil {
				return err
			}
			agents, err := agentsToCheck(c, names)
			if err != nil {
				return err
			}
			checked := checkAll(cmd.Context(), c, agents)
			if s.JSON {
				err = term.JSON(cmd.OutOrStdout(), map[string]any{"agents": checked})
			} else {
				err = printChecked(cmd.OutOrStdout(), checked)
			}
			failed := 0
			for _, a := range checked {
				if a.Error != "" {
					failed++
				}
			}
			if err == nil && failed > 0 {
				err = fmt.Errorf("%s could not be asked", term.Count(failed, "agent"))
			}
			return err
		},
	}
}

// completeAgents offers the names of the agents that may be started.
func (s *settings) completeAgents(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var names []string
	if c, err := s.Config(); err == nil {
		for _, a := range c.List() {
			if a.Available && a.Trusted {
				names = append(names, a.Name)
			}
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// launchOf returns how to start the named agent.
func (s *settings) launchOf(ctx context.Context, name string) (agentlink.Launch, error) {
	c, err := s.explainedConfig()
	if err != nil {
		return agentlink.Launch{}, err
	}
	a, err := resolveAskable(c, name)
	if err != nil {
		return agentlink.Launch{}, err
	}
	launch, _ := agentlink.LaunchOf(ctx, c, a, os.Getenv) // the sign-in reports missing keys
	return launch, nil
}

// login signs in to the named agent in this terminal with the method of the given id, until
// ctx ends. Output goes to out. If the agent has several methods and none is named, it lists them
// on out and returns a [agentlink.UnknownMethodError].
func (s *settings) login(ctx context.Context, out *os.File, name, method string) error {
	launch, err := s.launchOf(ctx, name)
	if err != nil {
		return err
	}
	return login(ctx, out, out, launch, method)
}

const loginHelp = `Sign in to an agent. Without --method its ways to sign in are listed; if there is
only one, it is used. The agent signs you in itself, usually in your browser, or one
of its programs does in this terminal. A way that needs a key says what to write into
your config.toml. The agent keeps the login in its own files, and perhaps the key.

Exit status: 0 if you are signed in; 1 if not.`

func newLogin(s *settings) *cobra.Command {
	var method string
	cmd := &cobra.Command{
		Use:               "login NAME",
		Short:             "Sign in to an agent",
		Long:              loginHelp,
		Args:              oneAgent,
		ValidArgsFunction: s.completeAgents,
		RunE: func(cmd *cobra.Command, args []string) error {
			launch, err := s.launchOf(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return login(cmd.Context(), os.Stdout, os.Stderr, launch, method)
		},
	}
	cmd.Flags().StringVar(&method, "method", "", "the id of one of the ways to sign in that the agent offers")
	return cmd
}

func newLogout(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:   "logout NAME",
		Short: "Sign out of an agent",
		Long: `Sign out of an agent, if it supports that. Its open sessions may continue or
end.

Exit status: 0 if it has signed you out; 1 if not.`,
		Args:              oneAgent,
		ValidArgsFunction: s.completeAgents,
		RunE: func(cmd *cobra.Command, args []string) error {
			launch, err := s.launchOf(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if err := agentlink.Logout(cmd.Context(), launch, slog.New(slog.DiscardHandler)); err != nil {
				return err
			}
			notes().SignedOut(launch.Name, launch.Command)
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s has signed you out.\n", term.Line(launch.Name))
			return err
		},
	}
}

// notes returns the stored results of earlier sign-in checks; none if they cannot be stored.
func notes() *agentlink.Notes {
	n, _ := agentlink.DefaultNotes(os.Getenv)
	return n
}

// listed is an agent as `duet-rpc agents --json` shows it.
type listed struct {
	domain.Agent
	Added    *origin  `json:"added,omitempty"`
	KeptBack []string `json:"kept_back,omitempty"` // names of variables with keys that it does not get
}

// origin says where an added agent came from.
type origin struct {
	From    string `json:"from"`
	ID      string `json:"id"`
	Version string `json:"version"`
	Via     string `json:"via"`
}

// describe describes the agents, including the origin of the added ones.
func describe(ctx context.Context, c *config.Config, s *settings) []listed {
	records, err := readRecords()
	list := []listed{}
	for _, d := range agentlink.Describe(ctx, c, agentlink.DescribeOptions{Notes: notes(), Version: s.Version, Getenv: os.Getenv, Run: true}) {
		l := listed{Agent: d}
		if d.Available && !c.Agents[d.Name].IsDemo() {
			l.KeptBack = c.Agents[d.Name].KeptBack(os.Environ())
		}
		if err == nil && d.Source == config.SourceUser {
			if r, found := records.Find(d.Name); found {
				l.Added = &origin{r.From, r.ID, r.Version, r.Via}
				if l.Available {
					l.AgentStatus.Version = cmp.Or(l.AgentStatus.Version, r.Version)
				}
			}
		}
		list = append(list, l)
	}
	return list
}

// programColumns is the terminal width from which the table has a column for programs.
const programColumns = 100

// printAgents prints a table; * marks the default agent. On a terminal, install commands stand
// below the table, because the table would cut them off.
func printAgents(out io.Writer, agents []listed) error {
	columns, _, below := term.Size(out)
	heading := []string{"", "AGENT", "STATE", "SOURCE", "VERSION", "SIGNED IN"}
	programs := !below || columns >= programColumns
	if programs {
		heading = append(heading, "PROGRAM")
	}
	table := term.NewTable(out, heading...)
	table.Spare("SOURCE")
	var notes []string
	for _, a := range agents {
		mark, program, note := "", a.Path, ""
		if a.Default {
			mark = "*"
		}
		state, todo := stateOf(a)
		switch {
		case todo != "" && below:
			program, note = "", todo
		case todo != "":
			program = "→ " + todo
		case a.Path != "":
			program = term.Quoted(a.Path)
		}
		row := []string{mark, a.Name, state, a.Source, cmp.Or(a.Version, "-"), signedInCell(a.AgentStatus), program}
		table.Row(row[:len(heading)]...)
		if from := a.Added; from != nil {
			added := fmt.Sprintf("%s %s (%s) from %s", from.ID, from.Version, from.Via, term.Quoted(from.From))
			if below {
				note = added
			} else {
				table.Row("", "", "", "", "", "", added)
			}
		}
		if note != "" {
			notes = append(notes, term.Line(a.Name)+": "+term.Line(note))
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	notes = append(notes, signInNotes(agents)...)
	notes = append(notes, keptBackNotes(agents)...)
	if len(notes) > 0 {
		_, err := fmt.Fprintf(out, "\n%s\n", term.Lines(out, strings.Join(notes, "\n")))
		return err
	}
	return nil
}

// stateOf returns whether an agent can be used, and if not what to do about it.
func stateOf(a listed) (state, todo string) {
	switch {
	case !a.Trusted:
		return "not trusted", "look at it with `duet-rpc trust`"
	case a.Host != "":
		return "on " + a.Host, ""
	case a.CLI != "":
		return "needs adapter", fmt.Sprintf("%s (%s alone does not speak the Agent Client Protocol)", a.Install, term.Quoted(a.CLI))
	case !a.Available:
		return "not found", a.Install
	}
	if a.Sandbox != "" {
		return "available, " + a.Sandbox + " sandbox", ""
	}
	return "available", ""
}

// signedInCell returns what is known about the agent's sign-in, and since when.
func signedInCell(s domain.AgentStatus) string {
	cell := ""
	switch s.SignedIn {
	case "":
		return "-"
	case domain.SignInUnknown:
		if s.Hint != "" {
			return "likely"
		}
		return "not known"
	case domain.SignInAnswered:
		cell = "answered"
	default:
		cell = signedInText(s.SignedIn)
	}
	if s.ToldAt != nil {
		cell += ", " + term.Age(*s.ToldAt) + " ago"
	}
	return cell
}

// signInNotes explain what suggests that an agent is signed in, and how to check it.
func signInNotes(agents []listed) (notes []string) {
	var unknown []string
	for _, a := range agents {
		switch {
		case a.SignedIn == domain.SignedOut:
			notes = append(notes,
				fmt.Sprintf("%s: sign in with `duet-rpc agents login %s`", term.Line(a.Name), term.Line(shellcommand.Argument(a.Name))))
		case a.SignedIn == domain.SignInUnknown && a.Hint != "":
			notes = append(notes, fmt.Sprintf("%s: likely signed in, %s", term.Line(a.Name), term.Line(a.Hint)))
		}
		if a.SignedIn == domain.SignInUnknown {
			unknown = append(unknown, term.Line(shellcommand.Argument(a.Name)))
		}
	}
	if len(unknown) > 0 {
		notes = append(notes, "Whether you are signed in: `duet-rpc agents check "+strings.Join(unknown, " ")+"` asks.")
	}
	return notes
}

// keptBackNotes name the variables with keys that agents do not get.
func keptBackNotes(agents []listed) (notes []string) {
	for _, a := range agents {
		if len(a.KeptBack) > 0 {
			notes = append(notes,
				fmt.Sprintf("%s: does not get your variables %s; its env_from can name them", term.Line(a.Name), strings.Join(a.KeptBack, ", ")))
		}
	}
	return notes
}

// oneAgent requires one argument, the name of an agent.
func oneAgent(cmd *cobra.Command, args []string) error {
	if len(args) != 1 || args[0] == "" {
		return fmt.Errorf("`%s` takes the name of one agent; `duet-rpc agents` lists them", cmd.CommandPath())
	}
	return nil
}

// checkedAgent is an agent as `duet-rpc agents check --json` shows it.
type checkedAgent struct {
	Name string `json:"name"`
	*domain.AgentReport
	Missing []string `json:"missing_keys,omitempty"`
	Error   string   `json:"error,omitempty"`
}

// agentsToCheck returns the named agents, or all installed ones if no name is given.
func agentsToCheck(c *config.Config, names []string) ([]config.Agent, error) {
	var agents []config.Agent
	if len(names) == 0 {
		for _, a := range c.List() {
			if a.Available && a.Trusted && a.Driver == config.DriverACP {
				agents = append(agents, a)
			}
		}
		return agents, nil
	}
	for _, name := range names {
		a, err := resolveAskable(c, name)
		if err != nil {
			return nil, err
		}
		agents = append(agents, a)
	}
	return agents, nil
}

// resolveAskable returns the named agent if it is installed and can be checked.
func resolveAskable(c *config.Config, name string) (config.Agent, error) {
	a, err := c.Resolve(name)
	if err == nil {
		err = agentlink.Askable(a)
	}
	return a, err
}

// checkAll checks the agents, several at once.
func checkAll(ctx context.Context, c *config.Config, agents []config.Agent) []checkedAgent {
	const atOnce = 4
	room := make(chan struct{}, atOnce)
	checked := make([]checkedAgent, len(agents))
	var work sync.WaitGroup
	for i, a := range agents {
		work.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			launch, missing := agentlink.LaunchOf(ctx, c, a, os.Getenv)
			checked[i] = checkedAgent{Name: a.Name, Missing: missing}
			report, err := agentlink.CheckSignIn(ctx, launch, slog.New(slog.DiscardHandler))
			if err != nil {
				checked[i].Error = err.Error()
				return
			}
			notes().Checked(launch.Name, launch.Command, report)
			checked[i].AgentReport = &report
		})
	}
	work.Wait()
	return checked
}

func printChecked(out io.Writer, checked []checkedAgent) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "AGENT\tVERSION\tSIGNED IN\t")
	for _, a := range checked {
		if a.Error != "" {
			fmt.Fprintf(table, "%s\t\tcannot be asked\t%s\n", term.Line(a.Name), term.Line(a.Error))
			continue
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", term.Line(a.Name), term.Line(a.Version), signedInText(a.SignedIn), term.Line(a.Account))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, a := range checked {
		for _, m := range a.Missing {
			fmt.Fprintf(out, "\n%s does not get %s\n", term.Line(a.Name), term.Line(m))
		}
		if a.AgentReport == nil || len(a.Methods) == 0 || a.SignedIn == domain.SignedIn {
			continue
		}
		fmt.Fprintf(out, "\nTo sign in to %s:\n", term.Line(a.Name))
		printMethods(out, a.Name, a.Methods)
	}
	return nil
}

func signedInText(state string) string {
	switch state {
	case domain.SignedIn:
		return "yes"
	case domain.SignedOut:
		return "no"
	case domain.SignInNotNeeded:
		return "not needed"
	}
	return "opens sessions"
}

// printMethods prints each way to sign in and how to use it.
func printMethods(out io.Writer, agent string, methods []domain.SignInMethod) {
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	for _, m := range methods {
		note := ""
		switch {
		case m.Type == domain.SignInInTerminal:
			note = " (in a terminal)"
		case len(m.Missing) > 0:
			note = " (needs " + strings.Join(m.Missing, ", ") + ")"
		}
		fmt.Fprintf(table, "  duet-rpc agents login %s --method %s\t%s\n", term.Line(agent), term.Line(shellcommand.Argument(m.ID)),
			term.Line(m.Name+note))
	}
	table.Flush()
}

// login signs in with the method of the given id, or lists the methods if id is empty. The
// result goes to out, progress to side.
func login(ctx context.Context, out, side io.Writer, launch agentlink.Launch, id string) error {
	quiet := slog.New(slog.DiscardHandler)
	report, err := agentlink.CheckSignIn(ctx, launch, quiet)
	if err != nil {
		return err
	}
	method, err := agentlink.FindMethod(report, id)
	if err != nil {
		if id == "" && len(report.Methods) > 1 {
			printMethods(out, launch.Name, report.Methods)
		}
		return err
	}
	if len(method.Missing) > 0 {
		return &agentlink.MissingError{Agent: launch.Name, Variables: method.Missing}
	}
	if method.Type == domain.SignInInTerminal {
		if err := runLogin(ctx, out, side, launch, method); err != nil {
			return err
		}
	} else {
		how := "it may open your browser; C-c cancels"
		if method.Type == domain.SignInByVariable {
			how = "it may keep the login in its own files"
		}
		fmt.Fprintf(side, "%s: %s; %s\n", term.Line(launch.Name), term.Line(method.Name), how)
		if err := agentlink.Authenticate(ctx, launch, method.ID, quiet); err != nil {
			return err
		}
	}
	if report, err = agentlink.CheckSignIn(ctx, launch, quiet); err != nil {
		return err
	}
	if report.SignedIn == domain.OpensSessions { // the user has just signed in
		notes().Authenticated(launch.Name, launch.Command)
	} else {
		notes().Checked(launch.Name, launch.Command, report)
	}
	if report.SignedIn == domain.SignedOut {
		return fmt.Errorf("%s still reports that you are not signed in: %s", launch.Name, report.Account)
	}
	_, err = fmt.Fprintln(out, strings.TrimSpace(term.Line(fmt.Sprintf("You are signed in to %s. %s", launch.Name, report.Account))))
	return err
}

// runLogin runs the program of a sign-in method in this terminal.
func runLogin(ctx context.Context, out, side io.Writer, launch agentlink.Launch, method domain.SignInMethod) error {
	if !term.IsTerminal(os.Stdin) {
		return &agentlink.TerminalError{Agent: launch.Name, Method: method.ID}
	}
	path, argv, env, err := agentlink.Terminal(launch, method)
	if err != nil {
		return err
	}
	fmt.Fprintf(side, "Running %s\n", term.Line(strings.Join(argv, " ")))
	program := exec.CommandContext(ctx, path, argv[1:]...)
	program.Env, program.Stdin, program.Stdout, program.Stderr = env, os.Stdin, out, side
	// The first C-c goes to the program, which shares the terminal, so it is not killed.
	program.Cancel = func() error { return nil }
	err = program.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return fmt.Errorf("you are not signed in to %s: its program ended with %s", launch.Name, exit.ProcessState)
	}
	return err
}
