// Package native registers the methods of dialects: forms of the native methods, whose handlers it calls
// in the same process.
package native

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/server"
)

// Methods are the native methods for a dialect, and the hub for what is no form of one of them. All
// functions may be called from any goroutine.
type Methods struct {
	Registry *server.Registry // has the native methods, and gets those of the dialect
	Hub      func(ctx context.Context) (*hub.Hub, error)
	// Context returns the context of a request with the trust and the environment of its connection.
	Context func(ctx context.Context) context.Context
	Logger  *slog.Logger
}

// Over registers a method as a form of a native one, with whose options it runs. to converts the
// parameters, and from the result. Errors get the codes and names of the family.
func Over[P, NP, NR, R any](
	m Methods, f protocol.Family, name, native, doc string, to func(P) NP, from func(context.Context, NR) R,
) {
	h, of := server.Handler[NP, NR](m.Registry, native)
	options := []server.Option{server.Doc(doc)}
	switch {
	case of.Releasing:
		options = append(options, server.Releasing())
	case of.LongRunning:
		options = append(options, server.LongRunning())
	}
	server.Handle(m.Registry, name, func(ctx context.Context, p P) (R, error) {
		var none R
		if err := check(p); err != nil {
			return none, f.Error(err)
		}
		r, err := h(ctx, to(p))
		if err != nil {
			return none, inFamily(f, err)
		}
		return from(ctx, r), nil
	}, options...)
}

// Compose registers a method that is made of several native ones ([Call]).
func Compose[P, R any](
	m Methods, f protocol.Family, name, doc string, h func(ctx context.Context, p P) (R, error), options ...server.Option,
) {
	server.Handle(m.Registry, name, func(ctx context.Context, p P) (R, error) {
		var none R
		if err := check(p); err != nil {
			return none, f.Error(err)
		}
		r, err := h(ctx, p)
		if err != nil {
			return none, inFamily(f, err)
		}
		return r, nil
	}, append(options, server.Doc(doc))...)
}

// Handle registers a method that works on the hub.
func Handle[P, R any](
	m Methods, f protocol.Family, name, doc string, h func(ctx context.Context, hb *hub.Hub, p P) (R, error), options ...server.Option,
) {
	Compose(m, f, name, doc, func(ctx context.Context, p P) (R, error) {
		hb, err := m.Hub(ctx)
		if err != nil {
			var none R
			return none, err
		}
		r, err := h(m.Context(ctx), hb, p)
		return r, hb.OrEnding(ctx, err)
	}, options...)
}

// Call returns the handler of a native method. It panics if there is no method with this name and these types,
// so a dialect calls it when it registers its own methods.
func Call[NP, NR any](m Methods, name string) func(context.Context, NP) (NR, error) {
	h, _ := server.Handler[NP, NR](m.Registry, name)
	return h
}

// KindOf returns the kind of a *domain.Error, or "".
func KindOf(err error) string {
	var e *domain.Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}

func check(params any) error {
	if p, checks := params.(interface{ Check() error }); checks {
		return p.Check()
	}
	return nil
}

// inFamily converts an error of a native method for a family.
func inFamily(f protocol.Family, err error) error {
	var e *domain.Error
	if errors.As(err, &e) {
		return f.Error(err)
	}
	var wire *jsonrpc2.Error
	if errors.As(err, &wire) && wire.Code == jsonrpc2.CodeInvalidParams {
		return f.InvalidParam(wire)
	}
	return err
}

// Same returns its argument: a result that a dialect has in the native form.
func Same[R any](_ context.Context, r R) R { return r }

// Abandon ends a turn whose request was cancelled. If the connection ended, the turn continues. It
// returns the error of the request, which failed with err.
func (m Methods) Abandon(ctx context.Context, h *hub.Hub, s domain.TurnInSession, err error) error {
	if ctx.Err() == nil {
		return err
	}
	name := domain.TaskName(s.Task)
	data := cancelledTurn{Kind: "cancelled", Turn: "continues", TaskID: name, SessionID: s.HumanLayerSession}
	select {
	case <-server.ConnFrom(ctx).Stopping():
		return server.NewError(server.CodeCancelled, fmt.Sprintf(
			"Request cancelled: its connection ends, and the run goes on as %s; task.get and getConversation return its state and text, "+
				"task.cancel ends it", name), data)
	default:
	}
	data.Turn = "interrupted"
	if _, err := h.Interrupt(context.WithoutCancel(ctx), s.HumanLayerSession, "the request was cancelled"); err != nil {
		m.Logger.Warn("cannot interrupt the run of a cancelled request", "task", name, "err", err)
	}
	return server.NewError(
		server.CodeCancelled, fmt.Sprintf("Request cancelled: its run %s is interrupted; continueSession continues it", name), data,
	)
}

// cancelledTurn is the data of the error of a cancelled request that waited for a turn.
type cancelledTurn struct {
	Kind      string `json:"kind"`
	Turn      string `json:"run"` // continues or interrupted
	TaskID    string `json:"task_id"`
	SessionID string `json:"session_id"`
}
