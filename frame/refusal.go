package frame

import (
	"errors"
	"fmt"

	"github.com/sourcegraph/jsonrpc2"
)

// A Reason names why a frame was refused. It travels to the peer as
// error.data.reason.
type Reason string

// The reasons. NDJSON has only oversize, invalid-utf8 and invalid-json; LSP has all of them. They
// are raised in header.go and lsp.go, in ndjson.go, and, for bodies of both, in message.go.
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

// A Refusal is the error for a frame that was not accepted. The connection continues; the reader
// must send exactly one error response for it.
type Refusal struct {
	Reason Reason
	// Detail describes what was wrong and what is right. It never quotes the payload.
	Detail string
	// ID is the raw JSON id of a request that was refused for its media type, if
	// its body is valid. It is nil in every other case: the body of a frame over
	// the limit is skipped unread. It is valid until the next call of Next.
	ID []byte
}

// Code returns the JSON-RPC error code for the refusal: -32700 if the message could not be
// decoded, -32600 if the frame broke a rule.
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

// ErrTimeout reports that a frame did not arrive whole within Limits.Timeout. The Reader drops
// the part that arrived and the rest that follows. It needs no response.
var ErrTimeout = errors.New("frame: read timeout inside a frame")

func refuse(reason Reason, format string, args ...any) *Refusal {
	return &Refusal{Reason: reason, Detail: fmt.Sprintf(format, args...)}
}
