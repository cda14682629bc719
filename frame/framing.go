package frame

import "strconv"

// A Framing says where one message ends and the next begins on a byte stream.
// The values are [LSP] and [NDJSON]. A Framing has no state and may be shared.
type Framing interface {
	// String is the framing's name, for logs.
	String() string
	// AppendHeader appends to dst what stands before a body of n bytes.
	AppendHeader(dst []byte, n int) []byte
	// AppendTrailer appends to dst what stands after a body.
	AppendTrailer(dst []byte) []byte

	// next finds the next body in r's buffer, reading as needed.
	next(r *Reader) (body []byte, err error)
}

// LSP is the framing of the Language Server Protocol: a header section with a
// Content-Length, a blank line, the body. Writers emit exactly
// "Content-Length: N\r\n\r\n": Emacs' jsonrpc.el looks for a header in 100
// bytes and gives up for ever on anything much fancier.
var LSP Framing = lspFraming{}

// NDJSON is one JSON value a line. Lines end in LF; a CR in front of it, and
// blank lines, are tolerated.
var NDJSON Framing = ndjsonFraming{}

type lspFraming struct{}

func (lspFraming) String() string { return "lsp" }

func (lspFraming) AppendHeader(dst []byte, n int) []byte {
	dst = append(dst, "Content-Length: "...)
	dst = strconv.AppendInt(dst, int64(n), 10)
	return append(dst, "\r\n\r\n"...)
}

func (lspFraming) AppendTrailer(dst []byte) []byte { return dst }

type ndjsonFraming struct{}

func (ndjsonFraming) String() string { return "ndjson" }

func (ndjsonFraming) AppendHeader(dst []byte, _ int) []byte { return dst }

func (ndjsonFraming) AppendTrailer(dst []byte) []byte { return append(dst, '\n') }

// Append appends one whole frame that carries body, a JSON value. For NDJSON,
// body must not contain a newline (compact JSON has none).
func Append(dst []byte, f Framing, body []byte) []byte {
	dst = f.AppendHeader(dst, len(body))
	dst = append(dst, body...)
	return f.AppendTrailer(dst)
}

// Detect tells the framing of a stream from its first bytes: NDJSON if the
// first byte that is no white space is '{' or '[', else LSP. It reports false
// while head is all white space.
func Detect(head []byte) (Framing, bool) {
	for _, c := range head {
		switch c {
		case ' ', '\t', '\r', '\n':
		case '{', '[':
			return NDJSON, true
		default:
			return LSP, true
		}
	}
	return nil, false
}
