package cli

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/cli/term"
)

const pathsHelp = `Print where everything of this project is: its root, the directory of its state,
the database, the hub's socket, the daemon's log, and the files of the
configuration. A path is printed whether or not there is a file.

Exit status: 0 if the project was found, 1 if not.`

func newPathsCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:   "paths",
		Short: "Print where the project's files are",
		Long:  pathsHelp,
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			found, err := s.Paths()
			if err != nil {
				return err
			}
			if s.JSON {
				return term.JSON(cmd.OutOrStdout(), found)
			}
			table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			for _, row := range [][2]string{
				{"root", found.Root},
				{"state", found.State},
				{"database", found.Database},
				{"socket", found.Socket},
				{"log", found.Log},
				{"project's configuration", found.Project},
				{"your configuration", found.User},
			} {
				fmt.Fprintf(table, "%s\t%s\n", row[0], term.Line(row[1]))
			}
			return table.Flush()
		},
	}
}
