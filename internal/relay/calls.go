package relay

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/frame"
)

// codeHubLost tells a request that the hub it went to has gone.
const codeHubLost = -32042

func hubLost(why string) *jsonrpc2.Error {
	data := json.RawMessage(`{"kind":"hub_lost","retry":true}`)
	return &jsonrpc2.Error{Code: codeHubLost, Message: "Hub lost: " + why, Data: &data}
}

var (
	lostUnanswered = hubLost("the process that runs the agents has gone before it answered; another one takes its place, so the request may be sent again")
	lostUnsent     = hubLost("no process that runs the agents could be reached in time; the request was not carried out and may be sent again")
)

// A call is a request of the editor that the hub has not answered.
type call struct {
	order uint64
	batch *batch                    // that it came in, or nil
	then  func(resp *frame.Message) // called with the response, r.mu being held; or nil
	long  bool                      // it may take long
	begun bool                      // it is a Subscribe
	given bool                      // the editor has an answer of ours
	next  *call                     // a later one with the same id
}

// A batch is one array of requests: its answer is one array.
type batch struct{ requests int }

// calls are those in flight, by raw id.
type calls struct {
	open    map[string]call
	last    uint64
	pending int // how many the editor waits for
}

func newCalls() calls { return calls{open: make(map[string]call)} }

// none reports whether the editor waits for none.
func (c *calls) none() bool { return c.pending == 0 }

func (c *calls) add(id []byte, one call) {
	c.last++
	one.order = c.last
	if one.batch != nil {
		one.batch.requests++
	}
	if !one.given {
		c.pending++
	}
	first, clash := c.open[string(id)]
	if !clash {
		c.open[string(id)] = one
		return
	}
	if first.next == nil {
		first.next = &one
		c.open[string(id)] = first
		return
	}
	end := first.next
	for end.next != nil {
		end = end.next
	}
	end.next = &one
}

// answered takes the call that a response answers, if there is one, and returns
// it where the editor had an answer of ours.
func (c *calls) answered(resp *frame.Message) (late *call) {
	id := resp.ID
	if id == nil || id[0] == 'n' {
		if bytes.Contains(resp.Error, []byte(`"batch-too-large"`)) {
			c.refuseBatch()
			return nil
		}
		id = []byte("null")
	}
	first, there := c.open[string(id)]
	if !there {
		return nil
	}
	if first.next == nil {
		delete(c.open, string(id))
	} else {
		c.open[string(id)] = *first.next
	}
	if first.given {
		return &first
	}
	c.pending--
	if first.then != nil {
		first.then(resp)
	}
	return nil
}

// give answers the calls that cannot take long with an error, and returns the
// messages. A batch has one answer: if one of its calls may take long it waits.
func (c *calls) give(err *jsonrpc2.Error) [][]byte {
	long := make(map[*batch]bool)
	for _, one := range c.all() {
		if one.batch != nil && one.long {
			long[one.batch] = true
		}
	}
	var given []openCall
	for id, first := range c.open {
		for one := &first; one != nil; one = one.next {
			if one.given || one.long || long[one.batch] {
				continue
			}
			one.given = true
			c.pending--
			given = append(given, openCall{id, *one})
		}
		c.open[id] = first
	}
	return answersTo(given, err)
}

// refuseBatch forgets a batch that was refused because it is too large, which
// the answer does not name: none that was not refused is larger.
func (c *calls) refuseBatch() {
	var largest *batch
	all := c.all()
	for _, one := range all {
		if one.batch != nil && (largest == nil || one.batch.requests > largest.requests) {
			largest = one.batch
		}
	}
	clear(c.open)
	c.pending = 0
	for _, one := range all {
		if one.batch == nil || one.batch != largest {
			c.put(one)
		}
	}
}

// put puts a call back, the last of its id.
func (c *calls) put(one openCall) {
	last := c.last
	if one.batch != nil {
		one.batch.requests--
	}
	c.last = one.order - 1
	one.next = nil
	c.add([]byte(one.id), one.call)
	c.last = last
}

type openCall struct {
	id string
	call
}

// all are the calls in flight in their order.
func (c *calls) all() []openCall {
	all := make([]openCall, 0, len(c.open))
	for id, first := range c.open {
		for one := &first; one != nil; one = one.next {
			all = append(all, openCall{id, *one})
		}
	}
	slices.SortFunc(all, func(a, b openCall) int { return cmp.Compare(a.order, b.order) })
	return all
}

// lose forgets all calls and returns the messages that answer them.
func (c *calls) lose() [][]byte {
	all := slices.DeleteFunc(c.all(), func(one openCall) bool { return one.given })
	clear(c.open)
	c.pending = 0
	return answersTo(all, lostUnanswered)
}

// answersTo are the messages that answer calls with an error, those of a batch
// in one.
func answersTo(all []openCall, err *jsonrpc2.Error) [][]byte {
	slices.SortFunc(all, func(a, b openCall) int { return cmp.Compare(a.order, b.order) })
	var answers [][]byte
	batches := make(map[*batch]int) // where in answers
	for _, one := range all {
		body := frame.ErrorBody([]byte(one.id), err)
		if one.batch == nil {
			answers = append(answers, body)
			continue
		}
		at, begun := batches[one.batch]
		if !begun {
			at = len(answers)
			batches[one.batch] = at
			answers = append(answers, []byte{'['})
		} else {
			answers[at] = append(answers[at], ',')
		}
		answers[at] = append(answers[at], body...)
	}
	for _, at := range batches {
		answers[at] = append(answers[at], ']')
	}
	return answers
}

// unsent is the answer to a message that no hub got, or nil if it wants none.
func unsent(body []byte, err *jsonrpc2.Error) []byte {
	var m frame.Message
	frame.Parse(body, &m)
	var out []byte
	each(&m, func(one *frame.Message, inBatch bool) {
		if !isAnswered(one) {
			return
		}
		if inBatch {
			out = append(out, ',')
		}
		out = append(out, frame.ErrorBody(one.ID, err)...)
	})
	if m.Kind == frame.Array && out != nil {
		out[0] = '['
		out = append(out, ']')
	}
	return out
}

// maxAsked bounds what is remembered of requests that an editor never answers.
const maxAsked = 4096

// asked are the requests of hubs that the editor has not answered, by the raw
// id that the editor knows.
type asked struct {
	open map[string]string   // those of the hub that is there: the id that it knows
	lost map[string]struct{} // those of earlier hubs, to which an answer may still come
}

func newAsked() asked {
	return asked{make(map[string]string), make(map[string]struct{})}
}

// add notes a request of the hub. If the editor could take its id for another
// request's, newID makes one that it is to have instead.
func (a *asked) add(id []byte, newID func() string) (instead string) {
	_, open := a.open[string(id)]
	_, lost := a.lost[string(id)]
	there := string(id)
	if open || lost {
		instead = newID()
		there = instead
	}
	if len(a.open) >= maxAsked {
		forgetOne(a.open)
	}
	a.open[there] = string(id)
	return instead
}

// answered takes the request that the editor's response answers and returns
// the id that the hub knows. Nobody waits for an unknown one.
func (a *asked) answered(id []byte) (there string, known bool) {
	there, known = a.open[string(id)]
	if known {
		delete(a.open, string(id))
	} else {
		delete(a.lost, string(id))
	}
	return there, known
}

func (a *asked) lose() {
	for id := range a.open {
		if len(a.lost) >= maxAsked {
			forgetOne(a.lost)
		}
		a.lost[id] = struct{}{}
	}
	clear(a.open)
}

func forgetOne[V any](m map[string]V) {
	for k := range m {
		delete(m, k)
		return
	}
}
