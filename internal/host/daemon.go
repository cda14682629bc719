package host

import (
	"context"
	"fmt"
	"os"

	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/server/stdio"
)

// Daemon makes this process the project's hub, without an editor, until a
// signal comes, ctx ends or somebody stops it. When it listens it lets go of
// standard output, on which it says nothing: whoever has the other end of that is told.
func Daemon(ctx context.Context, s *hubprocess.Settings) error {
	log := s.OpenLog()
	defer log.Close(logGrace)
	ctx, stop := untilSignal(ctx, log)
	defer stop()
	c := claimProject(s)
	p, _ := c.of()
	if err := c.why(); err != nil {
		return unavailable(p, err)
	}
	h := newHost(s, log, c)
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
