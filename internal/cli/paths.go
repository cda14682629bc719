package cli

import (
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/cli/invocation"
	"github.com/duet-rpc/duet-rpc/internal/cli/output"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/socket"
)

const pathsHelp = `Print where everything of this project is: its root, the directory of its state,
the database, the hub's socket, the daemon's log, and the files of the
configuration. A path is printed whether or not there is a file.

Exit status: 0 if the project was found, 1 if not.`

// paths are where everything of a project is.
type paths struct {
	Root     string `json:"root"`
	State    string `json:"state"`
	Database string `json:"database"`
	Socket   string `json:"socket"`
	Log      string `json:"log"`
	Project  string `json:"project_configuration"`
	User     string `json:"user_configuration"`
}

func pathsOf(s *invocation.Settings) (paths, error) {
	p, err := s.Project()
	if err != nil {
		return paths{}, err
	}
	user, err := config.UserFile(os.Getenv)
	if err != nil {
		return paths{}, err
	}
	at, err := socket.Find(p.StateDir)
	if err != nil {
		return paths{}, err
	}
	return paths{p.Root, p.StateDir, p.Database(), at, hubprocess.DaemonLog(p), p.ConfigFile(), user}, nil
}

func newPathsCommand(s *invocation.Settings) *cobra.Command {
	return &cobra.Command{
		Use:   "paths",
		Short: "Print where the project's files are",
		Long:  pathsHelp,
		Args:  invocation.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			found, err := pathsOf(s)
			if err != nil {
				return err
			}
			if s.JSON {
				return output.JSON(cmd.OutOrStdout(), found)
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
				fmt.Fprintf(table, "%s\t%s\n", row[0], output.Line(row[1]))
			}
			return table.Flush()
		},
	}
}
