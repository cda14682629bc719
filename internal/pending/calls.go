package pending

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"
	"sync"

	"github.com/duet-rpc/duet-rpc/frame"
)

// Calls are the outgoing requests of this process on one connection. The zero value is empty. Its
// methods may be called from any goroutine.
type Calls struct {
	mu    sync.Mutex // guards the fields below
	table Table[*Call]
	err   error // set by End
}

// Call is one request, from before it is sent until it is answered or abandoned. One goroutine
// waits for it.
type Call struct {
	calls   *Calls
	id      []byte
	arrived func(Response)
	ended   chan outcome // buffered for one
}

type outcome struct {
	response Response
	err      error
}

// Response is the response to a request.
type Response struct {
	Result json.RawMessage // null if the peer omitted it
	Error  json.RawMessage // nil: no error
}

// Begin registers a request before it is sent; id must be unique. Deliver calls arrived, if not
// nil, before it returns. After End, Begin returns End's error.
func (c *Calls) Begin(id uint64, arrived func(Response)) (*Call, error) {
	call := &Call{calls: c, id: strconv.AppendUint(nil, id, 10), arrived: arrived, ended: make(chan outcome, 1)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return nil, c.err
	}
	c.table.Add(call.id, call)
	return call, nil
}

// Deliver passes a response, which it copies, to its call. It reports whether that call exists.
func (c *Calls) Deliver(m *frame.Message) bool {
	c.mu.Lock()
	call, waits := c.table.Take(m.ID)
	c.mu.Unlock()
	if !waits {
		return false
	}
	var r Response
	switch {
	case m.Error != nil && string(m.Error) != "null":
		r.Error = bytes.Clone(m.Error)
	case m.Result == nil: // some libraries omit undefined
		r.Result = json.RawMessage("null")
	default:
		r.Result = bytes.Clone(m.Result)
	}
	if call.arrived != nil {
		call.arrived(r)
	}
	call.ended <- outcome{response: r}
	return true
}

// End fails all waiting and later calls with err. The first End counts.
func (c *Calls) End(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err = err
	for _, call := range c.table.All() {
		(*call).ended <- outcome{err: err}
	}
	c.table.Clear()
}

// Wait waits for the response. It fails with the error of ctx or of End, whichever comes first, but
// returns a response that arrived before. After Wait the call is removed.
func (c *Call) Wait(ctx context.Context) (Response, error) {
	select {
	case o := <-c.ended:
		return o.response, o.err
	case <-ctx.Done():
		if c.Abandon() {
			return Response{}, ctx.Err()
		}
		o := <-c.ended // it arrived at the same moment
		return o.response, o.err
	}
}

// Abandon removes an unneeded call, and reports whether it was still open.
func (c *Call) Abandon() bool {
	c.calls.mu.Lock()
	defer c.calls.mu.Unlock()
	_, open := c.calls.table.Take(c.id)
	return open
}
