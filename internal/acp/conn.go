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

	"github.com/duet-rpc/duet-rpc/frame"
)

// A Handler takes what an agent sends. Update, Request, Response, Notice, Garbage and TooLong
// are called by the goroutine that reads, one after the other: the agent is read no faster than
// they return. Their bytes are valid until then.
type Handler struct {
	// Update is given params.sessionId and params.update of each session/update, as they are
	// written. repaired says that the line was no UTF-8.
	Update func(session, update []byte, repaired bool)
	// Request gets a request before it is served. It returns false to refuse it: there are too many.
	Request func(method string, params []byte) bool
	// Serve answers a request that Request has not refused. Each call has a goroutine of its
	// own; ctx ends with the connection, or when the agent takes the request back. An error
	// that is no *Error is an internal error. The result may be a Reply, also beside an error.
	Serve func(ctx context.Context, method string, params json.RawMessage) (any, error)
	// Response gets a response before the call returns; result is nil for an error.
	Response func(id, result []byte)
	// Notice is given every other notification.
	Notice func(method string, params []byte)
	// Garbage is given a line that is no message.
	Garbage func(line []byte)
	// TooLong gets the length of a line over MaxLine, which is dropped.
	TooLong func(length int64)
}

// A Reply is a result, and what is to be done when the response has been written.
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

// Error implements error.
func (e *Error) Error() string {
	if text, err := json.Marshal(e); err == nil {
		return string(text)
	}
	return fmt.Sprintf("code %d: %s", e.Code, e.Message)
}

// Codes of errors that are the protocol's own.
const (
	CodeAuthRequired     = -32000
	CodeResourceNotFound = -32002
)

// IsAuthRequired reports whether an agent refused a request because it needs a sign-in.
func IsAuthRequired(err error) bool {
	var answered *Error
	return errors.As(err, &answered) && answered.Code == CodeAuthRequired
}

// InvalidParams is the error of a request whose parameters are wrong.
func InvalidParams(why error) *Error {
	return &Error{Code: jsonrpc2.CodeInvalidParams, Message: "Invalid params", Data: map[string]string{"error": why.Error()}}
}

// MethodNotFound is the error of a request for a method that there is not.
func MethodNotFound(method string) *Error {
	return &Error{Code: jsonrpc2.CodeMethodNotFound, Message: "Method not found", Data: map[string]string{"method": method}}
}

// InternalError is an error without a code of its own.
func InternalError(text string) *Error {
	return &Error{Code: jsonrpc2.CodeInternalError, Message: text}
}

// ErrClosed is the error of a call whose response can no longer come.
var ErrClosed = errors.New("the agent has closed its output")

// A Conn is a connection with an agent, which reads and writes a JSON-RPC message a line. Its
// methods may be called from any goroutine.
type Conn struct {
	reader
	in     io.Writer
	ctx    context.Context // of requests of the agent
	end    context.CancelFunc
	ended  chan struct{}
	served sync.WaitGroup

	writing sync.Mutex // held while a line is written

	mu      sync.Mutex // guards the fields below; held while ended is closed
	last    int64      // id of the last call
	calls   map[string]chan response
	serving map[string]context.CancelFunc // requests of the agent, by id
}

type response struct {
	result json.RawMessage
	err    *Error
}

// NewConn makes a connection that writes to an agent's stdin, each line with one call. Read
// reads the agent.
func NewConn(in io.Writer, h Handler) *Conn {
	c := &Conn{in: in, ended: make(chan struct{}), calls: make(map[string]chan response), serving: make(map[string]context.CancelFunc)}
	c.ctx, c.end = context.WithCancel(context.Background())
	c.handler, c.conn = h, c
	return c
}

// Read reads an agent's output to its end, and waits until its requests have been served: their
// contexts end. It is called once.
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

// Done is closed when the agent's output has ended, and all of it was taken.
func (c *Conn) Done() <-chan struct{} { return c.ended }

// Call calls a method of an agent. The error is an *Error if the agent has answered with one,
// ErrClosed if it will not answer, the error of ctx, or that of writing to the agent. If ctx
// ends first, the agent gets $/cancel_request.
func Call[R any](ctx context.Context, c *Conn, method string, params any) (R, error) {
	var result R
	raw, err := c.call(ctx, method, params)
	if err == nil && len(raw) > 0 {
		if err := json.Unmarshal(raw, &result); err != nil {
			return result, fmt.Errorf("the answer to %s cannot be read: %w", method, err)
		}
	}
	return result, err
}

func (c *Conn) call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	answer := make(chan response, 1)
	c.mu.Lock()
	c.last++
	id := strconv.FormatInt(c.last, 10)
	c.calls[id] = answer
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
	select { // all that was read has been taken
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

// A message is one of ours.
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
	defer c.mu.Unlock()
	if answer := c.calls[string(id)]; answer != nil {
		delete(c.calls, string(id))
		answer <- r
	}
}

// serve serves a request of the agent, whose bytes it may keep.
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
	_ = c.write(m) // the agent has gone, which is noticed where it is read
}

// takenBack ends a request that the agent no longer wants to be answered.
func (c *Conn) takenBack(params []byte) {
	id := frame.Member(params, "requestId")
	c.mu.Lock()
	defer c.mu.Unlock()
	if cancel := c.serving[string(id)]; cancel != nil {
		cancel()
	}
}
