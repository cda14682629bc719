package daemon

import (
	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/host"
)

const daemonStartHelp = `Start a hub for this project in the background, and return when it answers. If a
daemon runs already, nothing is started. If an editor's process is the hub, the
command fails, since what that process runs ends with the editor. The daemon runs
until daemon stop or a signal.

Exit status: 0 if a daemon answers, has sessions, and listens on each --listen; 1
if not. With --foreground 0 once it has been stopped.`

func newStart(o Options) *cobra.Command {
	var foreground bool
	cmd := &cobra.Command{
		Use:   "start",
		Short: "Start a hub for this project, and return when it answers",
		Long:  daemonStartHelp,
		Args:  o.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if foreground {
				return host.Daemon(cmd.Context(), o.Settings)
			}
			p, err := o.Settings.Project()
			if err != nil {
				return err
			}
			status, started, err := Start(cmd.Context(), o.Settings, p)
			if err != nil {
				return err
			}
			what := "a hub runs here already"
			if started {
				what = "started"
			}
			return sayHub(cmd.OutOrStdout(), o, status, what)
		},
	}
	cmd.Flags().BoolVar(&foreground, "foreground", false, "be the hub in this process, instead of in the background")
	return cmd
}
