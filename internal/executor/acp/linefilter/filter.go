// Package linefilter stands between what an agent prints and the SDK of the Agent
// Client Protocol: it reads lines with bounded memory, keeps order, and lets nothing
// through that would make the SDK end the connection.
package linefilter

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"unicode/utf8"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/frame"
)

const (
	// MaxLine is the longest line of an agent that is looked at, in bytes.
	MaxLine = 32 << 20
	// maxSDKLine is the longest line that the SDK is given: its own limit, a
	// scanner of 10 MiB, ends the connection.
	maxSDKLine = 10<<20 - 64
	// MaxRequests is how many requests of an agent may be open at once.
	MaxRequests = 1024
	keepLine    = 1 << 20 // the largest line buffer that is kept
)

// A Filter stands between an agent's stdout and the SDK. It takes the updates
// itself, one after the other, so that the agent is read no faster than the
// hub takes the reports, and no response overtakes an update; and it lets
// nothing through that would make the SDK end the connection, lose a response
// or log a payload.
type Filter struct {
	Update func(update []byte, repaired bool) // params.update of a session/update, valid until it returns
	// Request tells of a request before the SDK gets it; params are valid until it
	// returns. False: there are too many.
	Request  func(method string, params []byte) bool
	Response func(id, result []byte)            // a response goes to the SDK; its id and result, valid until it returns
	Notice   func(method string, params []byte) // any other notification, valid until it returns; nil: they are left out
	Elicited func(params []byte)                // params of an elicitation/complete, valid until it returns
	Refuse   func(id []byte, reason error)      // answer a request
	Garbage  func(line []byte)                  // a line that is no message, valid until it returns
	TooLong  func(length int64)                 // a line of more than MaxLine was left out
	SDK      io.Writer                          // gets what is left

	message  frame.Message
	repaired bool // the line was no UTF-8
}

var (
	errMessageTooLong  = errors.New("the message is longer than 10 MiB")
	errTooManyRequests = errors.New("too many requests are open")
	errNoUTF8          = errors.New("the message is no UTF-8: what people would be shown is not what would run")
)

// Run filters what agent prints until it ends.
func (f *Filter) Run(agent io.Reader) error {
	lines := lineReader{r: bufio.NewReaderSize(agent, 64<<10)}
	for {
		line, length, err := lines.next()
		switch {
		case err != nil:
			return err
		case line == nil:
			f.TooLong(length)
		default:
			f.line(line)
		}
	}
}

func (f *Filter) line(line []byte) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return
	}
	m := &f.message
	f.repaired = false
	if !frame.Parse(line, m) {
		if utf8.Valid(line) {
			f.Garbage(line)
			return
		}
		repaired := bytes.ToValidUTF8(line, []byte("\uFFFD"))
		if len(repaired) > MaxLine {
			f.TooLong(int64(len(line)))
			return
		}
		if !frame.Parse(repaired, m) {
			f.Garbage(line)
			return
		}
		line, f.repaired = repaired, true
	}
	hasID := m.ID != nil && string(m.ID) != "null"
	switch {
	case m.Kind != frame.Object, m.JSONRPC != nil && m.JSONRPC[0] != '"':
		f.Garbage(line)
	case m.Method != nil:
		f.call(line, hasID)
	case hasID:
		f.answer(line)
	default:
		f.Garbage(line)
	}
}

// call is for a request or a notification of the agent.
func (f *Filter) call(line []byte, hasID bool) {
	m := &f.message
	if m.Method[0] != '"' {
		f.Garbage(line)
		return
	}
	method := m.Method[1 : len(m.Method)-1]
	if bytes.IndexByte(method, '\\') >= 0 { // a slash may be spelt \/
		var name string
		json.Unmarshal(m.Method, &name)
		method = []byte(name)
	}
	if string(method) == "session/update" {
		update := frame.Member(m.Params, "update")
		if update == nil {
			f.Garbage(line)
		} else {
			f.Update(update, f.repaired)
		}
	}
	switch {
	case hasID || string(method) == "session/update":
	case string(method) == "elicitation/complete":
		f.Elicited(m.Params)
	case f.Notice != nil:
		f.Notice(string(method), m.Params)
	}
	switch {
	case hasID && len(line) > maxSDKLine:
		f.Refuse(m.ID, errMessageTooLong)
	case hasID && f.repaired && (string(method) == "session/request_permission" || string(method) == "elicitation/create"):
		f.Refuse(m.ID, errNoUTF8)
		f.Garbage(line)
	case hasID && !f.Request(string(method), m.Params):
		f.Refuse(m.ID, errTooManyRequests)
	case hasID, string(method) == "$/cancel_request" && len(line) <= maxSDKLine:
		f.pass(line)
	}
	// The SDK knows no other notification, and ends the connection when too
	// many of them are queued.
}

// answer is for a response of the agent. Who waits for it always gets one.
func (f *Filter) answer(line []byte) {
	m := &f.message
	f.Response(m.ID, m.Result)
	switch failed := m.Error != nil && string(m.Error) != "null"; {
	case len(line) > maxSDKLine:
		f.pass(frame.ErrorBody(m.ID, &jsonrpc2.Error{Code: jsonrpc2.CodeInternalError, Message: errMessageTooLong.Error()}))
	case failed:
		var e struct {
			Code    int
			Message string
		}
		if json.Unmarshal(m.Error, &e) != nil {
			f.pass(frame.ErrorBody(m.ID, &jsonrpc2.Error{Code: jsonrpc2.CodeInternalError, Message: "the agent answered with a malformed error"}))
			return
		}
		f.pass(line)
	default:
		f.pass(line)
	}
}

// pass gives a line to the SDK. An error means that the SDK has ended, which
// who waits for it notices.
func (f *Filter) pass(line []byte) {
	f.SDK.Write(line)
	f.SDK.Write([]byte{'\n'})
}

// A lineReader reads lines with bounded memory.
type lineReader struct {
	r   *bufio.Reader
	buf []byte
}

// next returns the next line, valid until the call after it, or, for one that
// is too long, nil and its length. A last line needs no newline.
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
