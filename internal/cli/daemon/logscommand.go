package daemon

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/filewatch"
	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
)

const daemonLogsHelp = `Print the log of the project's daemons; with --json as one object a line. If the
log is longer than 8 MiB when a daemon starts, it is first renamed to daemon.log.1.

Exit status: 0 if it was printed, 1 if there is none.`

func newLogs(o Options) *cobra.Command {
	var follow bool
	cmd := &cobra.Command{
		Use:   "logs",
		Short: "Print the daemon's log",
		Long:  daemonLogsHelp,
		Args:  o.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := o.Settings.Project()
			if err != nil {
				return err
			}
			file, err := os.Open(hubprocess.DaemonLog(p))
			if errors.Is(err, os.ErrNotExist) {
				return errors.New("there is no log yet: no daemon was started here")
			}
			if err != nil {
				return err
			}
			defer file.Close()
			ctx, stop := term.WhileRead(cmd.Context(), cmd.OutOrStdout())
			defer stop()
			var written <-chan struct{}
			if watch, err := filewatch.Written(file.Name()); err == nil {
				defer watch.Close()
				written = watch.C
			}
			lines := &term.LogLines{Out: cmd.OutOrStdout(), JSON: o.JSON()}
			defer lines.Close()
			for {
				if _, err := io.Copy(lines, file); err != nil || !follow {
					return err
				}
				var again <-chan time.Time
				if written == nil { // nothing tells here
					again = time.After(200 * time.Millisecond)
				}
				select {
				case <-ctx.Done():
					return context.Cause(ctx)
				case <-written:
				case <-again:
				}
			}
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "keep printing as it grows")
	return cmd
}
