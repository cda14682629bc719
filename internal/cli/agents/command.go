// Package agents is the command of the shell that lists agents, asks them about
// themselves, signs in and out, and adds, updates and removes others.
package agents

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/agentlink"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/signin"
)

// Options are what the command needs of the shell.
type Options struct {
	Config      func() (*config.Config, error)
	Version     string      // of this program
	JSON        func() bool // print JSON
	NoArguments cobra.PositionalArgs
	// AskYes asks on the terminal. An error says no, and what to run again.
	AskYes func(cmd *cobra.Command, question, no, again string) error
	// Working are the tasks of this project that an agent works on, as far as a hub tells.
	Working func(cmd *cobra.Command, agent string) []string
}

// config is the configuration, or an error for people.
func (o Options) config() (*config.Config, error) {
	c, err := o.Config()
	if err != nil {
		return nil, config.Explain(err)
	}
	return c, nil
}

// New makes the command.
func New(o Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "agents",
		Short: "List the agents you can use, and how to get others",
		Long: `List the agents you can use, their versions, whether somebody is signed in, and
how to get other agents. No agent is started for that: who is signed in is what an
agent told when it worked or was asked last, and how long ago that was. "likely"
says that it has told nothing yet, and has a key or a login of its own.
` + "`duet-rpc agents check`" + ` starts agents, and asks them.

Exit status: 0 if they are listed; 1 if the configuration is wrong.`,
		Args: o.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.config()
			if err != nil {
				return err
			}
			list := describe(cmd.Context(), c, o)
			if o.JSON() {
				return term.JSON(cmd.OutOrStdout(), list)
			}
			return printAgents(cmd.OutOrStdout(), list)
		},
	}
	cmd.AddCommand(newCheck(o), newLogin(o), newLogout(o), newAdd(o), newUpdate(o), newRemove(o))
	return cmd
}

const checkHelp = `Start agents, and say their versions, the ways to sign in, and whether somebody
is signed in, as far as they tell. Without a NAME those that are installed are
asked. Each is started in an empty directory, gets no prompt, and is ended after
at most a minute or so.

"opens sessions" is said of an agent that works so far and has not said whether
somebody is signed in: some look only when they get a prompt.

Exit status: 0 if each could be asked; 1 if one could not.`

func newCheck(o Options) *cobra.Command {
	return &cobra.Command{
		Use:               "check [NAME...]",
		Short:             "Start agents, and say their versions and who is signed in",
		Long:              checkHelp,
		ValidArgsFunction: o.complete,
		RunE: func(cmd *cobra.Command, names []string) error {
			c, err := o.config()
			if err != nil {
				return err
			}
			agents, err := toCheck(c, names)
			if err != nil {
				return err
			}
			checked := checkAll(cmd.Context(), c, agents)
			if o.JSON() {
				err = term.JSON(cmd.OutOrStdout(), checked)
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

// complete offers the names of the agents that may be started.
func (o Options) complete(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var names []string
	if c, err := o.Config(); err == nil {
		for _, a := range c.List() {
			if a.Available && a.Trusted {
				names = append(names, a.Name)
			}
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// launch is how the agent of a name is started to be asked.
func (o Options) launch(ctx context.Context, name string) (agentlink.Launch, error) {
	c, err := o.config()
	if err != nil {
		return agentlink.Launch{}, err
	}
	a, err := toAsk(c, name)
	if err != nil {
		return agentlink.Launch{}, err
	}
	launch, _ := agentlink.LaunchOf(ctx, c, a, os.Getenv) // keys that are missing are told by who needs them
	return launch, nil
}

// Login signs in to the agent of a name with the method of an id, in this
// terminal, as long as ctx lasts. What it says goes to out.
func (o Options) Login(ctx context.Context, out *os.File, name, method string) error {
	launch, err := o.launch(ctx, name)
	if err != nil {
		return err
	}
	return login(ctx, out, out, launch, method)
}

const loginHelp = `Sign in to an agent. Without --method its ways to sign in are listed, and the
only one is taken. The agent does that itself, mostly in your browser, or a
program of it does in this terminal; a way that needs a key says what to write
into your config.toml. What the agent learns by that it keeps in files of its
own, a key that it is given may be among it.

Exit status: 0 if you are signed in; 1 if not.`

func newLogin(o Options) *cobra.Command {
	var method string
	cmd := &cobra.Command{
		Use:               "login NAME",
		Short:             "Sign in to an agent",
		Long:              loginHelp,
		Args:              oneAgent,
		ValidArgsFunction: o.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			launch, err := o.launch(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return login(cmd.Context(), os.Stdout, os.Stderr, launch, method)
		},
	}
	cmd.Flags().StringVar(&method, "method", "", "the id of one of the ways to sign in that the agent offers")
	return cmd
}

func newLogout(o Options) *cobra.Command {
	return &cobra.Command{
		Use:   "logout NAME",
		Short: "Sign out of an agent",
		Long: `Sign out of an agent, if it can be told to. Conversations with it that are open
may go on, or end.

Exit status: 0 if it has signed you out; 1 if not.`,
		Args:              oneAgent,
		ValidArgsFunction: o.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			launch, err := o.launch(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if err := signin.Logout(cmd.Context(), launch, slog.New(slog.DiscardHandler)); err != nil {
				return err
			}
			notes().SignedOut(launch.Name, launch.Command)
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s has signed you out.\n", term.Line(launch.Name))
			return err
		},
	}
}
