package host

import (
	"context"
	"errors"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/config"
)

// projectParts are the [parts] of a host's life.
type projectParts struct{ *host }

func (h projectParts) claim(ctx context.Context) (taken bool, err error) {
	return h.host.claim.take(ctx)
}

func (h projectParts) release(why error) {
	h.sockets.close() // first: who sees that the lock is free finds nobody listening
	h.host.claim.release(why)
}

func (h projectParts) exists() bool { return h.host.claim.exists() }

func (h projectParts) listen() error {
	p, lock := h.host.claim.of()
	if lock == nil {
		return nil
	}
	return h.sockets.open(h.life.ctx, p)
}

func (h projectParts) unlisten(all bool) {
	if all {
		h.sockets.disconnect()
	} else {
		h.sockets.close()
	}
}

func (h projectParts) open(ctx context.Context) (*openHub, error) {
	p, lock := h.host.claim.of()
	return openProject(ctx, hubOptions{
		settings: h.settings, log: h.log, project: p, lock: lock, notified: h.notified, editorFiles: &h.editorFiles,
	})
}

func (h projectParts) vacantFor() time.Duration { return h.vacant.lasts() }

func (h projectParts) superseded() bool { return h.builds.superseded() }

func (h projectParts) met() <-chan struct{} { return h.builds.changed }

func (h projectParts) idleAfter() time.Duration {
	c, err := h.settings.Config()
	if err != nil { // health says what is wrong
		return config.DefaultDaemonIdle
	}
	return c.DaemonIdle
}

func (h projectParts) interruptsAlone() bool {
	c, err := h.settings.Config()
	return err == nil && c.WhenAlone == config.AloneInterrupt
}

func (h projectParts) noteStop() {
	p, lock := h.host.claim.of()
	if lock == nil {
		return
	}
	if err := p.MarkStopped(); err != nil {
		h.log.Debug("the stop could not be noted", "err", err)
	}
}

func (h projectParts) unavailable(err error) error {
	p, _ := h.host.claim.of()
	if errors.Is(err, context.Canceled) {
		err = errEnding
	}
	return unavailable(p, err)
}
