// Package frame turns bytes into JSON-RPC messages and messages into bytes.
//
// A [Framing] is a value that defines where one message ends and the next one
// begins. [LSP] puts a Content-Length header before each message, [NDJSON]
// puts each message on a line, and a program may bring another. A [Reader]
// takes messages of any framing from a byte stream. It enforces [Limits],
// checks that every body is UTF-8 and valid JSON in the same pass that finds
// the members of the JSON-RPC envelope, and resynchronises after input that is not
// a frame:
//
//	r := frame.NewReader(src, frame.LSP, frame.Limits{})
//	var m frame.Message
//	for {
//		err := r.Next(&m)
//		var refusal *frame.Refusal
//		switch {
//		case err == nil:                   // m is a JSON value, its members found
//		case errors.As(err, &refusal):     // answer it, go on reading
//		case errors.Is(err, frame.ErrTimeout): // log it, go on reading
//		default:                           // io.EOF or a broken source: the end
//		}
//	}
//
// No input stops a Reader: a refused frame costs one [Refusal], and the next good
// frame is read. Only the end or a failure of the source is final.
//
// Refusals come from header.go and lsp.go (headers), ndjson.go (lines) and message.go (bodies);
// refusal.go has their codes.
//
// The package knows JSON-RPC's envelope but no method and no meaning; package
// server builds an endpoint on it.
package frame

import "strconv"

// A Framing defines where one message ends and the next begins in a byte stream. [LSP] and
// [NDJSON] are two; a program may bring others. A Framing has no state, so connections may share
// it. Values of the same type must be comparable.
type Framing interface {
	// String is the framing's name, for logs.
	String() string
	// AppendHeader appends to dst the header of a body of n bytes.
	AppendHeader(dst []byte, n int) []byte
	// AppendTrailer appends to dst the trailer of a body.
	AppendTrailer(dst []byte) []byte
	// OneLine reports whether a body must not contain a line end. The writer then makes sure of
	// that, and may bound the length of outgoing messages.
	OneLine() bool
	// NewSplitter makes a Splitter for one stream.
	NewSplitter() Splitter
}

// A Splitter finds the bodies of messages in a stream. It belongs to one
// [Reader] and is used by one goroutine.
type Splitter interface {
	// Next returns the next body, a span of in.Bytes that it has discarded from in and has not
	// changed. The body may be invalid JSON. Next calls in.Fill while there is no whole frame,
	// and in.EndFrame when there is one. It returns in's errors after it has dropped the bytes
	// that it can no longer use. It returns a [*Refusal] for a frame that needs an error
	// response. After a Refusal or [ErrTimeout] the next call continues.
	Next(in *Input) (body []byte, err error)
	// NotJSON reports that the last body was not valid JSON, so its length may also be wrong.
	NotJSON()
}

// LSP is the framing of the Language Server Protocol: a header section with a Content-Length, a
// blank line, the body. Writers emit exactly "Content-Length: N\r\n\r\n": Emacs' jsonrpc.el
// looks for a header in 100 bytes and hangs on anything much longer.
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

func (lspFraming) OneLine() bool { return false }

func (lspFraming) NewSplitter() Splitter { return &lspSplitter{maxSkip: maxSkip} }

type ndjsonFraming struct{}

func (ndjsonFraming) String() string { return "ndjson" }

func (ndjsonFraming) AppendHeader(dst []byte, _ int) []byte { return dst }

func (ndjsonFraming) AppendTrailer(dst []byte) []byte { return append(dst, '\n') }

func (ndjsonFraming) OneLine() bool { return true }

func (ndjsonFraming) NewSplitter() Splitter { return &lineSplitter{} }

// Append appends one whole frame that carries body, a JSON value. Where
// f.OneLine, body must not contain a newline (compact JSON has none).
func Append(dst []byte, f Framing, body []byte) []byte {
	dst = f.AppendHeader(dst, len(body))
	dst = append(dst, body...)
	return f.AppendTrailer(dst)
}

// Detect recognises the framing of a stream by its first bytes: NDJSON if the first byte that is
// not white space is '{' or '[', else LSP. It reports false while head is all white space.
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
