package frame

import (
	"encoding/json"
	"strconv"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/internal/rawjson"
)

const (
	responseOpen  = `{"jsonrpc":"2.0","id":`
	responseValue = `,"result":`
	responseError = `,"error":`
)

// AppendResult appends the frame of a response: id and result are raw JSON
// and go out as they are; an empty one is null. For NDJSON they must not contain
// a newline.
func AppendResult(dst []byte, f Framing, id, result []byte) []byte {
	if len(result) == 0 {
		result = null
	}
	dst = AppendResultHead(dst, f, id, len(result))
	dst = append(dst, result...)
	return AppendResultTail(dst, f)
}

// AppendResultHead appends the part of the frame before a result of n bytes, for a caller that
// writes a large result without copying it.
func AppendResultHead(dst []byte, f Framing, id []byte, n int) []byte {
	if len(id) == 0 {
		id = null
	}
	dst = f.AppendHeader(dst, len(responseOpen)+len(id)+len(responseValue)+n+1)
	dst = append(dst, responseOpen...)
	dst = append(dst, id...)
	return append(dst, responseValue...)
}

// AppendResultTail appends the part of the frame after a result.
func AppendResultTail(dst []byte, f Framing) []byte {
	return f.AppendTrailer(append(dst, '}'))
}

// ResultBody returns the message of a response, without a frame.
func ResultBody(id, result []byte) []byte {
	if len(id) == 0 {
		id = null
	}
	if len(result) == 0 {
		result = null
	}
	b := make([]byte, 0, len(responseOpen)+len(id)+len(responseValue)+len(result)+1)
	b = append(append(b, responseOpen...), id...)
	b = append(append(b, responseValue...), result...)
	return append(b, '}')
}

// AppendError appends the frame of an error response. An empty id is null. Its error object has
// only code, message and data: with any other member jsonrpc.el waits forever.
func AppendError(dst []byte, f Framing, id []byte, e *jsonrpc2.Error) []byte {
	return Append(dst, f, ErrorBody(id, e))
}

// ErrorBody returns the message of an error response, without a frame.
func ErrorBody(id []byte, e *jsonrpc2.Error) []byte {
	if len(id) == 0 {
		id = null
	}
	b := append([]byte(responseOpen), id...)
	b = append(b, responseError+`{"code":`...)
	b = strconv.AppendInt(b, e.Code, 10)
	b = append(b, `,"message":`...)
	b = append(b, encodeOrNull(e.Message)...)
	if e.Data != nil {
		b = append(b, `,"data":`...)
		b = append(b, encodeOrNull(e.Data)...)
	}
	return append(b, `}}`...)
}

var null = []byte("null")

// encodeOrNull encodes a string or raw JSON; raw JSON that is not valid becomes
// null.
func encodeOrNull(v any) []byte {
	b, err := rawjson.Encode(v)
	if err != nil {
		return null
	}
	return b
}

// Wire converts the refusal to a JSON-RPC error: the canonical message, the detail, and
// data.reason.
func (r *Refusal) Wire() *jsonrpc2.Error {
	canonical := "Invalid Request"
	if r.Code() == jsonrpc2.CodeParseError {
		canonical = "Parse error"
	}
	data := json.RawMessage(`{"reason":"` + string(r.Reason) + `"}`)
	return &jsonrpc2.Error{Code: r.Code(), Message: canonical + ": " + r.Detail, Data: &data}
}
