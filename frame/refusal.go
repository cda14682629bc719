package frame

import (
	"errors"
	"fmt"

	"github.com/sourcegraph/jsonrpc2"
)

// A Reason names why a frame was refused. It travels to the peer as
// error.data.reason.
type Reason string

// The reasons of the wire's refusal table (DESIGN section 3).
const (
	ReasonOversize               Reason = "oversize"
	ReasonHeaderTooLarge         Reason = "header-too-large"
	ReasonMissingContentLength   Reason = "missing-content-length"
	ReasonBadContentLength       Reason = "bad-content-length"
	ReasonUnsupportedContentType Reason = "unsupported-content-type"
	ReasonBadCharset             Reason = "bad-charset"
	ReasonLengthMismatch         Reason = "length-mismatch"
	ReasonInvalidUTF8            Reason = "invalid-utf8"
	ReasonInvalidJSON            Reason = "invalid-json"
)

// A Refusal is the error for a frame that was not accepted. The connection
// goes on; the peer is owed exactly one error response for it.
type Refusal struct {
	Reason Reason
	// Detail says in words what was wrong and what would be right. It never
	// quotes the payload.
	Detail string
	// ID is the raw JSON id of the refused request where it could be read,
	// else nil. It is valid until the next call of Next.
	ID []byte
}

// Code is the JSON-RPC error code for the refusal: -32700 where the message
// could not be made out, -32600 where the frame broke a rule.
func (r *Refusal) Code() int64 {
	switch r.Reason {
	case ReasonLengthMismatch, ReasonInvalidUTF8, ReasonInvalidJSON:
		return jsonrpc2.CodeParseError
	}
	return jsonrpc2.CodeInvalidRequest
}

func (r *Refusal) Error() string {
	return fmt.Sprintf("frame refused: %s: %s", r.Reason, r.Detail)
}

// ErrTimeout reports that a frame did not arrive whole in time. What had come
// of it was dropped; nothing goes to the peer.
var ErrTimeout = errors.New("frame: read timeout inside a frame")

func refuse(reason Reason, format string, args ...any) *Refusal {
	return &Refusal{Reason: reason, Detail: fmt.Sprintf(format, args...)}
}
