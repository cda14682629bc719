package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/rawjson"
)

// dispatch serves one message.
func (c *Conn) dispatch(m *frame.Message) {
	switch m.Kind {
	case frame.Object:
		c.serveOne(m, c)
		c.after.run()
	case frame.Array:
		c.serveBatch(m.Body)
	default:
		c.fail(nil, invalidRequest("not-an-object", "a message must be an object, or an array of them"))
	}
}

// serveBatch serves the requests of an array one after the other.
func (c *Conn) serveBatch(array []byte) {
	n := 0
	for range rawjson.Elements(array) {
		if n++; n > c.srv.opts.MaxBatch {
			c.fail(nil, invalidRequest("batch-too-large",
				fmt.Sprintf("a batch may hold %d requests; send several", c.srv.opts.MaxBatch)))
			return
		}
	}
	if n == 0 {
		c.fail(nil, invalidRequest("empty-batch", "a batch must hold at least one request"))
		return
	}
	b := &batch{c: c, waiting: 1}
	for element := range rawjson.Elements(array) {
		b.serve(element)
	}
	b.after(&c.after)
	b.release()
}

// serve serves one element of the array.
func (b *batch) serve(element []byte) {
	var m frame.Message
	frame.Parse(element, &m) // the array was valid, so this is
	if m.Kind != frame.Object {
		b.newSlot().fail(nil, invalidRequest("not-an-object", "each message of a batch must be an object"))
		return
	}
	to := b.newSlot()
	if m.ID != nil && b.full() {
		to.fail(m.ID, resultTooLarge(maxBatchReply))
		return
	}
	b.c.serveOne(&m, to)
}

// serveOne serves one object: a request, a notification, a response, or an invalid message.
func (c *Conn) serveOne(m *frame.Message, to replies) {
	if m.Method == nil && c.serveResponse(m) {
		return
	}
	notify := c.srv.opts.OnNotification
	if e := checkEnvelope(m); e != nil {
		c.log.Warn("invalid request", "detail", e.Message)
		switch {
		case frame.ValidID(m.ID):
			to.fail(m.ID, e)
		case notify == nil || m.ID != nil:
			to.fail(nil, e)
		}
		return
	}
	if notify != nil && m.ID == nil {
		if name := methodName(m); name != c.srv.opts.Cancellation.Method {
			notify(c, name, m.Params)
			return
		}
	}
	method := c.method(m)
	if method == nil {
		c.serveUnknown(m, methodName(m), to)
		return
	}
	if m.ID != nil && c.flights.has(m.ID) {
		to.fail(m.ID, invalidRequest("duplicate-id", "a request with this id is still in flight"))
		return
	}
	switch {
	case method.Final:
		c.startFinal(method, m, to)
		return
	case method.Releasing && c.startReleasing(method, m, to):
		return
	case method.LongRunning && !method.Releasing:
		c.startLong(method, m, to)
		return
	}
	if !method.raw && method.slow.Load() {
		c.out.flush() // earlier replies need not wait for this one
	}
	began := c.clock()
	result, err := c.invoke(c.inlineCtx, method, m.Params)
	if err == nil && m.ID != nil && began.IsZero() { // the common case
		to.result(m.ID, result)
		return
	}
	c.finish(method, m.ID, result, err, began, c.inlineCtx, to)
}

// method returns the method that m names, or nil. Most messages of a burst name the same method,
// so the last one is cached: methods are never removed.
func (c *Conn) method(m *frame.Message) *Method {
	if c.lastMethod != nil && string(m.Method) == string(c.lastName) {
		return c.lastMethod
	}
	name, _ := rawjson.Text(m.Method)
	if c.lastMethod = c.srv.reg.lookup(name); c.lastMethod != nil {
		c.lastName = append(c.lastName[:0], m.Method...)
	}
	return c.lastMethod
}

// methodName returns the name of the method of a message that checkEnvelope accepts.
func methodName(m *frame.Message) string {
	name, _ := rawjson.Text(m.Method)
	return string(name)
}

// checkEnvelope returns why m is not a request; nil if it is one.
func checkEnvelope(m *frame.Message) *jsonrpc2.Error {
	if m.ID != nil && !frame.ValidID(m.ID) {
		return invalidRequest("invalid-id-type", "id must be a string, a number or null")
	}
	if string(m.JSONRPC) != `"2.0"` {
		if version, ok := rawjson.Text(m.JSONRPC); !ok || string(version) != "2.0" {
			return invalidRequest("invalid-version", `jsonrpc must be "2.0"`)
		}
	}
	if len(m.Method) == 0 || m.Method[0] != '"' {
		return invalidRequest("invalid-method", "method must be a string")
	}
	return nil
}

// serveUnknown handles a message whose method is not registered.
func (c *Conn) serveUnknown(m *frame.Message, name string, to replies) {
	switch {
	case m.ID != nil:
		to.fail(m.ID, methodNotFound(name, c.srv.opts.MethodHint))
	case name == c.srv.opts.Cancellation.Method:
		c.serveCancel(m.Params)
	case name == "initialized": // LSP clients send it after initialize, and no server needs it
	case strings.HasPrefix(name, "$/"): // a server may ignore these (LSP, "$ Notifications and Requests")
	default:
		c.log.Warn("unknown notification ignored", "method", frame.Excerpt(name))
	}
}

// serveCancel cancels the request that a notification of Cancellation names.
func (c *Conn) serveCancel(params json.RawMessage) {
	how := c.srv.opts.Cancellation
	var p map[string]json.RawMessage
	named, bad := namedParams(params)
	if bad != nil || json.Unmarshal(named, &p) != nil || p[how.Member] == nil {
		c.log.Warn(how.Method + " without an id ignored")
		return
	}
	c.flights.cancel(p[how.Member])
}

// startLong runs a long-running method beside the others.
func (c *Conn) startLong(method *Method, m *frame.Message, to replies) {
	// The message is only borrowed from the read buffer.
	id, params := bytes.Clone(m.ID), bytes.Clone(m.Params)
	ctx, cancel := context.WithCancelCause(c.baseCtx)
	entry := id
	if string(id) == "null" { // null names no request: it neither clashes nor can be cancelled
		entry = nil
	}
	if !c.flights.begin(entry, cancel) {
		cancel(nil)
		if id == nil {
			c.log.Warn("notification dropped: too many long-running requests", "method", method.Name)
			c.unserved(method.Name, overloaded(c.flights.limit))
			return
		}
		to.fail(id, overloaded(c.flights.limit))
		return
	}
	hold(to)
	serving := ctx
	if method.arriving != nil {
		serving = method.arriving(ctx, params)
	}
	go func() {
		defer cancel(nil)
		defer c.flights.end()
		c.serveConcurrently(serving, method, id, params, to, func() { c.flights.leave(entry) })
	}()
}

// startReleasing runs a method until it has ended or calls [Release]. It returns false, and runs
// nothing, if too many long-running requests run: then the messages behind this one wait.
func (c *Conn) startReleasing(method *Method, m *frame.Message, to replies) bool {
	id, params := bytes.Clone(m.ID), bytes.Clone(m.Params)
	ctx, cancel := context.WithCancelCause(c.inlineCtx)
	entry := id
	if string(id) == "null" {
		entry = nil
	}
	if !c.flights.begin(entry, cancel) {
		cancel(nil)
		return false
	}
	hold(to)
	done, released := make(chan struct{}), make(chan struct{})
	ctx = context.WithValue(ctx, releaseKey{}, sync.OnceFunc(func() { close(released) }))
	go func() {
		defer close(done)
		defer cancel(nil)
		defer c.flights.end()
		c.serveConcurrently(ctx, method, id, params, to, func() { c.flights.leave(entry) })
	}()
	select {
	case <-done:
	case <-released:
	}
	return true
}

// startFinal runs the method that ends the connection. The loop continues to read, so that it
// sees the peer leave, but serves nothing more.
func (c *Conn) startFinal(method *Method, m *frame.Message, to replies) {
	if err := method.check(m.Params); err != nil {
		c.finish(method, m.ID, nil, err, c.clock(), c.baseCtx, to)
		return
	}
	if !c.closing.CompareAndSwap(false, true) {
		return // an earlier one in the same batch runs already
	}
	id, params := bytes.Clone(m.ID), bytes.Clone(m.Params)
	hold(to)
	c.final.begin()
	go func() {
		defer c.final.end()
		c.serveConcurrently(c.baseCtx, method, id, params, to, func() {})
		if id != nil {
			c.linger()
		}
		c.End()
	}()
}

// lingerTime is how long the peer may take to close its side after a final reply. Emacs 30
// handles a reply in a timer, and loses it if the process is gone before that timer runs.
const lingerTime = 100 * time.Millisecond

// linger waits until the peer has closed its side, or the time has passed.
func (c *Conn) linger() {
	select {
	case <-c.loopEnded:
	case <-c.stop:
	case <-time.After(lingerTime):
	}
}

// serveClosing drops a message that follows a final method. A second final method, such as exit
// after shutdown, ends the connection at once.
func (c *Conn) serveClosing(m *frame.Message) {
	if m.Kind != frame.Object || m.Method == nil {
		return
	}
	if checkEnvelope(m) == nil {
		if method := c.method(m); method != nil && method.Final {
			c.End()
		}
	}
}

// serveConcurrently serves a request in its own goroutine. It calls done after the handler has
// returned, before the reply goes out.
func (c *Conn) serveConcurrently(ctx context.Context, method *Method, id, params []byte, to replies, done func()) {
	began := c.clock()
	_, batched := to.(*slot)
	after := afterwards{mayAttach: id != nil && !batched}
	result, err := c.invoke(context.WithValue(ctx, afterKey{}, &after), method, params)
	done()
	if after.attachment != nil {
		to = &attachedReply{c, after.attachment}
	}
	c.finish(method, id, result, err, began, ctx, to)
	if s, ok := to.(*slot); ok {
		s.b.after(&after)
		s.b.release()
	}
	after.run()
	c.out.flush()
}

// hold makes a batch wait for a reply that comes later.
func hold(to replies) {
	if s, ok := to.(*slot); ok {
		s.b.hold()
	}
}

// errPanic is what a handler that panicked returns.
type errPanic struct{ value any }

func (e errPanic) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// invoke calls a handler and turns a panic into an error.
func (c *Conn) invoke(ctx context.Context, method *Method, params json.RawMessage) (result json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			result, err = nil, errPanic{p}
			c.log.Error("a handler panicked", "method", method.Name, "panic", fmt.Sprint(p),
				"stack", string(debug.Stack()))
		}
	}()
	return method.invoke(ctx, params)
}

// finish answers a request, and logs it.
func (c *Conn) finish(
	method *Method, id []byte, result json.RawMessage, err error, began time.Time, ctx context.Context, to replies,
) {
	var e *jsonrpc2.Error
	if err != nil {
		e = wireError(ctx, err)
		_, logged := err.(errPanic)
		if !logged && (e.Code == jsonrpc2.CodeInternalError || id == nil) {
			level := slog.LevelWarn
			if id == nil && c.isRepeated(method.Name+" "+err.Error()) {
				level = slog.LevelDebug
			}
			c.log.Log(ctx, level, "request failed", "method", method.Name, "id", frame.Excerpt(string(id)), "err", err)
		}
	}
	switch {
	case id != nil && e != nil:
		to.fail(id, e)
	case id != nil:
		to.result(id, result)
	case e != nil:
		c.unserved(method.Name, err)
	}
	if !began.IsZero() {
		c.logServed(method, id, e, time.Since(began))
	}
}

// isRepeated reports whether a notification failed like the previous one: a peer may send very
// many before it notices.
func (c *Conn) isRepeated(failure string) bool {
	last := c.failed.Swap(&failure)
	return last != nil && *last == failure
}

// logServed logs a request or a notification at debug.
func (c *Conn) logServed(method *Method, id []byte, e *jsonrpc2.Error, took time.Duration) {
	attrs := []any{"method", method.Name, "duration", took}
	if e != nil {
		attrs = append(attrs, "code", e.Code)
	}
	if id == nil {
		c.log.Debug("notification", attrs...)
		return
	}
	c.log.Debug("request", append(attrs, "id", frame.Excerpt(string(id)))...)
}

// clock returns the time if requests are logged, else zero: reading the clock costs time.
func (c *Conn) clock() time.Time {
	if c.log.Enabled(c.inlineCtx, slog.LevelDebug) {
		return time.Now()
	}
	return time.Time{}
}
