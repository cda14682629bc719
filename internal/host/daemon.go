package host

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/server/stdio"
)

// Daemon makes this process the project's hub until a signal comes, ctx ends or a client
// stops it. It closes standard output when it listens, which its starter waits for. If that
// is a pipe and the daemon fails before, it writes the reason there: the log may be on a full disk.
func Daemon(ctx context.Context, s *hubprocess.Settings) error {
	err := daemon(ctx, s)
	if err == nil {
		return nil
	}
	if info, statErr := os.Stdout.Stat(); statErr == nil && info.Mode()&os.ModeNamedPipe != 0 {
		fmt.Println(err)
	}
	return err
}

func daemon(ctx context.Context, s *hubprocess.Settings) error {
	log := s.OpenLog()
	defer log.Close(logGrace)
	ctx, stop := untilSignal(ctx, log)
	defer stop()
	c := claimProject(s)
	p, _ := c.of()
	if err := c.why(); err != nil {
		return unavailable(p, err)
	}
	h := newHost(s, log, c, hubprocess.Build(runningProgram()))
	rest := time.AfterFunc(restAfter, restMemory)
	defer rest.Stop()
	h.vacant.ended = func() { rest.Reset(restAfter) }
	log.Info("started", "version", s.Version, "pid", os.Getpid(), "project", p.Root)
	if err := (projectParts{h}).listen(); err != nil {
		h.begin(ctx, false)
		h.close()
		return fmt.Errorf("nobody could reach the daemon: %w", err)
	}
	if err := stdio.CloseOutput(); err != nil {
		log.Debug("who started the daemon is not told that it listens", "err", err)
	}
	h.begin(ctx, true)
	<-h.life.ctx.Done()
	h.close()
	log.Info("stopped")
	return nil
}

// runningProgram is the path of the program that this process runs. On Linux it leads to that
// program also when its file was replaced or removed.
func runningProgram() string {
	const itself = "/proc/self/exe"
	path, err := os.Executable()
	if err != nil {
		return itself
	}
	running, err := os.Stat(itself)
	if err != nil { // not on Linux
		return path
	}
	if now, err := os.Stat(path); err != nil || !os.SameFile(now, running) {
		return itself
	}
	return path // which is more readable in a list of processes
}
