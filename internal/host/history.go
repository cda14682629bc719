package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/handlers"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/database"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/server"
)

// errNoHub is what a hub over a snapshot says to whoever wants to change something.
var errNoHub = domain.Errorf(domain.KindUnavailable, "no hub runs here, so nothing can be changed; `duet-rpc daemon start` starts one")

// errChanged is what a read says after a hub has begun to write to the database. Its answer
// could be wrong.
var errChanged = domain.Errorf(domain.KindUnavailable, "another process began to change the database while it was read; try again")

// IsChanged reports whether what a [History] was asked failed since a hub has begun to write
// meanwhile, so that it can be asked again.
func IsChanged(err error) bool { // which came through a connection, with its message
	return err != nil && strings.Contains(err.Error(), errChanged.Message)
}

// errOldFormat is what a reader that has little time says to a database that is copied to
// be read.
var errOldFormat = domain.Errorf(domain.KindUnavailable, "the database was made by an earlier version; `duet-rpc daemon start` brings it up to date")

// History connects to a hub of the moment in this process, which answers what is
// asked of the project's history while no hub runs. It reads the database in place, or a
// copy of one of an earlier format unless quick is set. It does not take the project's
// lock, recovers and starts nothing, and whoever wants to be the hub may begin at any
// moment. known is false where nothing is kept,
// or somebody has begun to be the hub meanwhile, who can be asked. end ends it.
func History(ctx context.Context, s *hubprocess.Settings, p project.Project, quick bool) (c *client.Client, end func(), known bool, err error) {
	live, err := s.LiveConfig(p)
	if err != nil {
		return nil, nil, true, err
	}
	current, err := live.Current(false)
	if err != nil {
		return nil, nil, true, err
	}
	refuse := database.Refusals{Change: errNoHub, Changed: errChanged}
	if quick {
		refuse.Old = errOldFormat
	}
	// Who reads what is printed may go at any moment, and a copy is to be removed.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	quiet := slog.New(slog.DiscardHandler)
	h, err := hub.Open(ctx, hub.Options{
		OpenStore: func(ctx context.Context, opts store.Options) (store.Store, error) {
			return database.Snapshot(ctx, p, opts, refuse)
		},
		Database: p.Database(), Root: p.Root, Agents: live, Limits: current.Limits, Getenv: os.Getenv, Logger: quiet, History: true,
		Executors: func(catalog.Daemon) hub.Executors { return noExecutors{} },
	})
	switch {
	case errors.Is(err, database.ErrNone), database.IsChanging(err):
		return nil, nil, false, nil
	case err != nil:
		return nil, nil, true, unavailable(p, err)
	}
	c, end, err = serveInside(ctx, s, h, func() { _ = h.Close() })
	return c, end, true, err
}

// serveInside connects to a hub of the moment, which nobody else can reach. end
// closes it by closeHub; it was closed if there is an error.
func serveInside(ctx context.Context, s *hubprocess.Settings, h *hub.Hub, closeHub func()) (c *client.Client, end func(), err error) {
	quiet := slog.New(slog.DiscardHandler)
	ctx, cancel := context.WithCancel(ctx)
	reg := server.NewRegistry()
	handlers.RegisterDomain(reg, handlers.Domain{
		Hub: func(context.Context) (*hub.Hub, error) { return h, nil },
		NextHub: func(ctx context.Context, _ *hub.Hub) (*hub.Hub, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
		Version: s.Version, Stop: func(bool) {}, Clients: func() int { return 1 }, Kind: config.HubEmbedded, Logger: quiet, Configuration: s.ConfigFor,
	})
	near, far := server.Pipe()
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.New(reg, server.Options{Logger: quiet}).Serve(ctx, far, frame.LSP) // its end is ours
	}()
	stop := func() {
		cancel()
		<-served
		closeHub()
	}
	c, err = client.Dial(ctx, client.OverTransport(near, frame.LSP), client.WithReconnect(false), client.WithLogger(quiet))
	if err != nil {
		stop()
		return nil, nil, err
	}
	return c, func() { c.Close(); stop() }, nil
}

// Reach connects to the hub of a project, or where none runs to its [History], of which
// kept tells. end ends the connection.
func Reach(ctx context.Context, s *hubprocess.Settings, p project.Project, quick bool, opts ...client.Option) (c *client.Client, end func(), kept bool, err error) {
	c, err = hubprocess.Dial(ctx, s, p, opts...)
	if err != nil && hubprocess.IsNone(err) {
		past, end, known, pastErr := History(ctx, s, p, quick)
		switch {
		case pastErr != nil:
			return nil, nil, false, pastErr
		case known:
			return past, end, true, nil
		}
		if c, err = hubprocess.Dial(ctx, s, p, opts...); hubprocess.IsNone(err) { // else somebody is the hub by now
			err = fmt.Errorf("nothing is kept of this project yet, and %w; `duet-rpc prompt` begins a session", err)
		}
	}
	if err != nil {
		return nil, nil, false, err
	}
	return c, func() { c.Close() }, false, nil
}

// noExecutors are those of a hub that starts nothing.
type noExecutors struct{}

func (noExecutors) Acquire(context.Context, catalog.LeaseRequest) (catalog.Lease, error) {
	return nil, errNoHub
}
func (noExecutors) HasRoom(catalog.LeaseRequest) bool { return false }
func (noExecutors) Count() int                        { return 0 }
