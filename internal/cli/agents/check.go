package agents

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"text/tabwriter"

	"github.com/duet-rpc/duet-rpc/internal/agentlink"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/signin"
)

// checkedAgent is an agent as `duet-rpc agents check --json` shows it.
type checkedAgent struct {
	Name string `json:"name"`
	*signin.Report
	Missing []string `json:"missing_keys,omitempty"`
	Error   string   `json:"error,omitempty"`
}

// toCheck are the agents of the names, or those that are installed.
func toCheck(c *config.Config, names []string) ([]config.Agent, error) {
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
		a, err := toAsk(c, name)
		if err != nil {
			return nil, err
		}
		agents = append(agents, a)
	}
	return agents, nil
}

// toAsk is an agent that can be asked about itself.
func toAsk(c *config.Config, name string) (config.Agent, error) {
	a, err := c.Resolve(name)
	if err == nil {
		err = agentlink.Askable(a)
	}
	return a, err
}

// checkAll asks agents, several at once.
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
			report, err := signin.Check(ctx, launch, slog.New(slog.DiscardHandler))
			if err != nil {
				checked[i].Error = err.Error()
				return
			}
			notes().Checked(launch.Name, launch.Command, report)
			checked[i].Report = &report
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
		if a.Report == nil || len(a.Methods) == 0 || a.SignedIn == signin.SignedIn {
			continue
		}
		fmt.Fprintf(out, "\nTo sign in to %s:\n", term.Line(a.Name))
		printMethods(out, a.Name, a.Methods)
	}
	return nil
}

func signedInText(state string) string {
	switch state {
	case signin.SignedIn:
		return "yes"
	case signin.SignedOut:
		return "no"
	case signin.NotNeeded:
		return "not needed"
	}
	return "opens sessions"
}

// printMethods says how each way to sign in is gone.
func printMethods(out io.Writer, agent string, methods []signin.Method) {
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	for _, m := range methods {
		note := ""
		switch {
		case m.Type == signin.TypeTerminal:
			note = " (in a terminal)"
		case len(m.Missing) > 0:
			note = " (needs " + strings.Join(m.Missing, ", ") + ")"
		}
		fmt.Fprintf(table, "  duet-rpc agents login %s --method %s\t%s\n", term.Line(agent), term.Line(term.ShellWord(m.ID)), term.Line(m.Name+note))
	}
	table.Flush()
}
