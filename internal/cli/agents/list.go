package agents

import (
	"fmt"
	"io"
	"text/tabwriter"

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
	CLI       string `json:"cli,omitempty"`     // where that is here, and its adapter is not
	Source    string `json:"source"`
	Trusted   bool   `json:"trusted"`
}

func listAgents(c *config.Config) []listedAgent {
	var out []listedAgent
	for _, a := range c.List() {
		l := listedAgent{
			Name: a.Name, Title: a.Title, Driver: a.Driver, Default: a.Name == c.Default(),
			Available: a.Available, Path: a.Path, Source: a.Source, Trusted: a.Trusted,
		}
		if !a.Available {
			l.Install, l.CLI = a.Install(), a.CLI
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
		if a.CLI != "" {
			state, program = "needs adapter", fmt.Sprintf("→ %s (%s alone does not speak the Agent Client Protocol)", a.Install, output.Quoted(a.CLI))
		}
		if !a.Trusted {
			state, program = "not trusted", "→ look at it with `duet-rpc trust`"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", mark, output.Line(a.Name), state, output.Line(a.Source), output.Line(program))
	}
	return table.Flush()
}
