package handlers

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/dialect"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/history"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/restricted"
	"github.com/duet-rpc/duet-rpc/server"
)

// A Domain is what the methods that work with agents stand on. All functions
// may be called from any goroutine.
type Domain struct {
	// Hub waits for the store to open. If there is none, its error, a
	// *domain.Error of KindUnavailable, says why.
	Hub     func(ctx context.Context) (*hub.Hub, error)
	Version string
	Now     func() time.Time
	// Stop begins to end the process and returns at once; the reply that
	// tells of it is queued when it is called. With force, running work is not
	// waited for.
	Stop func(force bool)
	// TakeHistory takes over the history of a database of the project's that was
	// set aside, by the name of its directory; where tells where it is then.
	TakeHistory func(ctx context.Context, directory string) (taken history.Result, where string, err error)
	Clients     func() int      // how many connections there are
	Kind        string          // of the hub, as the configuration calls it: daemon or embedded
	Sockets     func() []string // where it listens; may be nil
	Logger      *slog.Logger
	// Workspaces, if set, knows who does not trust the workspace.
	Workspaces *Workspaces
}

// RegisterDomain registers the methods of tasks, sessions and executors. flush waits
// until the event.task… notifications of all that has happened were sent, or its
// context ends.
func RegisterDomain(reg *server.Registry, d Domain) (flush func(context.Context)) {
	if d.Now == nil {
		d.Now = time.Now
	}
	if d.Logger == nil {
		d.Logger = slog.New(slog.DiscardHandler)
	}
	b := registerTasks(reg, d)
	registerDaemon(reg, d)
	registerHistory(reg, d)
	registerSessions(reg, d)
	registerConversation(reg, d)
	registerApprovals(reg, d)
	registerRules(reg, d)
	w := newWatching()
	registerSubscribe(reg, d, w)
	registerExecutor(reg, d)
	registerTerminals(reg, d, w)
	return b.flushed
}

// A checker is a parameter type that has rules beyond its schema. The error is
// one of server.InvalidParam.
type checker interface{ check() error }

// handle registers a method that needs the hub. Parameters are checked before
// the hub is waited for, and what the hub refuses is told in the family's
// codes.
func handle[P, R any](reg *server.Registry, d Domain, f dialect.Family, name string,
	h func(ctx context.Context, hb *hub.Hub, p P) (R, error), options ...server.Option,
) {
	server.Handle(reg, name, func(ctx context.Context, p P) (R, error) {
		var none R
		if c, ok := any(p).(checker); ok {
			if err := c.check(); err != nil {
				return none, err
			}
		}
		hb, err := d.Hub(ctx)
		if err != nil {
			return none, f.Error(err)
		}
		if d.Workspaces.isRestricted(server.ConnFrom(ctx)) {
			ctx = restricted.Context(ctx)
		}
		result, err := h(ctx, hb, p)
		if err != nil {
			return none, f.Error(err)
		}
		return result, nil
	}, options...)
}

// need refuses an empty parameter.
func need(param, value string) error {
	if strings.TrimSpace(value) != "" {
		return nil
	}
	return server.InvalidParam(server.ParamError{Param: param, Expected: "a string that is not empty", Received: "an empty string"})
}

// first is the first error.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// success is the result of what either works or is an error.
type success struct {
	Success bool `json:"success"`
}

// hubKind is the kind of an error of the domain, or "".
func hubKind(err error) string {
	var e *domain.Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}
