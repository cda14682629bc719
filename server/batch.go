package server

import (
	"bytes"
	"encoding/json"
	"sync"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/frame"
)

// A batch collects the replies to the requests of one array (JSON-RPC 2.0, section 6). It sends
// them as one array, in the order of the requests, when the last one is complete.
type batch struct {
	c *Conn

	mu      sync.Mutex // guards the fields below
	waiting int        // number of holds
	slots   [][]byte   // one response each, in the order of the requests; nil: none yet
	size    int        // of all slots
	then    afterwards // what handlers passed to AfterReply
}

// slot is the position of one request's reply in its batch.
type slot struct {
	b *batch
	i int
}

// maxBatchReply bounds the reply to a batch, in bytes. A request whose result no longer fits
// gets an error and does not run.
const maxBatchReply = frame.DefaultMaxFrame

func (b *batch) newSlot() *slot {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.slots = append(b.slots, nil)
	return &slot{b, len(b.slots) - 1}
}

func (b *batch) full() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.size > maxBatchReply
}

// hold makes the batch wait for one more release.
func (b *batch) hold() {
	b.mu.Lock()
	b.waiting++
	b.mu.Unlock()
}

// after adds the functions that a handler of the batch registered for after its reply.
func (b *batch) after(a *afterwards) {
	b.mu.Lock()
	b.then.todo = append(b.then.todo, a.todo...)
	b.mu.Unlock()
	a.todo = nil
}

// release gives one hold back, and sends the reply after the last one.
func (b *batch) release() {
	b.mu.Lock()
	b.waiting--
	last := b.waiting == 0
	if last {
		b.send()
	}
	b.mu.Unlock()
	if last {
		b.then.run()
	}
}

// send queues the reply; b.mu is held.
func (b *batch) send() {
	var filled [][]byte
	for _, s := range b.slots {
		if s != nil {
			filled = append(filled, s)
		}
	}
	if len(filled) == 0 { // notifications only: nothing is sent
		return
	}
	reply := append([]byte{'['}, bytes.Join(filled, []byte{','})...)
	b.c.sendMessage(append(reply, ']'))
}

func (s *slot) put(message []byte) {
	s.b.mu.Lock()
	s.b.slots[s.i] = message
	s.b.size += len(message)
	s.b.mu.Unlock()
}

func (s *slot) result(id, result []byte) { s.put(frame.ResultBody(id, result)) }

func (s *slot) fail(id []byte, e *jsonrpc2.Error) { s.put(frame.ErrorBody(id, e)) }

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
