package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/cli/wire"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/host"
)

const daemonStartHelp = `Start a hub for this project in the background, and return when it answers. If a
daemon runs already, nothing is started. If an editor's process is the hub, the
command fails, since what that process runs ends with the editor. The daemon runs
until daemon stop or a signal.

Exit status: 0 if a daemon answers, and listens on each --listen; 1 if not. With
--foreground 0 once it has been stopped.`

func newDaemonStartCommand(s *settings) *cobra.Command {
	var foreground bool
	cmd := &cobra.Command{
		Use:   "start",
		Short: "Start a hub for this project, and return when it answers",
		Long:  daemonStartHelp,
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if foreground {
				return host.Daemon(cmd.Context(), &s.Settings)
			}
			return startDaemon(cmd.Context(), cmd.OutOrStdout(), s)
		},
	}
	cmd.Flags().BoolVar(&foreground, "foreground", false, "be the hub in this process, instead of in the background")
	return cmd
}

// startDaemon starts a daemon in the background, unless there is a hub.
func startDaemon(ctx context.Context, out io.Writer, s *settings) error {
	p, err := s.Project()
	if err != nil {
		return err
	}
	what := "a hub runs here already"
	status, err := hubStatus(ctx, s, p)
	if err != nil {
		if err := host.EnsureDaemon(ctx, &s.Settings, p); err != nil {
			return err
		}
		what = "started"
		if status, err = hubStatus(ctx, s, p); err != nil {
			return err
		}
	}
	if err := checkWanted(status, s); err != nil {
		return err
	}
	return sayHub(out, s, status, what)
}

// checkWanted gives an error if a hub is not what daemon start is to start.
func checkWanted(hub wire.HubStatus, s *settings) error {
	if hub.Hub == config.HubEmbedded {
		return fmt.Errorf("the hub here is process %d, which an editor or a command started, and what runs in it ends with it; close that and try again, or set hub = \"daemon\" in your configuration", hub.PID)
	}
	for _, path := range s.Listen {
		if !slices.ContainsFunc(hub.Subsystems.IPC.Sockets, func(socket string) bool { return sameFile(socket, path) }) {
			return fmt.Errorf("the hub here (process %d) does not listen on %s, and cannot be told to while it runs: stop it and start it again with --listen; its log may say more: duet-rpc daemon logs", hub.PID, path)
		}
	}
	return nil
}

func sameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}
