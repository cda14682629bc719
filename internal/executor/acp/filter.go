package acp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"unicode/utf8"

	"github.com/coder/acp-go-sdk"
	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/frame"
)

const (
	// maxAgentLine is the longest line of an agent that is looked at, in bytes.
	maxAgentLine = 32 << 20
	// maxSDKLine is the longest line that the SDK is given: its own limit, a
	// scanner of 10 MiB, ends the connection.
	maxSDKLine = 10<<20 - 64
	// maxAgentRequests is how many requests of an agent may be open at once.
	maxAgentRequests = 1024
	keepLine         = 1 << 20 // the largest line buffer that is kept
)

// A filter stands between an agent's stdout and the SDK. It takes the updates
// itself, one after the other, so that the agent is read no faster than the
// hub takes the reports, and no response overtakes an update; and it lets
// nothing through that would make the SDK end the connection, lose a response
// or log a payload.
type filter struct {
	update   func(update []byte, repaired bool) // params.update of a session/update, valid until it returns
	request  func() bool                        // a request goes to the SDK; false: there are too many
	response func()                             // a response goes to the SDK
	elicited func(params []byte)                // params of an elicitation/complete, valid until it returns
	refuse   func(id []byte, reason error)      // answer a request
	garbage  func(line []byte)
	tooLong  func(length int64)
	sdk      io.Writer

	message  frame.Message
	repaired bool // the line was no UTF-8
}

var (
	errMessageTooLong  = errors.New("the message is longer than 10 MiB")
	errTooManyRequests = errors.New("too many requests are open")
	errNoUTF8          = errors.New("the message is no UTF-8: what people would be shown is not what would run")
)

// run filters what agent prints until it ends.
func (f *filter) run(agent io.Reader) error {
	lines := lineReader{r: bufio.NewReaderSize(agent, 64<<10)}
	for {
		line, length, err := lines.next()
		switch {
		case err != nil:
			return err
		case line == nil:
			f.tooLong(length)
		default:
			f.line(line)
		}
	}
}

func (f *filter) line(line []byte) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return
	}
	m := &f.message
	f.repaired = false
	if !frame.Parse(line, m) {
		if utf8.Valid(line) {
			f.garbage(line)
			return
		}
		repaired := bytes.ToValidUTF8(line, []byte("\uFFFD"))
		if len(repaired) > maxAgentLine {
			f.tooLong(int64(len(line)))
			return
		}
		if !frame.Parse(repaired, m) {
			f.garbage(line)
			return
		}
		line, f.repaired = repaired, true
	}
	hasID := m.ID != nil && string(m.ID) != "null"
	switch {
	case m.Kind != frame.Object, m.JSONRPC != nil && m.JSONRPC[0] != '"':
		f.garbage(line)
	case m.Method != nil:
		f.call(line, hasID)
	case hasID:
		f.answer(line)
	default:
		f.garbage(line)
	}
}

// call is for a request or a notification of the agent.
func (f *filter) call(line []byte, hasID bool) {
	m := &f.message
	if m.Method[0] != '"' {
		f.garbage(line)
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
			f.garbage(line)
		} else {
			f.update(update, f.repaired)
		}
	}
	if string(method) == acp.ClientMethodElicitationComplete && !hasID {
		f.elicited(m.Params)
	}
	switch {
	case hasID && len(line) > maxSDKLine:
		f.refuse(m.ID, errMessageTooLong)
	case hasID && f.repaired && (string(method) == "session/request_permission" || string(method) == acp.ClientMethodElicitationCreate):
		f.refuse(m.ID, errNoUTF8)
		f.garbage(line)
	case hasID && !f.request():
		f.refuse(m.ID, errTooManyRequests)
	case hasID, string(method) == "$/cancel_request" && len(line) <= maxSDKLine:
		f.pass(line)
	}
	// The SDK knows no other notification, and ends the connection when too
	// many of them are queued.
}

// answer is for a response of the agent. Who waits for it always gets one.
func (f *filter) answer(line []byte) {
	m := &f.message
	f.response()
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
func (f *filter) pass(line []byte) {
	f.sdk.Write(line)
	f.sdk.Write([]byte{'\n'})
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
		case length > maxAgentLine+1:
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
