package host

import (
	"context"
	"time"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/database"
	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/logging"
	"github.com/duet-rpc/duet-rpc/internal/project"
)

// ToChange connects to the project's hub for a change of what is kept: to the one that
// runs, or else to a hub of the moment in this process. That one has the project's
// lock, and listens nowhere: an editor that starts meanwhile waits for the lock, and
// is the hub once end was called, so nothing is to be waited for before that. It
// recovers what a dead process left behind, and starts nothing; where nothing is kept
// there is none, and the error is that of [Dial].
func ToChange(ctx context.Context, s *hubprocess.Settings, p project.Project, log *logging.Log, opts ...client.Option) (c *client.Client, end func(), err error) {
	var pause hubprocess.Pause
	for deadline := time.Now().Add(s.StartWithin()); ; {
		c, err := hubprocess.Dial(ctx, s, p, opts...)
		if err == nil {
			return c, func() { c.Close() }, nil
		}
		if !hubprocess.IsNone(err) {
			return nil, nil, err
		}
		if !database.Exists(p) {
			return nil, nil, err
		}
		claimed := claimProject(s)
		if !claimed.held() {
			return momentary(ctx, s, log, claimed)
		}
		if time.Now().After(deadline) {
			return nil, nil, unavailable(p, claimed.why())
		}
		if err := pause.Wait(ctx); err != nil { // it has just begun, or is ending
			return nil, nil, err
		}
	}
}

// momentary is a hub of the moment in this process, which has claimed the project.
func momentary(ctx context.Context, s *hubprocess.Settings, log *logging.Log, c *claim) (*client.Client, func(), error) {
	if err := c.why(); err != nil {
		return nil, nil, err
	}
	release := func() { c.release(nil) }
	p, lock := c.of()
	h, err := openProject(ctx, hubOptions{
		settings: s, log: log, project: p, lock: lock, startsNothing: true,
		idle: func() {}, notified: func(context.Context) {},
	})
	if err != nil {
		release()
		return nil, nil, unavailable(p, err)
	}
	return serveInside(ctx, s, h.hub, func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), hubGrace)
		defer cancel()
		h.close(closing)
		release()
	})
}
