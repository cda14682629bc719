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
	return server.NewError(jsonrpc2.CodeInternalError, "Duet's hub does not answer: "+err.Error(), nil)
}

// message is what the hub says, as a sentence, or what else went wrong.
func message(err error) string {
	if r, ok := wire.RefusalOf(err); ok {
		return r.Message
	}
	return err.Error()
}

// failed is how a turn that failed ends.
func (a *agent) failed(o outcome) error {
	why := o.err
	if why == "" {
		why = "the turn has failed"
	}
	data := map[string]any{"errorCode": o.code}
	if o.code != authRequired {
		return server.NewError(jsonrpc2.CodeInternalError, why, data)
	}
	data["authMethods"] = append(a.client.signInMethods(), authMethods(o.ways)...)
	return server.NewError(schema.CodeAuthRequired, "Authentication required: "+why, data)
}

// authRequired is the error code of a session whose agent wants somebody to sign in.
const authRequired = "AGENT_AUTH_REQUIRED"

// authMethods are the ways of an agent to sign in by a request. What it does in a terminal
// is run by Duet, in one that the client opens.
func authMethods(ways []wire.AuthMethod) (list []schema.AuthMethod) {
	for _, way := range ways {
		if way.Type != "terminal" {
			list = append(list, schema.AuthMethod{ID: way.ID, Name: way.Name, Description: way.Description})
		}
	}
	return list
}
