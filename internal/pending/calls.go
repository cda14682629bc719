package pending

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"
	"sync"

	"github.com/duet-rpc/duet-rpc/frame"
)

// Calls are the requests of this process on one connection. The zero value has
// none. Its methods may be called from any goroutine.
type Calls struct {
	mu    sync.Mutex // guards the fields below
	table Table[*Call]
	err   error // of the end; nil before it
}

// A Call is one request, from before it is sent until it is answered or given
// up. One goroutine waits for it.
type Call struct {
	calls   *Calls
	id      []byte
	arrived func(Response)
	ended   chan outcome // takes one
}

type outcome struct {
	response Response
	err      error
}

// A Response is what a request was answered with.
type Response struct {
	Result json.RawMessage // null where the peer left it out
	Error  json.RawMessage // nil: there was none
}

// Begin enters a request before it is sent; nobody else uses its id. arrived, if
// not nil, is called by Deliver before that returns. After End the error is
// that of the end.
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

// Deliver gives a response, of which it keeps copies, to the call that it
// answers, and reports whether there is one.
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
	case m.Result == nil: // some libraries leave out what is undefined
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

// End ends the calls that still wait, and all later ones, with err. The first
// End counts.
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

// Wait waits for the response. It fails with the error of ctx, or of the end,
// whichever comes first; a response that has arrived before either is returned.
// After Wait the call is forgotten.
func (c *Call) Wait(ctx context.Context) (Response, error) {
	select {
	case o := <-c.ended:
		return o.response, o.err
	case <-ctx.Done():
		if c.Abandon() {
			return Response{}, ctx.Err()
		}
		o := <-c.ended // it came at the same moment
		return o.response, o.err
	}
}

// Abandon forgets a call that nobody waits for, and reports whether it was
// still open.
func (c *Call) Abandon() bool {
	c.calls.mu.Lock()
	defer c.calls.mu.Unlock()
	_, open := c.calls.table.Take(c.id)
	return open
}
