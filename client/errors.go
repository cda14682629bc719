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
	// ErrTimeout is in every error of a call that took longer than its own
	// timeout. It also is a context.DeadlineExceeded for errors.Is. A context
	// whose deadline is earlier gives its own error instead.
	ErrTimeout error = timeoutError{}
	// ErrDisconnected is in every error that a lost connection is the cause
	// of; errors.As with a *DisconnectedError tells more.
	ErrDisconnected = errors.New("disconnected")
	// ErrClosed is in every error of a Client that was closed.
	ErrClosed = errors.New("the client is closed")
	// ErrTooLong is in the error for a request or notification that is longer
	// than WithMaxMessage allows. It was not sent.
	ErrTooLong = errors.New("the message is too long")
	// ErrOneSubscription is what a second Subscribe gets on a connection of
	// lines: events carry no subscription there, so nobody could tell whose
	// they are.
	ErrOneSubscription = errors.New("client: a connection of lines (NDJSON) has one subscription at a time: " +
		"close the other one, dial another connection, or use LSP framing")
)

type timeoutError struct{}

func (timeoutError) Error() string   { return "timeout" }
func (timeoutError) Timeout() bool   { return true }
func (timeoutError) Temporary() bool { return true }

// Is makes it what callers that wait with contexts look for.
func (timeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// A DisconnectedError says that the connection was lost, or is not there. It
// is an ErrDisconnected for errors.Is.
type DisconnectedError struct {
	// Sent says that the request was handed to the connection before it was
	// lost: the server may have served it. If false, the server has not seen
	// it, and it may be sent again whatever it does.
	Sent bool
	// Cause is why there is no connection, as far as it is known.
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

// Is makes it an ErrDisconnected.
func (e *DisconnectedError) Is(target error) bool { return target == ErrDisconnected }

// Unwrap is the cause.
func (e *DisconnectedError) Unwrap() error { return e.Cause }

// An Error is what the server answered instead of a result. A handler given
// to [Client.Handle] may return one too: it goes to the server as it is.
type Error struct {
	Code    int64           `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"` // nil if there is none
}

func (e *Error) Error() string { return fmt.Sprintf("%s (%d)", e.Message, e.Code) }

// Kind is the member kind of the data, which names the condition in words
// whatever the family of the method; "" if there is none.
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

// A Kind names a condition, such as "task_not_found". It is an error so that
// errors.Is can look for it.
type Kind string

func (k Kind) Error() string { return string(k) }

// KindOf is the kind of the [Error] in err, or "".
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind()
	}
	return ""
}

// errorFrom reads the error of a response, whatever the server made of it.
func errorFrom(raw []byte) *Error {
	e := &Error{}
	if json.Unmarshal(raw, e) != nil {
		return &Error{Code: jsonrpc2.CodeInternalError, Message: "the server answered with a malformed error"}
	}
	return e
}

// wireError is what the server is told of a handler's error. Only an *Error,
// or one of the server package's, is meant for it.
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
