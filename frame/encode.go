package frame

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"

	"github.com/sourcegraph/jsonrpc2"
)

// Encode is json.Marshal without HTML escapes. It replaces two things that raw JSON may contain
// but no peer may receive with U+FFFD. These are bytes that are not UTF-8, and escapes of lone
// surrogates, for which jsonrpc.el drops a message. The result has no line end.
func Encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	body := bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
	if !utf8.Valid(body) { // within strings: the code above checked the rest
		body = bytes.ToValidUTF8(body, []byte("\ufffd"))
	}
	return mendSurrogates(body), nil
}

// mendSurrogates replaces each escape \ud800 … \udfff in valid JSON that is not half of a pair
// by \ufffd, in place.
func mendSurrogates(b []byte) []byte {
	for i := 0; i < len(b); {
		backslash := bytes.IndexByte(b[i:], '\\')
		if backslash < 0 {
			break
		}
		i += backslash
		switch {
		case surrogate(b, i) == 0:
			i += 2 // also over an escaped backslash
		case surrogate(b, i) == 'h' && surrogate(b, i+6) == 'l':
			i += 12
		default:
			copy(b[i:], `\ufffd`)
			i += 6
		}
	}
	return b
}

// surrogate reports whether b[i:] begins with the escape of a high ('h') or a low ('l')
// surrogate, or neither (0).
func surrogate(b []byte, i int) byte {
	if i+6 > len(b) || b[i] != '\\' || b[i+1] != 'u' || b[i+2]|0x20 != 'd' {
		return 0
	}
	switch c := b[i+3] | 0x20; {
	case c == '8' || c == '9' || c == 'a' || c == 'b':
		return 'h'
	case c >= 'c' && c <= 'f':
		return 'l'
	}
	return 0
}

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
	b, err := Encode(v)
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
