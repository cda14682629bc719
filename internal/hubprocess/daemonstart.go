package hubprocess

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/logging"
	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/socket"
	"github.com/duet-rpc/duet-rpc/internal/visible"
)

// errOtherHub reports that no daemon was started because another process is the hub, is about to
// be, or has not quite ended.
var errOtherHub = errors.New("another process is the daemon")

// EnsureDaemon returns when a hub answers: the running one, or a daemon that it starts in the
// background. If several processes do this at the same time, one of them starts it. If ctx is
// cancelled before the daemon answers, EnsureDaemon ends it again.
func EnsureDaemon(ctx context.Context, s *Settings, p project.Project) error {
	within, cancel := context.WithTimeout(ctx, s.StartWithin())
	defer cancel()
	if err := p.Prepare(); err != nil {
		return err
	}
	var pause Pause
	var silent *SilentError        // the process that holds the lock, or is a stranger on the socket
	var starter *project.HeldError // the process that starts a daemon
	for {
		someone, err := answers(within, s, p)
		if someone {
			return nil
		}
		if err == nil || errors.As(err, &silent) {
			if err = startOne(within, s, p); err == nil {
				return nil
			}
		}
		otherHub := errors.Is(err, errOtherHub) || errors.As(err, &starter)
		if otherHub && pause.Wait(within) == nil {
			continue
		}
		if within.Err() != nil && ctx.Err() == nil {
			return s.tooLate(ctx, p, silent, starter, err)
		}
		return err
	}
}

// tooLate returns why no daemon answers within the time that one may take. What was seen is a
// hub, or another program, that does not answer, and a process that starts a daemon; nil if none
// was. The hub itself comes first: another starter only waits for it, too.
func (s *Settings) tooLate(
	ctx context.Context, p project.Project, silent *SilentError, starter *project.HeldError, err error,
) error {
	if silent != nil {
		return silent
	}
	if pid, held := p.Holder(ctx); held {
		return &SilentError{PID: pid, Held: true}
	}
	if starter != nil && starter.PID != 0 {
		return fmt.Errorf("process %d starts a daemon here, and has not finished within %v: try again, or end that process", starter.PID,
			s.StartWithin())
	}
	return err
}

// answers reports whether a hub answers on the project's socket; false without an error means
// that there is none. The error is a *SilentError if a process listens but does not answer. Any
// other error means that no hub can be used.
func answers(ctx context.Context, s *Settings, p project.Project) (someone bool, err error) {
	conn, err := connect(ctx, s, p, nil)
	if err == nil {
		return true, conn.Close()
	}
	if _, ok := errors.AsType[*socket.NoListenerError](err); ok {
		err = nil
	}
	return false, err
}

// StartWithin is how long a daemon may take to answer after its start.
func (s *Settings) StartWithin() time.Duration { return 2 * s.AnswerWithin }

// MayComeYet reports whether an error of Connect means only that there is no hub, or one that
// has just ended.
func MayComeYet(err error) bool {
	var unserved *socket.NoListenerError
	var silent *SilentError
	return errors.As(err, &unserved) || errors.As(err, &silent)
}

// IsNone reports whether an error of Dial means that there is no hub.
func IsNone(err error) bool {
	return errors.As(err, new(*socket.NoListenerError)) || isLine(err, lineNone)
}

// startOne starts a daemon and waits until it answers.
func startOne(ctx context.Context, s *Settings, p project.Project) error {
	starting, err := p.LockStart(ctx)
	if err != nil {
		return err
	}
	defer starting.Close()
	if err := checkNoHub(ctx, p); err != nil {
		return err
	}
	if err := putAsideLongLog(DaemonLog(p)); err != nil {
		return fmt.Errorf("putting the long log of daemons aside: %w", err)
	}
	log, err := logging.OpenFile(DaemonLog(p))
	if err != nil {
		return fmt.Errorf("opening the daemon's log: %w", err)
	}
	defer log.Close()
	cmd, err := daemonCommand(s, p)
	if err != nil {
		return fmt.Errorf("starting the daemon: %w", err)
	}
	said, output, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("starting the daemon: %w", err)
	}
	defer said.Close()
	cmd.Stdout, cmd.Stderr = output, log
	err = cmd.Start()
	output.Close()
	if err != nil {
		return fmt.Errorf("starting the daemon: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait(); close(ended) }() // until the daemon ends, or this process does
	reason := make(chan string, 1)
	go func() { // until the daemon closes its output, or said is closed
		text, _ := io.ReadAll(io.LimitReader(said, 4096))
		reason <- strings.TrimSpace(string(text))
	}()
	err = awaitAnswer(ctx, s, p, reason, ended)
	if err != nil && errors.Is(ctx.Err(), context.Canceled) {
		return giveUp(ctx, s, p, cmd.Process, ended)
	}
	return err
}

// The times for a daemon that its starter gives up: a moment in which it may still answer, and
// the time to end.
const (
	lastAnswerGrace = 200 * time.Millisecond
	endGrace        = 3 * time.Second
)

// giveUp ends a daemon that was started, unless it answers by now: then another client may use
// it. It returns when the daemon has ended; the error is that of ctx.
func giveUp(ctx context.Context, s *Settings, p project.Project, daemon *os.Process, ended <-chan error) error {
	looking, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastAnswerGrace)
	defer cancel()
	if someone, _ := answers(looking, s, p); someone {
		return ctx.Err()
	}
	if daemon.Signal(syscall.SIGTERM) != nil { // it has ended, or the system has no such signal
		_ = daemon.Kill()
	}
	select {
	case <-ended:
	case <-time.After(endGrace):
		_ = daemon.Kill()
		<-ended
	}
	return ctx.Err()
}

// awaitAnswer waits until a daemon answers. The channel reason gets an empty text when the
// daemon listens, or the text that it wrote before it ended.
func awaitAnswer(ctx context.Context, s *Settings, p project.Project, reason <-chan string, ended <-chan error) error {
	why := ""
	select {
	case why = <-reason:
	case <-ctx.Done():
	}
	var pause Pause
	for {
		someone, err := answers(ctx, s, p)
		if someone {
			return nil
		}
		select {
		case status := <-ended:
			if other := checkNoHub(ctx, p); other != nil {
				return other
			}
			if err != nil && !MayComeYet(err) {
				return err
			}
			if why == "" {
				return fmt.Errorf("the daemon ended at once (%v); its log may say why: duet-rpc daemon logs", status)
			}
			return errors.New("no daemon can be started: " + visible.ForTerminal().Line(why))
		default:
		}
		// It listened, or is about to end. No event reports when a listening daemon begins to
		// answer.
		if pause.Wait(ctx) != nil {
			return errors.New("the daemon does not answer; its log may say why: duet-rpc daemon logs")
		}
	}
}

// longLog is the size in bytes above which a new daemon starts a new log.
const longLog = 8 << 20

// DaemonLog returns the path of a daemon's log.
func DaemonLog(p project.Project) string { return filepath.Join(p.StateDir, "daemon.log") }

// putAsideLongLog renames a long log to its name with .1, in place of the previous one. No
// daemon may be writing it.
func putAsideLongLog(path string) error {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() <= longLog {
		return nil // opening the log reports the problem
	}
	return os.Rename(path, path+".1")
}

// checkNoHub returns errOtherHub if a process holds the hub's lock.
func checkNoHub(ctx context.Context, p project.Project) error {
	lock, err := p.Lock(ctx)
	var held *project.HeldError
	switch {
	case errors.As(err, &held) && held.PID != 0:
		return fmt.Errorf("%w (process %d)", errOtherHub, held.PID)
	case errors.As(err, &held):
		return errOtherHub
	case err != nil:
		return err
	}
	return lock.Close()
}

// daemonCommand returns the command of this program as a daemon, which outlives this process,
// its terminal and its process group.
func daemonCommand(s *Settings, p project.Project) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args := []string{
		"daemon", "start", "--foreground", "--root", p.Root, "--log-level", s.LogLevel.String(), "--no-color",
		"--read-timeout", s.Limits.Timeout.String(),
		"--max-frame-bytes", strconv.Itoa(s.Limits.MaxFrame), "--max-header-bytes", strconv.Itoa(s.Limits.MaxHeader),
	}
	if s.TestMethods {
		args = append(args, "--test-methods")
	}
	if s.EndWithin > 0 {
		args = append(args, "--end-within", s.EndWithin.String())
	}
	for _, path := range s.Listen {
		full, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		args = append(args, "--listen", full)
	}
	cmd := exec.Command(self, args...)
	cmd.Dir = p.Root
	// The daemon has its own log, wherever its starter logs, and its agents' programs are its clients.
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "DUET_RPC_LOG=") || strings.HasPrefix(v, "DUET_HOST=")
	})
	if s.Idle > 0 {
		cmd.Env = append(cmd.Env, "DUET_DAEMON_IDLE="+s.Idle.String())
	}
	detach(cmd)
	return cmd, nil
}
