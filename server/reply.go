package server

import (
	"bytes"
	"encoding/json"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/frame"
)

// replies takes the answers to requests: a connection sends them, a batch collects them. id and
// result are borrowed.
type replies interface {
	result(id, result []byte)
	fail(id []byte, e *jsonrpc2.Error)
}

// result and fail make Conn the replies of single requests.
func (c *Conn) result(id, result []byte) {
	if result, ok := c.inOneMessage(id, result); ok {
		c.out.result(id, result)
	} else {
		c.fail(id, resultTooLarge(c.srv.opts.MaxLine))
	}
}

// inOneMessage returns the result in the form to send, if it fits into one message.
func (c *Conn) inOneMessage(id, result []byte) (fit []byte, ok bool) {
	if !c.oneLine {
		return result, true
	}
	const envelope = 64 // and some room
	result = compactLine(result)
	return result, len(result) <= c.srv.opts.MaxLine-len(id)-envelope
}

func (c *Conn) fail(id []byte, e *jsonrpc2.Error) { c.out.fail(id, e) }

// sendMessage queues a whole message.
func (c *Conn) sendMessage(message []byte) {
	if c.oneLine {
		message = compactLine(message)
		if len(message) > c.srv.opts.MaxLine {
			message = frame.ErrorBody(nil, resultTooLarge(c.srv.opts.MaxLine))
		}
	}
	c.out.body(message)
}

// compactLine makes JSON fit for a line.
func compactLine(b []byte) []byte {
	if bytes.IndexByte(b, '\n') < 0 {
		return b
	}
	var out bytes.Buffer
	if json.Compact(&out, b) != nil {
		return []byte("null")
	}
	return out.Bytes()
}
