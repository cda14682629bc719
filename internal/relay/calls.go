package relay

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/pending"
)

// A call is a request of the editor that the hub has not answered.
type call struct {
	batch      *batch                    // its batch, or nil
	then       func(resp *frame.Message) // called with the response and r.mu locked; or nil
	long       bool                      // it may take long
	subscribes bool                      // it begins a subscription
	answered   bool                      // by the relay: the editor no longer waits
}

// A batch is one array of requests: its answer is one array.
type batch struct{ requests int }

// calls are the requests in flight.
type calls struct {
	table   pending.Table[call]
	waiting int // how many the editor waits for
}

// none reports whether the editor waits for none.
func (c *calls) none() bool { return c.waiting == 0 }

func (c *calls) add(id []byte, one call) {
	if one.batch != nil {
		one.batch.requests++
	}
	c.waiting++
	c.table.Add(id, one)
}

// response removes the call that a response answers, if there is one. It returns the call if the
// relay has already answered it.
func (c *calls) response(resp *frame.Message) (late *call) {
	id := resp.ID
	if id == nil || id[0] == 'n' {
		if bytes.Contains(resp.Error, []byte(`"batch-too-large"`)) {
			c.dropLargestBatch()
			return nil
		}
		id = []byte("null")
	}
	one, known := c.table.Take(id)
	switch {
	case !known:
		return nil
	case one.answered:
		return &one
	}
	c.waiting--
	if one.then != nil {
		one.then(resp)
	}
	return nil
}

// answerShort answers the calls that cannot take long with an error, and returns the messages. A
// batch has one answer: if one of its calls may take long it waits.
func (c *calls) answerShort(err *jsonrpc2.Error) [][]byte {
	long := make(map[*batch]bool)
	for _, one := range c.table.All() {
		if one.batch != nil && one.long {
			long[one.batch] = true
		}
	}
	var answers answers
	for id, one := range c.table.All() {
		if one.answered || one.long || long[one.batch] {
			continue
		}
		one.answered = true
		c.waiting--
		answers.add(id, one.batch, err)
	}
	return answers.messages()
}

// dropLargestBatch forgets a batch that was refused because it is too large. The answer does not
// name the batch, but no batch that was accepted is larger.
func (c *calls) dropLargestBatch() {
	var largest *batch
	for _, one := range c.table.All() {
		if one.batch != nil && (largest == nil || one.batch.requests > largest.requests) {
			largest = one.batch
		}
	}
	c.table.DeleteFunc(func(one *call) bool {
		drop := largest != nil && one.batch == largest
		if drop && !one.answered {
			c.waiting--
		}
		return drop
	})
}

// answerAll forgets all calls and returns the messages that answer them.
func (c *calls) answerAll(err *jsonrpc2.Error) [][]byte {
	var answers answers
	for id, one := range c.table.All() {
		if !one.answered {
			answers.add(id, one.batch, err)
		}
	}
	c.table.Clear()
	c.waiting = 0
	return answers.messages()
}

// answers are messages that answer calls with errors, those of a batch in one.
type answers struct {
	bodies  [][]byte
	batches map[*batch]int // index into bodies
}

func (a *answers) add(id string, b *batch, err *jsonrpc2.Error) {
	body := frame.ErrorBody([]byte(id), err)
	if b == nil {
		a.bodies = append(a.bodies, body)
		return
	}
	at, begun := a.batches[b]
	if begun {
		a.bodies[at] = append(append(a.bodies[at], ','), body...)
		return
	}
	if a.batches == nil {
		a.batches = make(map[*batch]int)
	}
	a.batches[b] = len(a.bodies)
	a.bodies = append(a.bodies, append([]byte{'['}, body...))
}

func (a *answers) messages() [][]byte {
	for _, at := range a.batches {
		a.bodies[at] = append(a.bodies[at], ']')
	}
	return a.bodies
}

// unsent returns the answer to a message that no hub received; nil if it needs none.
func unsent(body []byte, err *jsonrpc2.Error) []byte {
	var m frame.Message
	frame.Parse(body, &m)
	var out []byte
	for one := range m.Objects() {
		if !wantsAnswer(one) {
			continue
		}
		if m.Kind == frame.Array {
			out = append(out, ',')
		}
		out = append(out, frame.ErrorBody(one.ID, err)...)
	}
	if m.Kind == frame.Array && out != nil {
		out[0] = '['
		out = append(out, ']')
	}
	return out
}

// codeHubLost is the error code of a request whose hub has gone.
const codeHubLost = -32042

// KindHubLost is the error kind of a request whose hub has gone.
const KindHubLost = "hub_lost"

func hubLost(why string) *jsonrpc2.Error {
	data := json.RawMessage(`{"kind":"` + KindHubLost + `","retry":true}`)
	return &jsonrpc2.Error{Code: codeHubLost, Message: "Hub lost: " + why, Data: &data}
}

var (
	lostUnanswered = hubLost("the process that runs the agents has gone before it answered; another one takes its place, so the request may " +
		"be sent again")
	lostUnsent = hubLost("no process that runs the agents could be reached in time; the request was not carried out and may be sent again")
)

// codeHubSilent is the error code of a request whose hub does not answer.
const codeHubSilent = -32044

func hubSilent(message string, retry bool) *jsonrpc2.Error {
	data, _ := json.Marshal(struct {
		Kind  string `json:"kind"`
		Retry bool   `json:"retry"`
	}{"hub_silent", retry})
	return &jsonrpc2.Error{Code: codeHubSilent, Message: "Hub silent: " + message, Data: (*json.RawMessage)(&data)}
}

// unsentError returns the error of a request that no hub received; r.mu is held.
func (r *Relay) unsentError() *jsonrpc2.Error {
	if r.silence != "" {
		return hubSilent(r.silence+"; the request was not carried out and may be sent again", true)
	}
	if r.problem != "" {
		return hubLost(r.problem + "; the request was not carried out and may be sent again")
	}
	return lostUnsent
}

// answer queues the relay's own answer for writeReplies; r.mu is held.
func (r *Relay) answer(body []byte) {
	r.replies = append(r.replies, body)
	r.replyBytes += len(body)
	r.changed()
}

// endAnswered ends the relay when the editor has its answers, or does not take them.
func (r *Relay) endAnswered() {
	ctx, cancel := context.WithTimeout(r.ctx, r.opts.Grace)
	defer cancel()
	r.await(ctx, func() bool { return r.replyBytes == 0 })
	r.end(nil)
}

// writeReplies sends the relay's own answers to the editor.
func (r *Relay) writeReplies() {
	for r.await(r.ctx, func() bool { return len(r.replies) > 0 }) {
		r.mu.Lock()
		answers := r.replies
		r.replies = nil
		r.mu.Unlock()
		for _, answer := range answers {
			r.editor.send(answer)
		}
		_ = r.editor.flush()
		r.mu.Lock()
		for _, answer := range answers {
			r.replyBytes -= len(answer)
		}
		r.changed()
		r.mu.Unlock()
	}
}
