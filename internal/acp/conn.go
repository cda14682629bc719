// Package acp implements the Agent Client Protocol (https://agentclientprotocol.com): its
// messages, and a client's or an agent's end of a connection. Unknown members are ignored.
//
// Only this package knows the versions of the protocol. A caller asks an agent as version 2 does, and
// gets its states and questions in that form ([Initialized], [Prompt], [QuestionReport]). An agent
// writes its messages in the form of its [Client].
package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/internal/rawjson"
)

// A Handler handles an agent's messages. The reading goroutine calls Update, Request, Response,
// Notice, Garbage and TooLong one after the other, and does not read on before they return. Their
// bytes are valid until then.
type Handler struct {
	// Update receives the raw params.sessionId and params.update of each session/update. repaired
	// means that the line was not valid UTF-8.
	Update func(session, update []byte, repaired bool)
	// Request receives a request before it is served. It returns false to refuse it because too
	// many are open.
	Request func(method string, params []byte) bool
	// Serve answers a request that Request has not refused. Each call has a goroutine of its own.
	// ctx ends with the connection, or when the agent cancels the request. An error other than
	// *Error is sent as an internal error. The result may be a Reply, also beside an error.
	Serve func(ctx context.Context, method string, params json.RawMessage) (any, error)
	// Response receives a response before the call returns; result is nil for an error.
	Response func(id, result []byte)
	// Notice receives every other notification.
	Notice func(method string, params []byte)
	// Garbage receives a line that is not a message.
	Garbage func(line []byte)
	// TooLong receives the length of a line over MaxLine, which is dropped.
	TooLong func(length int64)
}

// A Reply is a result with a function to call after the response was written.
type Reply struct {
	Result any
	Then   func()
}

// An Error is an error response. Its codes are those of JSON-RPC 2.0 and of the protocol.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

func (e *Error) Error() string {
	if text, err := json.Marshal(e); err == nil {
		return string(text)
	}
	return fmt.Sprintf("code %d: %s", e.Code, e.Message)
}

// Error codes of the protocol itself.
const (
	CodeAuthRequired     = -32000
	CodeResourceNotFound = -32002
)

// IsAuthRequired reports whether an agent refused a request because it needs a sign-in.
func IsAuthRequired(err error) bool {
	var answered *Error
	return errors.As(err, &answered) && answered.Code == CodeAuthRequired
}

// InvalidParams returns the error for a request with wrong parameters.
func InvalidParams(why error) *Error {
	return &Error{Code: jsonrpc2.CodeInvalidParams, Message: "Invalid params", Data: map[string]string{"error": why.Error()}}
}

// MethodNotFound returns the error for a request with an unknown method.
func MethodNotFound(method string) *Error {
	return &Error{Code: jsonrpc2.CodeMethodNotFound, Message: "Method not found", Data: map[string]string{"method": method}}
}

// InternalError returns an error without a code of its own.
func InternalError(text string) *Error {
	return &Error{Code: jsonrpc2.CodeInternalError, Message: text}
}

// ErrClosed is the error of a call that can no longer get a response.
var ErrClosed = errors.New("the agent has closed its output")

// A Conn is a connection to an agent that reads and writes one JSON-RPC message per line. Its
// methods may be called from any goroutine.
type Conn struct {
	reader
	in     io.Writer
	ctx    context.Context // of the agent's requests
	end    context.CancelFunc
	ended  chan struct{}
	served sync.WaitGroup

	writing sync.Mutex // locked while a line is written

	mu      sync.Mutex // guards the fields below; locked while ended is closed
	last    int64      // id of the last call
	calls   map[string]pendingCall
	serving map[string]context.CancelFunc // the agent's requests, by id
}

// A pendingCall is a call without a response yet.
type pendingCall struct {
	answer chan response
	taken  func(result json.RawMessage) // the reading goroutine calls it
}

type response struct {
	result json.RawMessage
	err    *Error
}

// NewConn makes a connection that writes to an agent's stdin, each line with one call to Write.
// Read reads the agent's output.
func NewConn(in io.Writer, h Handler) *Conn {
	c := &Conn{in: in, ended: make(chan struct{}), calls: make(map[string]pendingCall), serving: make(map[string]context.CancelFunc)}
	c.ctx, c.end = context.WithCancel(context.Background())
	c.handler, c.conn = h, c
	return c
}

// Read reads an agent's output to its end. It then ends the contexts of the agent's requests and
// waits until these were served. Call it once.
func (c *Conn) Read(out io.Reader) {
	c.run(out)
	c.mu.Lock()
	close(c.ended)
	c.mu.Unlock()
	c.end()
	c.served.Wait()
}

// background runs f in a goroutine that Read waits for, unless the agent's output has ended.
func (c *Conn) background(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.ended:
	default:
		c.served.Go(f)
	}
}

// Done returns a channel that is closed when the agent's output has ended and was handled.
func (c *Conn) Done() <-chan struct{} { return c.ended }

// Call calls a method of an agent. The error is an *Error if the agent answered with one,
// ErrClosed if it can no longer answer, the error of ctx, or a write error. If ctx ends first,
// the agent gets $/cancel_request.
func Call[R any](ctx context.Context, c *Conn, method string, params any) (R, error) {
	return CallInOrder[R](ctx, c, method, params, nil)
}

// CallInOrder is Call, except that the reading goroutine passes the result to taken before it
// handles a later message. An update that the agent sent after its response thus comes after it.
func CallInOrder[R any](ctx context.Context, c *Conn, method string, params any, taken func(result R)) (R, error) {
	var result R
	raw, err := c.call(ctx, method, params, func(raw json.RawMessage) {
		var result R
		if taken != nil && (len(raw) == 0 || json.Unmarshal(raw, &result) == nil) {
			taken(result)
		}
	})
	if err == nil && len(raw) > 0 {
		if err := json.Unmarshal(raw, &result); err != nil {
			return result, fmt.Errorf("the answer to %s cannot be read: %w", method, err)
		}
	}
	return result, err
}

func (c *Conn) call(ctx context.Context, method string, params any, taken func(result json.RawMessage)) (json.RawMessage, error) {
	answer := make(chan response, 1)
	c.mu.Lock()
	c.last++
	id := strconv.FormatInt(c.last, 10)
	c.calls[id] = pendingCall{answer, taken}
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.calls, id)
	}()
	if err := c.write(message{ID: json.RawMessage(id), Method: method, Params: params}); err != nil {
		return nil, err
	}
	select {
	case r := <-answer:
		return r.value()
	case <-c.ended:
	case <-ctx.Done():
		c.background(func() { _ = c.Notify("$/cancel_request", map[string]json.RawMessage{"requestId": json.RawMessage(id)}) })
	}
	select { // all that was read has been handled
	case r := <-answer:
		return r.value()
	default:
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return nil, ErrClosed
}

func (r response) value() (json.RawMessage, error) {
	if r.err != nil {
		return nil, r.err
	}
	return r.result, nil
}

// Notify sends a notification.
func (c *Conn) Notify(method string, params any) error {
	return c.write(message{Method: method, Params: params})
}

// A message is an outgoing message.
type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  any             `json:"params,omitempty"`
	Result  any             `json:"result,omitempty"`
	Error   *Error          `json:"error,omitempty"`
}

func (c *Conn) write(m message) error {
	m.Version = "2.0"
	line, err := json.Marshal(m)
	if err != nil {
		return err
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	_, err = c.in.Write(append(line, '\n'))
	return err
}

// answered passes a response on to its call.
func (c *Conn) answered(id []byte, r response) {
	c.mu.Lock()
	call, open := c.calls[string(id)]
	delete(c.calls, string(id))
	c.mu.Unlock()
	if !open {
		return
	}
	if r.err == nil {
		call.taken(r.result)
	}
	call.answer <- r
}

// serve serves a request of the agent. It may keep the bytes.
func (c *Conn) serve(id json.RawMessage, method string, params json.RawMessage) {
	ctx, cancel := context.WithCancel(c.ctx)
	c.mu.Lock()
	c.serving[string(id)] = cancel
	c.mu.Unlock()
	c.served.Go(func() {
		defer cancel()
		result, err := c.handler.Serve(ctx, method, params)
		c.mu.Lock()
		delete(c.serving, string(id))
		c.mu.Unlock()
		then := func() {}
		if r, ok := result.(Reply); ok {
			result, then = r.Result, r.Then
		}
		c.reply(id, result, err)
		then()
	})
}

func (c *Conn) reply(id json.RawMessage, result any, err error) {
	m := message{ID: id, Result: result}
	if err != nil {
		if m.Result = nil; !errors.As(err, &m.Error) {
			m.Error = InternalError(err.Error())
		}
	}
	if m.Error == nil && m.Result == nil {
		m.Result = struct{}{}
	}
	_ = c.write(m) // the agent has exited, which the reader notices
}

// takenBack ends a request that the agent has cancelled.
func (c *Conn) takenBack(params []byte) {
	id := rawjson.Member(params, "requestId")
	c.mu.Lock()
	defer c.mu.Unlock()
	if cancel := c.serving[string(id)]; cancel != nil {
		cancel()
	}
}
