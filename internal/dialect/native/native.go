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

// Methods are the native methods for a dialect. All functions may be called from any goroutine.
type Methods struct {
	Registry *server.Registry                            // has the native methods, and gets those of the dialect
	Hub      func(ctx context.Context) (*hub.Hub, error) // for a dialect's own notifications and tokens
	Logger   *slog.Logger
}

// Over registers a method as a form of a native one, with whose options it runs. to converts the
// parameters, and from the result. Errors get the codes and names of the family.
func Over[P, NP, NR, R any](
	m Methods, f protocol.Family, name, native, doc string, to func(P) NP, from func(context.Context, NR) R,
) {
	h, of := server.Handler[NP, NR](m.Registry, native)
	var options []server.Option
	switch {
	case of.Releasing:
		options = append(options, server.Releasing())
	case of.LongRunning:
		options = append(options, server.LongRunning())
	}
	Compose(m, f, name, doc, func(ctx context.Context, p P) (R, error) {
		r, err := h(ctx, to(p))
		if err != nil {
			var none R
			return none, err
		}
		return from(ctx, r), nil
	}, options...)
}

// Compose registers a method that calls native ones ([Call]): several of them, or one with other options.
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

// Work starts turns for methods that wait for the end of their work.
type Work struct {
	start     func(context.Context, protocol.StartParams) (protocol.Started, error)
	wait      func(context.Context, protocol.TurnParams) (protocol.TurnResult, error)
	interrupt func(context.Context, protocol.InterruptTurnParams) (protocol.InterruptTurnResult, error)
	logger    *slog.Logger
}

// NewWork returns the Work of a dialect, which calls it when it registers its methods.
func NewWork(m Methods) Work {
	return Work{
		start:     Call[protocol.StartParams, protocol.Started](m, "session.start"),
		wait:      Call[protocol.TurnParams, protocol.TurnResult](m, "turn.wait"),
		interrupt: Call[protocol.InterruptTurnParams, protocol.InterruptTurnResult](m, "turn.interrupt"),
		logger:    m.Logger,
	}
}

// Start starts a turn. It ignores the end of ctx: a request that is cancelled now must not leave an unknown turn behind.
func (w Work) Start(ctx context.Context, p protocol.StartParams) (domain.TurnInSession, error) {
	r, err := w.start(context.WithoutCancel(ctx), p)
	return r.Of, err
}

// End waits for the end of the work on a turn, and returns the last turn that worked for it. A cancelled request
// ends the turn.
func (w Work) End(ctx context.Context, s domain.TurnInSession) (protocol.Turn, error) {
	r, err := w.wait(ctx, protocol.TurnParams{Turn: protocol.Ref(s.HumanLayerSession)})
	if err != nil {
		err = w.Abandon(ctx, s, err)
	}
	return r.Turn, err
}

// Abandon ends a turn whose request was cancelled. If the connection ended, the turn continues. It
// returns the error of the request, which failed with err.
func (w Work) Abandon(ctx context.Context, s domain.TurnInSession, err error) error {
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
	if _, err := w.interrupt(context.WithoutCancel(ctx), protocol.InterruptTurnParams{
		Turn: protocol.Ref(s.HumanLayerSession), Reason: "the request was cancelled",
	}); err != nil {
		w.logger.Warn("cannot interrupt the run of a cancelled request", "task", name, "err", err)
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
