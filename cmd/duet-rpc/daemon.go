package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/host"
	"github.com/duet-rpc/duet-rpc/internal/project"
)

const daemonHelp = `A daemon is a hub without an editor: what it runs goes on whichever editor
comes or goes. Editors that are started in the project join it by themselves.

With hub = "daemon" in your configuration an editor's process, and what begins
work in a shell (prompt, task submit, session launch), start one where no hub
runs.

Exit status: 0 if it was done; 1 if it was not, or no hub runs here.`

// What the commands' exit status says.
const (
	daemonStartHelp = `Start a hub for this project in the background, and return when it answers. A
daemon that runs is as good; an editor's process that is the hub is not, since
what it runs ends with it. It ends with daemon stop, or with a signal.

Exit status: 0 if a daemon answers, on each --listen too; 1 if not. With
--foreground 0 when it has been stopped.`
	daemonStopHelp = `Stop the project's hub, whoever started it, when what runs has ended: 15 s are
the most that it is waited for, and what waits for a human is not. What is
interrupted can be continued. An editor that is attached has no hub then until
it needs one. With --force what runs is not waited for, and a hub that does not
answer is killed.

Exit status: 0 if the hub has ended; 1 if it has not, or no hub runs here.`
	daemonStatusHelp = `Tell whether a hub runs here, and what it does.

Exit status: 0 if a hub runs here, 1 if not.`
	daemonLogsHelp = `Print the log of the project's daemons; with --json an object a line. One that is longer than 8 MiB when a
daemon is started is put aside, as daemon.log.1 beside it.

Exit status: 0 if it was printed, 1 if there is none.`
)

func newDaemonCommand(s *settings) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "daemon",
		Short: "Start, look at and stop a hub that outlives every editor",
		Long:  daemonHelp,
		Args:  noArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newDaemonStartCommand(s), newDaemonStopCommand(s), newDaemonStatusCommand(s), newDaemonLogsCommand(s))
	return cmd
}

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
	cmd.Flags().BoolVar(&foreground, "foreground", false, "be the hub, instead of starting one in the background")
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
	if err := status.isWanted(s); err != nil {
		return err
	}
	return sayDaemon(out, s, status, what)
}

// isWanted gives an error if a hub is not what daemon start is to start.
func (d daemonStatus) isWanted(s *settings) error {
	if d.Hub == config.HubEmbedded {
		return fmt.Errorf("the hub here is process %d, which an editor or a command started: what runs ends with it; close that and try again, or set hub = \"daemon\" in your configuration", d.PID)
	}
	for _, path := range s.Listen {
		full, err := filepath.Abs(path)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(d.Subsystems.IPC.Sockets, func(socket string) bool { return sameFile(socket, full) }) {
			return fmt.Errorf("the hub here (process %d) does not listen on %s, and cannot be told to while it runs: stop it and start it again with --listen; its log may say more: duet-rpc daemon logs", d.PID, path)
		}
	}
	return nil
}

// daemonStatus is what the CLI reads of daemon.status.
type daemonStatus struct {
	PID           int      `json:"pid"`
	UptimeSeconds int      `json:"uptime_seconds"`
	Health        string   `json:"health"`
	Issues        []string `json:"issues"`
	Version       string   `json:"version"`
	Hub           string   `json:"hub"`
	Subsystems    struct {
		IPC struct{ Sockets []string }
	} `json:"subsystems"`
	raw    json.RawMessage
	killed bool // by us
}

func hubStatus(ctx context.Context, s *settings, p project.Project) (daemonStatus, error) {
	var status daemonStatus
	c, err := host.Dial(ctx, &s.Settings, p)
	if err != nil {
		return status, err
	}
	defer c.Close()
	if err := c.Call(ctx, "daemon.status", nil, &status.raw); err != nil {
		return status, err
	}
	return status, json.Unmarshal(status.raw, &status)
}

func sayDaemon(out io.Writer, s *settings, d daemonStatus, what string) error {
	if s.json {
		_, err := fmt.Fprintf(out, "%s\n", d.raw)
		return err
	}
	_, err := fmt.Fprintf(out, "%s (process %d)\n", what, d.PID)
	return err
}

func newDaemonStopCommand(s *settings) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "stop",
		Short: "Stop the project's hub, when what runs has ended (at most 15 s)",
		Long:  daemonStopHelp,
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := s.Project()
			if err != nil {
				return err
			}
			ctx, stop := untilInterrupted(cmd.Context())
			defer stop()
			status, err := stopHub(ctx, s, p, force)
			if ctx.Err() != nil && err != nil {
				return statusInterrupted
			}
			if err != nil {
				return inItsWords(err)
			}
			what := "stopped"
			if status.killed {
				what = "killed, since it did not answer"
			}
			return sayDaemon(cmd.OutOrStdout(), s, status, what)
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "interrupt what runs, which can be continued; kill a hub that does not answer")
	return cmd
}

func newDaemonStatusCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Tell whether a hub runs here, and what it does",
		Long:  daemonStatusHelp,
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := s.Project()
			if err != nil {
				return err
			}
			status, err := hubStatus(cmd.Context(), s, p)
			if err != nil {
				return err
			}
			if s.json {
				return sayDaemon(cmd.OutOrStdout(), s, status, "")
			}
			return printStatus(cmd.OutOrStdout(), status)
		},
	}
}

// printStatus prints a status for people.
func printStatus(out io.Writer, d daemonStatus) error {
	var more struct {
		Subsystems struct {
			IPC        struct{ Clients int }
			Supervisor struct{ Running, Queued, MaxConcurrency int }
			Approvals  struct{ Pending int }
		}
	}
	if err := json.Unmarshal(d.raw, &more); err != nil {
		return err
	}
	x := more.Subsystems
	up := (time.Duration(d.UptimeSeconds) * time.Second).String()
	fmt.Fprintf(out, "process %d, %s, up %s, %s\n", d.PID, d.Version, up, d.Health)
	fmt.Fprintf(out, "%d running (at most %d), %d queued, %d questions open, %d clients\n", x.Supervisor.Running, x.Supervisor.MaxConcurrency, x.Supervisor.Queued, x.Approvals.Pending, x.IPC.Clients)
	for _, issue := range d.Issues {
		fmt.Fprintf(out, "! %s\n", oneLine(issue))
	}
	return nil
}

func newDaemonLogsCommand(s *settings) *cobra.Command {
	var follow bool
	cmd := &cobra.Command{
		Use:   "logs",
		Short: "Print the daemon's log",
		Long:  daemonLogsHelp,
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := s.Project()
			if err != nil {
				return err
			}
			file, err := os.Open(host.DaemonLog(p))
			if errors.Is(err, os.ErrNotExist) {
				return errors.New("there is no log yet: no daemon was started here")
			}
			if err != nil {
				return err
			}
			defer file.Close()
			lines := &logLines{out: cmd.OutOrStdout(), json: s.json}
			defer lines.Close()
			for {
				if _, err := io.Copy(lines, file); err != nil || !follow {
					return err
				}
				select {
				case <-cmd.Context().Done():
					return nil
				case <-time.After(200 * time.Millisecond): // a file that grows tells nobody
				}
			}
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on as it grows")
	return cmd
}
