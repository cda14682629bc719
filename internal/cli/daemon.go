package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/cli/turn"
	"github.com/duet-rpc/duet-rpc/internal/filewatch"
	"github.com/duet-rpc/duet-rpc/internal/host"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

// duet-rpc daemon: start, inspect and stop the daemon.

// statusOfHub asks the running hub for its status. It does not start a hub.
func statusOfHub(ctx context.Context, s *hubprocess.Settings, p project.Project) (hubclient.HubStatus, error) {
	c, err := hubprocess.Dial(ctx, s, p)
	if err != nil {
		return hubclient.HubStatus{}, err
	}
	defer c.Close()
	return hubclient.Status(ctx, c)
}

const daemonHelp = `Each project has one daemon, which runs the agents. Editors and commands that
need it start it and connect to it. Its agents keep running when they end.

A daemon ends by itself when it has had no client and nothing to do for 15 minutes
(daemon.idle in your configuration).

Exit status: 0 if it was done; 1 if it was not, or no daemon runs here.`

// newDaemonCommand returns the daemon command.
func newDaemonCommand(s *settings) *cobra.Command {
	return commandGroup("daemon", "Start, inspect and stop the project's daemon", daemonHelp,
		newStart(s), newStop(s), newStatus(s), newLogs(s))
}

const daemonLogsHelp = `Print the log of the project's daemons; with --json as one object a line. If the
log is longer than 8 MiB when a daemon starts, it is first renamed to daemon.log.1.

Exit status: 0 if it was printed, 1 if there is none.`

func newLogs(s *settings) *cobra.Command {
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
			lines := &term.LogLines{Out: cmd.OutOrStdout(), JSON: s.JSON}
			defer lines.Close()
			for {
				if _, err := io.Copy(lines, file); err != nil || !follow {
					return err
				}
				var again <-chan time.Time
				if written == nil { // the file cannot be watched
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

// startDaemon starts a daemon in the background, unless there is a hub, and returns when it
// answers. started is false if a daemon was running already.
func startDaemon(ctx context.Context, s *hubprocess.Settings, p project.Project) (status hubclient.HubStatus, started bool, err error) {
	status, err = statusOfHub(ctx, s, p)
	if err != nil {
		if err := hubprocess.EnsureDaemon(ctx, s, p); err != nil {
			return status, false, err
		}
		started = true
		if status, err = statusOfHub(ctx, s, p); err != nil {
			return status, true, err
		}
	}
	return status, started, listen(ctx, s, p)
}

// listen makes the hub open the sockets of --listen.
func listen(ctx context.Context, s *hubprocess.Settings, p project.Project) error {
	if len(s.Listen) == 0 {
		return nil
	}
	conn, err := hubprocess.Connect(ctx, s, p)
	if err != nil {
		return err
	}
	defer conn.Close()
	var refusals []error
	err = hubprocess.Listen(ctx, s, conn, func(why string) { refusals = append(refusals, errors.New(why)) })
	return errors.Join(append(refusals, err)...)
}

const daemonStartHelp = `Start the project's daemon in the background, and return when it answers. If one
runs already, nothing is started. Every command and editor that needs a daemon starts
one by itself. It runs until daemon stop or a signal, or until it had no client and
nothing to do for 15 minutes (daemon.idle in your configuration).

Exit status: 0 if a daemon answers, has sessions, and listens on each --listen; 1
if not; 130 if you interrupted it: a daemon that does not answer yet is ended then.
With --foreground 0 once it has been stopped.`

// afterInterrupt returns which daemon exists after daemon start was interrupted.
func afterInterrupt(ctx context.Context, s *settings, p project.Project) string {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if p.Unlocked() {
		return "interrupted; no daemon runs here"
	}
	status, err := statusOfHub(ctx, s.ForAnyBuild(), p)
	if err != nil {
		return "interrupted; no daemon was started, but another process is the daemon here, and does not answer: `duet-rpc daemon status` " +
			"shows more"
	}
	return fmt.Sprintf("interrupted; a daemon runs here (process %d), `duet-rpc daemon stop` ends it", status.PID)
}

func newStart(s *settings) *cobra.Command {
	var foreground bool
	cmd := &cobra.Command{
		Use:   "start",
		Short: "Start a daemon for this project, and return when it answers",
		Long:  daemonStartHelp,
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if foreground {
				return host.Daemon(cmd.Context(), &s.Settings)
			}
			p, err := s.Project()
			if err != nil {
				return err
			}
			ctx, stop := term.UntilInterrupted(cmd.Context())
			defer stop()
			status, started, err := startDaemon(ctx, &s.Settings, p)
			if err != nil && ctx.Err() != nil {
				side := cmd.ErrOrStderr()
				fmt.Fprintln(side, term.Lines(side, "duet-rpc: "+afterInterrupt(context.WithoutCancel(ctx), s, p)))
				return term.ErrInterrupted
			}
			if err != nil {
				return err
			}
			what := "a daemon runs here already"
			if started {
				what = "started"
			}
			return printHub(cmd.OutOrStdout(), s, status, what)
		},
	}
	cmd.Flags().BoolVar(&foreground, "foreground", false, "be the daemon in this process, instead of in the background")
	return cmd
}

const daemonStatusHelp = `Show whether a daemon runs here, and its work. With --json, also where the files of
the project are, as duet-rpc paths prints them.

Exit status: 0 if a daemon runs here, 1 if not.`

func newStatus(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Print whether a daemon runs here, and its work",
		Long:  daemonStatusHelp,
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := s.Project()
			if err != nil {
				return err
			}
			status, err := statusOfHub(cmd.Context(), s.ForAnyBuild(), p)
			if hubprocess.IsNone(err) {
				if broken := host.CannotOpen(cmd.Context(), p); broken != nil {
					return fmt.Errorf("no daemon runs here, and none can start: %w", broken)
				}
			}
			if err != nil {
				return err
			}
			if s.JSON {
				return printJSON(cmd.OutOrStdout(), s, status)
			}
			return printStatus(cmd.OutOrStdout(), status)
		},
	}
}

// printJSON prints a status with the paths of the project. The hub does not send the paths to
// clients.
func printJSON(out io.Writer, s *settings, hub hubclient.HubStatus) error {
	paths, err := s.Paths()
	if err != nil {
		return err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(hub.Raw, &members); err != nil {
		return err
	}
	if members["paths"], err = json.Marshal(paths); err != nil {
		return err
	}
	raw, err := json.Marshal(members)
	if err != nil {
		return err
	}
	return term.Raw(out, raw)
}

// printStatus prints a status as text.
func printStatus(out io.Writer, hub hubclient.HubStatus) error {
	x := hub.Subsystems
	up := (time.Duration(hub.UptimeSeconds) * time.Second).String()
	fmt.Fprintf(out, "process %d, %s, up %s, %s\n", hub.PID, hub.Version, up, hub.Health)
	_, err := fmt.Fprintf(out, "%d running (at most %d), %d queued, %s, %s\n",
		x.Supervisor.Running, x.Supervisor.MaxConcurrency, x.Supervisor.Queued,
		term.Count(x.Approvals.Pending, "question open", "questions open"), term.Count(x.IPC.Clients, "client"))
	for _, issue := range hub.Issues {
		fmt.Fprintln(out, term.Lines(out, "! "+term.Line(issue)))
	}
	for _, who := range x.IPC.Unserved {
		fmt.Fprintln(out, term.Lines(out, "— "+term.Line(who)))
	}
	return err
}

// printHub prints what was done to a hub, or its status as JSON.
func printHub(out io.Writer, s *settings, hub hubclient.HubStatus, what string) error {
	if s.JSON {
		return term.Raw(out, hub.Raw)
	}
	_, err := fmt.Fprintf(out, "%s (process %d)\n", what, hub.PID)
	return err
}

// lookAgain is how often a caller that waits for the hub's lock checks whether another process
// took it in the moment in which it was free. No notification covers that rare case.
const lookAgain = time.Second

// stopDaemon asks the project's hub to end and waits until it has ended. It calls note with
// what it waits for. With force it kills a daemon that does not answer.
func stopDaemon(ctx context.Context, s *hubprocess.Settings, p project.Project, force bool, note func(string)) (status hubclient.HubStatus, killed bool, err error) {
	within := host.DrainWithin + s.AnswerWithin
	if force {
		within = s.EndWithin + s.AnswerWithin
	}
	asking, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	status, err = askToStop(asking, s, p, force, note)
	var silent *hubprocess.SilentError
	switch {
	case err == nil || ctx.Err() != nil:
		return status, false, err
	case force && (errors.As(err, &silent) && silent.Held || asking.Err() != nil):
		status, err = killHub(ctx, s, p)
		return status, true, err
	case asking.Err() != nil:
		pid, _ := p.Holder(ctx)
		return status, false, fmt.Errorf("process %d has not ended yet; --force would not wait for its agents", pid)
	}
	return status, false, err
}

// askToStop asks the hub to end and waits until it has ended, or ctx ends.
func askToStop(ctx context.Context, s *hubprocess.Settings, p project.Project, force bool, note func(string)) (hubclient.HubStatus, error) {
	s = s.ForAnyBuild()
	status, err := statusOfHub(ctx, s, p)
	if err != nil {
		return status, err
	}
	if running := status.Subsystems.Supervisor.Running; running > 0 && !force {
		note(fmt.Sprintf("waiting for %s at work, at most %v; --force would not wait", term.Count(running, "agent"), host.DrainWithin))
	}
	c, err := hubprocess.Dial(ctx, s, p, client.WithReconnect(false))
	if err != nil {
		return status, err
	}
	defer c.Close()
	connected, cancel := hubclient.WhileConnected(ctx, c)
	defer cancel()
	if err := c.Call(ctx, "daemon.stop", protocol.StopDaemonParams{Force: force}, nil); err != nil {
		return status, err
	}
	<-connected.Done() // the hub closes its connections shortly before it releases the lock
	return status, awaitEnd(ctx, p, status.PID)
}

// awaitEnd waits until a process is no longer the hub, or ctx ends.
func awaitEnd(ctx context.Context, p project.Project, pid int) error {
	released := p.Released()
	for {
		select {
		case <-released: // releasing the lock is the hub's last step
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lookAgain):
		}
		if !isHolder(ctx, p, pid) {
			return nil
		}
	}
}

// killedWithin is how long the kernel may take to end a killed process. On a loaded machine
// that takes a while.
const killedWithin = 30 * time.Second

// killHub ends a hub process that does not answer. It sends SIGTERM and, after the time that a
// hub needs to end, SIGKILL. The returned status only has the process id.
func killHub(ctx context.Context, s *hubprocess.Settings, p project.Project) (status hubclient.HubStatus, err error) {
	pid, held := p.Holder(ctx)
	if !held {
		return status, errors.New("the daemon has ended by itself")
	}
	if pid == 0 {
		return status, fmt.Errorf("the daemon does not answer, and nothing in %s says which process it is: end it yourself", p.StateDir)
	}
	process, err := os.FindProcess(pid) // a handle where the system has one, so that a reused pid is safe
	if err != nil {
		return status, cannotEnd(pid, err)
	}
	defer process.Release()
	status.PID = pid
	status.Raw, _ = json.Marshal(map[string]any{"pid": pid, "killed": true}) // never fails
	for _, kill := range []struct {
		signal os.Signal
		within time.Duration
	}{{syscall.SIGTERM, min(s.EndWithin, s.AnswerWithin)}, {os.Kill, killedWithin}} {
		if !isHolder(ctx, p, pid) {
			return status, nil
		}
		if err = process.Signal(kill.signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
			err = cannotEnd(pid, err)
			continue // not every system supports both
		}
		err = nil
		ending, cancel := context.WithTimeout(ctx, kill.within)
		ended := awaitEnd(ending, p, pid)
		cancel()
		if ended == nil || ctx.Err() != nil {
			return status, ctx.Err()
		}
	}
	if err == nil {
		err = fmt.Errorf("process %d was killed, and still has not ended", pid)
	}
	return status, err
}

// isHolder reports whether a process has the hub's lock, as far as that can be seen.
func isHolder(ctx context.Context, p project.Project, pid int) bool {
	now, held := p.Holder(ctx)
	return held && (now == pid || now == 0)
}

func cannotEnd(pid int, err error) error {
	return fmt.Errorf("the daemon (process %d) does not answer, and cannot be ended: %w", pid, err)
}

const daemonStopHelp = `Stop the project's daemon when its agents have finished, even if another client started
it. Agents that wait for an answer are interrupted at once, the others after 15 s;
interrupted sessions can be continued. A connected editor gets a new daemon as soon as
it needs one. --force does not wait, and kills a daemon that does not answer.

Exit status: 0 if the daemon has ended; 1 if it has not, or no daemon runs here.`

func newStop(s *settings) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "stop",
		Short: "Stop the project's daemon when its agents have finished (at most 15 s)",
		Long:  daemonStopHelp,
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := s.Project()
			if err != nil {
				return err
			}
			ctx, stop := term.UntilInterrupted(cmd.Context())
			defer stop()
			status, killed, err := stopDaemon(ctx, &s.Settings, p, force, func(what string) { progress(cmd, s, "%s", what) })
			if ctx.Err() != nil && err != nil {
				return term.ErrInterrupted
			}
			if hubprocess.IsNone(err) {
				return errors.New("no daemon runs here: there is none to stop")
			}
			if err != nil {
				return turn.InWords(err)
			}
			what := "stopped"
			if killed {
				what = "killed, since it did not answer"
			}
			return printHub(cmd.OutOrStdout(), s, status, what)
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "do not wait for agents, and kill a daemon that does not answer")
	return cmd
}
