package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/rawjson"
)

// Codes beyond those of the JSON-RPC specification, which package jsonrpc2 has.
const (
	CodeCancelled      = -32800 // the request was cancelled by the peer, or by the end of the connection
	CodeOverloaded     = -32040 // too many long-running requests at once
	CodeResultTooLarge = -32041 // the result does not fit into one message
)

// NewError makes an error with its own code, which a handler returns to the peer. data, if not
// nil, must encode to JSON.
func NewError(code int64, message string, data any) *jsonrpc2.Error {
	e := &jsonrpc2.Error{Code: code, Message: message}
	if data != nil {
		raw, err := rawjson.Encode(data)
		if err != nil {
			raw = []byte("null")
		}
		e.Data = (*json.RawMessage)(&raw)
	}
	return e
}

// ParamError is the data of a -32602: the wrong parameter, the expected value and the received
// one.
type ParamError struct {
	// Param is the path of the parameter, such as "level" or "items[2].name";
	// "params" if it is the parameters as a whole.
	Param    string   `json:"param"`
	Expected string   `json:"expected"`
	Received string   `json:"received"`
	Accepted []string `json:"accepted,omitempty"` // the accepted values, if they can be listed
}

// InvalidParam makes the error for one wrong parameter.
func InvalidParam(p ParamError) *jsonrpc2.Error {
	return NewError(jsonrpc2.CodeInvalidParams,
		fmt.Sprintf("Invalid params: %s: expected %s, received %s", p.Param, p.Expected, p.Received), p)
}

type reasonData struct {
	Reason string `json:"reason"`
}

type kindData struct {
	Kind string `json:"kind"`
}

func invalidRequest(reason, detail string) *jsonrpc2.Error {
	return NewError(jsonrpc2.CodeInvalidRequest, "Invalid Request: "+detail, reasonData{reason})
}

func methodNotFound(name, hint string) *jsonrpc2.Error {
	name = frame.Excerpt(name)
	if hint != "" {
		hint = " (" + hint + ")"
	}
	return NewError(jsonrpc2.CodeMethodNotFound, "Method not found: "+name+hint,
		struct {
			Method string `json:"method"`
		}{name})
}

func overloaded(limit int) *jsonrpc2.Error {
	return NewError(CodeOverloaded,
		fmt.Sprintf("Overloaded: %d long-running requests are in flight on this connection; wait for one to end, or cancel one", limit),
		kindData{"overloaded"})
}

func resultTooLarge(limit int) *jsonrpc2.Error {
	return NewError(CodeResultTooLarge,
		fmt.Sprintf("Result too large: it does not fit into a message of %d bytes; ask for less", limit),
		kindData{"result_too_large"})
}

// wireError converts a handler's error to a wire error. No other function does that. An error
// that is not a *jsonrpc2.Error may contain paths or secrets, so the peer learns only that the
// method failed. The error of a cancelled request has CodeCancelled; the handler may add data.
func wireError(ctx context.Context, err error) *jsonrpc2.Error {
	var wire *jsonrpc2.Error
	switch {
	case ctx.Err() != nil && !(errors.As(err, &wire) && wire.Code == CodeCancelled):
		return NewError(CodeCancelled, "Request cancelled", kindData{"cancelled"})
	case errors.As(err, &wire):
		return wire
	}
	return NewError(jsonrpc2.CodeInternalError, "Internal error: the request failed; the log has the cause", nil)
}
