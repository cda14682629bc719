package agents

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/cli/output"
	"github.com/duet-rpc/duet-rpc/internal/config"
)

// A listed agent is one as `duet-rpc agents --json` shows it.
type listed struct {
	config.Description
	Added *origin `json:"added,omitempty"`
}

// An origin is where an agent came from that was added.
type origin struct {
	From    string `json:"from"`
	ID      string `json:"id"`
	Version string `json:"version"`
	Via     string `json:"via"`
}

// describe describes the agents, with where those came from that were added.
func describe(c *config.Config) []listed {
	records, err := readRecords()
	list := []listed{}
	for _, d := range c.Describe() {
		l := listed{Description: d}
		if err == nil && d.Source == config.SourceUser {
			if r, found := records.Find(d.Name); found {
				l.Added = &origin{r.From, r.ID, r.Version, r.Via}
			}
		}
		list = append(list, l)
	}
	return list
}

// printAgents prints a table; * marks the default.
func printAgents(out io.Writer, agents []listed) error {
	rows := [][]string{{"", "AGENT", "STATE", "SOURCE", "PROGRAM"}}
	for _, a := range agents {
		mark, state, program := "", "available", output.Quoted(a.Path)
		if a.Default {
			mark = "*"
		}
		if !a.Available {
			state, program = "not found", "→ "+a.Install
		}
		if a.CLI != "" {
			state, program = "needs adapter", fmt.Sprintf("→ %s (%s alone does not speak the Agent Client Protocol)", a.Install, output.Quoted(a.CLI))
		}
		if !a.Trusted {
			state, program = "not trusted", "→ look at it with `duet-rpc trust`"
		}
		rows = append(rows, []string{mark, a.Name, state, a.Source, program})
		if from := a.Added; from != nil {
			rows = append(rows, []string{"", "", "", "", fmt.Sprintf("%s %s (%s) from %s", from.ID, from.Version, from.Via, output.Quoted(from.From))})
		}
	}
	return output.Listing(out, rows)
}

// oneAgent is the check of arguments that are the name of an agent.
func oneAgent(cmd *cobra.Command, args []string) error {
	if len(args) != 1 || args[0] == "" {
		return fmt.Errorf("%s takes the name of an agent, got %q; `duet-rpc agents` lists them", cmd.CommandPath(), args)
	}
	return nil
}
