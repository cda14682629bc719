package acp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/rawjson"
)

const (
	// MaxLine limits a line of an agent, in bytes. Longer lines are dropped.
	MaxLine = 32 << 20
	// maxRequest limits a request of an agent, in bytes.
	maxRequest = 10<<20 - 64
	// MaxDepth limits how deep arrays and objects of an agent's message nest. Every client can
	// decode and print what nests no deeper, also inside an event.
	MaxDepth = 100
	// MaxRequests limits the open requests of an agent.
	MaxRequests = 1024
	keepLine    = 1 << 20 // a larger line buffer is freed
)

// A reader reads an agent's output in order, with bounded memory, and passes on the messages.
type reader struct {
	handler Handler
	conn    *Conn

	message  frame.Message
	repaired bool // the line was not valid UTF-8
}

var (
	errRequestTooLong  = InternalError("the request is longer than 10 MiB")
	errTooDeep         = InternalError(fmt.Sprintf("the message nests deeper than %d levels; send less of it, or send it as text", MaxDepth))
	errTooManyRequests = InternalError("too many requests are open")
	errNoUTF8          = InternalError("the message is not valid UTF-8, so what runs could differ from what the user sees")
	errMalformed       = InternalError("the agent answered with a malformed error")
)

// run reads an agent's output to its end.
func (f *reader) run(agent io.Reader) {
	lines := lineReader{r: bufio.NewReaderSize(agent, 64<<10)}
	for {
		line, length, err := lines.next()
		switch {
		case err != nil:
			return
		case line == nil:
			f.handler.TooLong(length)
		default:
			f.line(line)
		}
	}
}

func (f *reader) line(line []byte) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return
	}
	m := &f.message
	f.repaired = false
	if !frame.ParseWithin(line, m, MaxDepth) {
		if utf8.Valid(line) {
			f.unreadable(line)
			return
		}
		repaired := bytes.ToValidUTF8(line, []byte("\uFFFD"))
		if len(repaired) > MaxLine {
			f.handler.TooLong(int64(len(line)))
			return
		}
		if !frame.ParseWithin(repaired, m, MaxDepth) {
			f.unreadable(repaired)
			return
		}
		line, f.repaired = repaired, true
	}
	hasID := m.ID != nil && string(m.ID) != "null"
	switch {
	case m.Kind != frame.Object, m.JSONRPC != nil && m.JSONRPC[0] != '"':
		f.handler.Garbage(line)
	case m.Method != nil:
		f.call(line, hasID)
	case hasID:
		f.answer()
	default:
		f.handler.Garbage(line)
	}
}

// unreadable handles a line that is not JSON, or nests too deep. It answers a request that nests too
// deep, and fails the call that such a response answers.
func (f *reader) unreadable(line []byte) {
	m := &f.message
	if frame.Parse(line, m) && m.Kind == frame.Object && m.ID != nil && string(m.ID) != "null" {
		if m.Method != nil {
			f.conn.reply(bytes.Clone(m.ID), nil, errTooDeep)
		} else {
			f.handler.Response(m.ID, nil)
			f.conn.answered(m.ID, response{err: errTooDeep})
		}
	}
	f.handler.Garbage(line)
}

// call handles a request or a notification of the agent.
func (f *reader) call(line []byte, hasID bool) {
	m := &f.message
	if m.Method[0] != '"' {
		f.handler.Garbage(line)
		return
	}
	method := m.Method[1 : len(m.Method)-1]
	if bytes.IndexByte(method, '\\') >= 0 { // a slash may be written as \/
		var name string
		json.Unmarshal(m.Method, &name)
		method = []byte(name)
	}
	isUpdate := string(method) == MethodSessionUpdate
	if isUpdate {
		update := rawjson.Member(m.Params, "update")
		if update == nil {
			f.handler.Garbage(line)
		} else {
			f.handler.Update(rawjson.Member(m.Params, "sessionId"), update, f.repaired)
		}
	}
	switch {
	case hasID:
		f.request(line, string(method))
	case isUpdate:
	case string(method) == "$/cancel_request":
		f.conn.takenBack(m.Params)
	default:
		f.handler.Notice(string(method), m.Params)
	}
}

// request handles a request of the agent.
func (f *reader) request(line []byte, method string) {
	m := &f.message
	id := json.RawMessage(bytes.Clone(m.ID))
	switch {
	case len(line) > maxRequest:
		f.conn.reply(id, nil, errRequestTooLong)
	case f.repaired && (method == MethodRequestPermission || method == MethodElicit):
		f.conn.reply(id, nil, errNoUTF8)
		f.handler.Garbage(line)
	case !f.handler.Request(method, m.Params):
		f.conn.reply(id, nil, errTooManyRequests)
	default:
		f.conn.serve(id, method, bytes.Clone(m.Params))
	}
}

// answer handles a response of the agent.
func (f *reader) answer() {
	m := &f.message
	f.handler.Response(m.ID, m.Result)
	r := response{}
	if m.Error != nil && string(m.Error) != "null" {
		if r.err = new(Error); json.Unmarshal(m.Error, r.err) != nil {
			r.err = errMalformed
		}
	} else if string(m.Result) != "null" {
		r.result = bytes.Clone(m.Result)
	}
	f.conn.answered(m.ID, r)
}

// A lineReader reads lines with bounded memory.
type lineReader struct {
	r   *bufio.Reader
	buf []byte
}

// next returns the next line, valid until the next call. For a line that is too long it returns
// nil and the length. The last line needs no newline.
func (l *lineReader) next() (line []byte, length int64, err error) {
	if cap(l.buf) > keepLine {
		l.buf = nil
	}
	l.buf = l.buf[:0]
	tooLong := false
	for {
		part, err := l.r.ReadSlice('\n')
		length += int64(len(part))
		whole := err == nil
		switch {
		case whole && length == int64(len(part)):
			return part, length, nil
		case length > MaxLine+1:
			tooLong, l.buf = true, nil
		default:
			l.buf = append(l.buf, part...)
		}
		switch {
		case whole || err != bufio.ErrBufferFull && length > 0:
			if tooLong {
				return nil, length, nil
			}
			return l.buf, length, nil
		case err != bufio.ErrBufferFull:
			return nil, 0, err
		}
	}
}
