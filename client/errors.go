package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/server"
)

var (
	// ErrTimeout matches the error of a call that took longer than its own timeout. It is also a
	// context.DeadlineExceeded for errors.Is. A context with an earlier deadline gives its own
	// error instead.
	ErrTimeout error = timeoutError{}
	// ErrDisconnected matches every error caused by a lost connection; errors.As with a
	// *DisconnectedError gives details.
	ErrDisconnected = errors.New("disconnected")
	// ErrClosed matches every error of a closed Client.
	ErrClosed = errors.New("the client is closed")
	// ErrTooLong matches the error for a request or notification that is longer than
	// WithMaxMessage allows. It was not sent.
	ErrTooLong = errors.New("the message is too long")
)

type timeoutError struct{}

func (timeoutError) Error() string   { return "timeout" }
func (timeoutError) Timeout() bool   { return true }
func (timeoutError) Temporary() bool { return true }

// Is makes it match context.DeadlineExceeded, for callers that wait with contexts.
func (timeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// A DisconnectedError reports that the connection was lost, or that there is none. It matches
// ErrDisconnected with errors.Is.
type DisconnectedError struct {
	// Sent reports that the request was handed to the connection before the loss: the server may
	// have served it. If false, the server has not seen the request, so it is safe to send it
	// again.
	Sent bool
	// Cause is the reason for the loss, if known.
	Cause error
}

func (e *DisconnectedError) Error() string {
	text := "disconnected, the request was not sent"
	if e.Sent {
		text = "disconnected, the request may have been served"
	}
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return text
}

// Is makes it match ErrDisconnected.
func (e *DisconnectedError) Is(target error) bool { return target == ErrDisconnected }

// Unwrap returns the cause.
func (e *DisconnectedError) Unwrap() error { return e.Cause }

// An Error is the server's error response. A handler given to [Client.Handle] may return one
// too: it goes to the server as it is.
type Error struct {
	Code    int64           `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"` // nil if there is none
}

func (e *Error) Error() string { return fmt.Sprintf("%s (%d)", e.Message, e.Code) }

// Kind returns the member kind of the data, which names the condition in words for any family of
// methods; "" if there is none.
func (e *Error) Kind() Kind {
	var data struct {
		Kind Kind `json:"kind"`
	}
	if json.Unmarshal(e.Data, &data) != nil {
		return ""
	}
	return data.Kind
}

// Is makes errors.Is(err, client.Kind("task_not_found")) work.
func (e *Error) Is(target error) bool {
	kind, ok := target.(Kind)
	return ok && kind != "" && e.Kind() == kind
}

// A Kind names a condition, such as "task_not_found". It is an error so that errors.Is can match
// it.
type Kind string

func (k Kind) Error() string { return string(k) }

// KindOf returns the kind of the [Error] in err, or "".
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind()
	}
	return ""
}

// errorFrom reads the error of a response, even if it is malformed.
func errorFrom(raw []byte) *Error {
	e := &Error{}
	if json.Unmarshal(raw, e) != nil {
		return &Error{Code: jsonrpc2.CodeInternalError, Message: "the server answered with a malformed error"}
	}
	return e
}

// wireError converts a handler's error for the server. Only an *Error, or one of the server
// package's, goes to the server as it is.
func wireError(err error) error {
	if e, ok := errors.AsType[*Error](err); ok {
		var data any
		if len(e.Data) > 0 {
			data = e.Data
		}
		return server.NewError(e.Code, e.Message, data)
	}
	return err
}
