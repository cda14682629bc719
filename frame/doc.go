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
// The package knows JSON-RPC's envelope but no method and no meaning; package
// server builds an endpoint on it.
package frame
