package agents

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/duet-rpc/duet-rpc/internal/cli/output"
	"github.com/duet-rpc/duet-rpc/internal/config"
)

// printAgents prints a table; * marks the default.
func printAgents(out io.Writer, agents []config.Description) error {
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
