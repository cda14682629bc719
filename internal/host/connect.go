package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/logging"
)

// A Connection is a connection to the project's hub, which may be in this
// process.
type Connection struct {
	*client.Client
	host   *host           // nil: another process is the hub
	served <-chan struct{} // closed when the host has nothing more to do with the connection
}

// Connect connects to the hub that runs. Where none does it starts a daemon, if
// the configuration wants one, or else this process is the hub until close.
func Connect(ctx context.Context, s *hubprocess.Settings, log *logging.Log) (*Connection, error) {
	p, err := s.Project()
	if err != nil {
		return nil, err
	}
	problem := ""
	var pause hubprocess.Pause
	for deadline := time.Now().Add(s.StartWithin()); ; {
		c, err := hubprocess.Dial(ctx, s, p)
		if err == nil {
			return &Connection{Client: c}, nil
		}
		if !hubprocess.MayComeYet(err) {
			return nil, err
		}
		if problem == "" && hubprocess.WantsDaemon(s) {
			if err := hubprocess.EnsureDaemon(ctx, s, p); err == nil {
				continue
			} else if ctx.Err() != nil {
				return nil, err
			} else {
				problem = fmt.Sprintf("no daemon could be started, so what runs here ends with this process: %v", err)
				log.Error(problem)
			}
		}
		claimed := claimProject(s)
		if !claimed.held() {
			return hostHere(ctx, s, log, claimed, problem)
		}
		if time.Now().After(deadline) {
			var silent *hubprocess.SilentError
			if errors.As(err, &silent) {
				return nil, silent
			}
			return nil, unavailable(p, claimed.why())
		}
		if err := pause.Wait(ctx); err != nil { // it has just begun, or is ending
			return nil, err
		}
	}
}

// hostHere makes this process the hub, and its first client.
func hostHere(ctx context.Context, s *hubprocess.Settings, log *logging.Log, c *claim, problem string) (*Connection, error) {
	h := newHost(s, log, c, config.HubEmbedded)
	h.problem = problem
	h.begin(ctx, true)
	if _, err := h.Hub(ctx); err != nil {
		h.close()
		return nil, err
	}
	pipe, served := h.pipe()
	connection, err := client.Dial(ctx, client.OverTransport(pipe, frame.LSP), client.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		h.close()
		return nil, err
	}
	return &Connection{connection, h, served}, nil
}

// Here reports whether the hub is in this process.
func (c *Connection) Here() bool { return c.host != nil }

// Close ends the connection, and the hub if it is here. What others who joined
// it have under way may end before, unless somebody interrupts that; note is
// told that it is waited for.
func (c *Connection) Close(interrupts <-chan os.Signal, note func(string)) {
	c.Client.Close()
	if c.host == nil {
		return
	}
	defer c.host.close()
	select {
	case <-c.served: // or it would be taken for one of others
	case <-interrupts:
		return
	}
	if !c.host.linger.editorGone() || !c.host.busy() {
		return
	}
	note("others have joined and have agents at work; waiting for them (C-c ends it)")
	for c.host.busy() {
		select {
		case <-c.host.idle:
		case <-interrupts:
			return
		case <-c.host.life.ctx.Done(): // it has ended, or the others have gone
			return
		}
	}
}
