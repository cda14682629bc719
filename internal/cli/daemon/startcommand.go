package daemon

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/host"
	"github.com/duet-rpc/duet-rpc/internal/project"
)

const daemonStartHelp = `Start the project's daemon in the background, and return when it answers. If one
runs already, nothing is started. Every command and editor that needs a daemon starts
one by itself. It runs until daemon stop or a signal, or until it had no client and
nothing to do for 15 minutes (daemon.idle in your configuration).

Exit status: 0 if a daemon answers, has sessions, and listens on each --listen; 1
if not; 130 if you interrupted it: a daemon that does not answer yet is ended then.
With --foreground 0 once it has been stopped.`

// afterInterrupt says what there is after daemon start was interrupted.
func afterInterrupt(ctx context.Context, o Options, p project.Project) string {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if p.Unlocked() {
		return "interrupted; no daemon runs here"
	}
	status, err := Status(ctx, o.Settings.ForAnyBuild(), p)
	if err != nil {
		return "interrupted; no daemon was started, but another process is the hub here, and does not answer: `duet-rpc daemon status` tells more"
	}
	return fmt.Sprintf("interrupted; a hub runs here (process %d), `duet-rpc daemon stop` ends it", status.PID)
}

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
			ctx, stop := term.UntilInterrupted(cmd.Context())
			defer stop()
			status, started, err := Start(ctx, o.Settings, p)
			if err != nil && ctx.Err() != nil {
				side := cmd.ErrOrStderr()
				fmt.Fprintln(side, term.Lines(side, "duet-rpc: "+afterInterrupt(context.WithoutCancel(ctx), o, p)))
				return term.ErrInterrupted
			}
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
