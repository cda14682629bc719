package acpagent

import (
	"errors"
	"strings"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/acpagent/schema"
	"github.com/duet-rpc/duet-rpc/internal/wire"
	"github.com/duet-rpc/duet-rpc/server"
)

// notFound says that there is no such session.
func notFound(id string) error {
	return server.NewError(schema.CodeResourceNotFound, "Resource not found: no session has the id "+id, map[string]string{"sessionId": id})
}

// refusedFor is refused for a method that names a session.
func refusedFor(id string, err error) error {
	if errors.Is(err, client.Kind("session_not_found")) {
		return notFound(id)
	}
	return refused(err)
}

// refused is an error of the hub as the client is told it.
func refused(err error) error {
	var e *client.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, client.ErrTooLong):
		return server.NewError(jsonrpc2.CodeInvalidParams, strings.TrimPrefix(err.Error(), "client: "), nil)
	case errors.Is(err, client.Kind("session_not_found")):
		return server.NewError(schema.CodeResourceNotFound, "Resource not found: "+message(err), nil)
	case errors.As(err, &e):
		if e.Code == jsonrpc2.CodeInvalidParams {
			return server.NewError(e.Code, e.Message, nil)
		}
		return server.NewError(jsonrpc2.CodeInternalError, message(err), nil)
	}
	return server.NewError(jsonrpc2.CodeInternalError, "Duet's hub does not answer; `duet-rpc daemon status` says how it is: "+err.Error(), nil)
}

// message is what the hub says, as a sentence, or what else went wrong.
func message(err error) string {
	if r, ok := wire.RefusalOf(err); ok {
		return r.Message
	}
	return err.Error()
}
