package frame

import (
	"errors"
	"fmt"

	"github.com/sourcegraph/jsonrpc2"
)

// A Reason names why a frame was refused. It travels to the peer as
// error.data.reason.
type Reason string

// The reasons. All are of LSP framing but oversize, invalid-utf8 and
// invalid-json, which NDJSON has too.
const (
	ReasonOversize               Reason = "oversize"                 // the body, or line, is over Limits.MaxFrame
	ReasonHeaderTooLarge         Reason = "header-too-large"         // the header section is over Limits.MaxHeader
	ReasonMissingContentLength   Reason = "missing-content-length"   //
	ReasonBadContentLength       Reason = "bad-content-length"       // no number of bytes, or two that differ
	ReasonUnsupportedContentType Reason = "unsupported-content-type" // not application/vscode-jsonrpc or another application/*jsonrpc
	ReasonBadCharset             Reason = "bad-charset"              // not UTF-8
	ReasonLengthMismatch         Reason = "length-mismatch"          // the input ended within a frame, or bytes came where a header must begin
	ReasonInvalidUTF8            Reason = "invalid-utf8"             // the body
	ReasonInvalidJSON            Reason = "invalid-json"             // the body is not one JSON value, or nests deeper than MaxDepth
)

// A Refusal is the error for a frame that was not accepted. The connection
// goes on; the peer is owed exactly one error response for it.
type Refusal struct {
	Reason Reason
	// Detail says in words what was wrong and what would be right. It never
	// quotes the payload.
	Detail string
	// ID is the raw JSON id of a request that was refused for its media type, if
	// its body is valid. It is nil in every other case: the body of a frame over
	// the limit is skipped unread. It is valid until the next call of Next.
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

// ErrTimeout reports that a frame did not arrive whole within Limits.Timeout.
// What had come of it was dropped, and so is what else comes of it; the peer is
// owed no answer.
var ErrTimeout = errors.New("frame: read timeout inside a frame")

func refuse(reason Reason, format string, args ...any) *Refusal {
	return &Refusal{Reason: reason, Detail: fmt.Sprintf(format, args...)}
}
