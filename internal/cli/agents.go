package cli

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/cli/output"
	"github.com/duet-rpc/duet-rpc/internal/config"
)

// listedAgent is an agent as `duet-rpc agents --json` shows it.
type listedAgent struct {
	Name      string `json:"name"`
	Title     string `json:"title"`
	Driver    string `json:"driver"`
	Default   bool   `json:"default"`
	Available bool   `json:"available"`
	Path      string `json:"path,omitempty"`
	Install   string `json:"install,omitempty"` // where it is not available
	Source    string `json:"source"`
	Trusted   bool   `json:"trusted"`
}

func newAgentsCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:   "agents",
		Short: "List the agents you can use, and how to get others",
		Long: `List the agents you can use, and how to get others.

Exit status: 0 if they are listed; 1 if the configuration is wrong.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := s.Config()
			if err != nil {
				return config.Explain(err)
			}
			agents := listAgents(c)
			if s.json {
				return output.JSON(cmd.OutOrStdout(), agents)
			}
			return printAgents(cmd.OutOrStdout(), agents)
		},
	}
}

func listAgents(c *config.Config) []listedAgent {
	var out []listedAgent
	for _, a := range c.List() {
		l := listedAgent{
			Name: a.Name, Title: a.Title, Driver: a.Driver, Default: a.Name == c.Default(),
			Available: a.Available, Path: a.Path, Source: a.Source, Trusted: a.Trusted,
		}
		if !a.Available {
			l.Install = a.Install()
		}
		out = append(out, l)
	}
	return out
}

// printAgents prints a table; * marks the default.
func printAgents(out io.Writer, agents []listedAgent) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\tAGENT\tSTATE\tSOURCE\tPROGRAM")
	for _, a := range agents {
		mark, state, program := "", "available", output.Quoted(a.Path)
		if a.Default {
			mark = "*"
		}
		if !a.Available {
			state, program = "not found", "→ "+a.Install
		}
		if !a.Trusted {
			state, program = "not trusted", "→ look at it with `duet-rpc trust`"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", mark, output.Line(a.Name), state, output.Line(a.Source), output.Line(program))
	}
	return table.Flush()
}
