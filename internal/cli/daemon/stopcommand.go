package daemon

import (
	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/cli/turn"
)

const daemonStopHelp = `Stop the project's hub, whoever started it, once the agents have finished. After
15 s those that still work are interrupted, and so are at once those that wait
for an answer; interrupted sessions can be continued. A connected editor gets a
new hub as soon as it needs one. With --force nothing is waited for, and a hub
that does not answer is killed.

Exit status: 0 if the hub has ended; 1 if it has not, or no hub runs here.`

func newStop(o Options) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "stop",
		Short: "Stop the project's hub, when what runs has ended (at most 15 s)",
		Long:  daemonStopHelp,
		Args:  o.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := o.Settings.Project()
			if err != nil {
				return err
			}
			ctx, stop := term.UntilInterrupted(cmd.Context())
			defer stop()
			status, killed, err := Stop(ctx, o.Settings, p, force, func(what string) { o.Progress(cmd, what) })
			if ctx.Err() != nil && err != nil {
				return term.ErrInterrupted
			}
			if err != nil {
				return turn.InWords(err)
			}
			what := "stopped"
			if killed {
				what = "killed, since it did not answer"
			}
			return sayHub(cmd.OutOrStdout(), o, status, what)
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "do not wait for agents, and kill a hub that does not answer")
	return cmd
}
