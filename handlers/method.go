package handlers

import (
	"context"
	"errors"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/dialect"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/server"
)

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
		result, err := h(d.Workspaces.context(ctx), hb, p)
		if err != nil {
			return none, f.Error(hb.OrEnding(ctx, err))
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
