package acp

import (
	"bytes"
	"encoding/json"
	"slices"
	"sync"

	"github.com/duet-rpc/duet-rpc/frame"
)

// deliveries are the answers of humans that a turn's agent was given, until it
// is seen to go on from them. The zero value has none.
//
// That an answer is in the agent's pipe shows nothing: the agent may die before
// it reads it. What shows that it went on, once the answer is on its way, is
//
//   - what it tells of the very tool call that the answer is about, beyond that
//     the call waits;
//   - whatever else it says or wants, if it was silent while it waited and had
//     nothing else open: then there was nothing else to go on from;
//   - the end of its turn, of its own accord and without an error.
type deliveries struct {
	mu      sync.Mutex          // guards the fields below
	asking  int                 // questions that wait for their answers
	calls   map[string]struct{} // that have begun and not ended
	acted   int                 // how often the agent said or wanted something
	asked   map[string]int      // acted as it was when each of them was asked, by call
	answers []delivery
	denied  *string // the call that was denied last, if the agent has done nothing since; nil: none
}

type delivery struct {
	approval string
	call     string
	body     []byte // as it is written
	written  bool
	acted    int  // when it was asked
	alone    bool // whatever the agent does next, it does because of this
}

// questionAsked notes a question of a tool call, and returns the answers that
// this shows to be taken.
func (d *deliveries) questionAsked(call string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	taken := d.actedLocked()
	d.asking++
	if d.asked == nil {
		d.asked = make(map[string]int)
	}
	d.asked[call] = d.acted
	return taken
}

// questionClosed notes that a question has its answer, or was given up.
func (d *deliveries) questionClosed(call string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asking--
	delete(d.asked, call)
}

// answered notes an answer that is about to be written.
func (d *deliveries) answered(approval, call string, answer any) {
	body, err := json.Marshal(answer)
	if err != nil { // then it is not written either
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.answers = append(d.answers, delivery{approval: approval, call: call, body: body, acted: d.asked[call]})
}

// refused notes that the agent is told that a call was denied.
func (d *deliveries) refused(call string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.denied = &call
}

// endedByDenial reports whether the agent has done nothing since a call was denied,
// but to tell that this has failed.
func (d *deliveries) endedByDenial() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.denied != nil
}

// written notes what is written to the agent: which answer it is, by its result.
func (d *deliveries) written(message []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.ContainsFunc(d.answers, func(a delivery) bool { return !a.written }) {
		return
	}
	result := frame.Member(message, "result")
	for i := range d.answers {
		a := &d.answers[i]
		if a.written || !bytes.Equal(result, a.body) {
			continue
		}
		a.written = true
		others := len(d.calls)
		if _, open := d.calls[a.call]; open {
			others--
		}
		a.alone = others == 0 && d.asking == 0 && a.acted == d.acted
		return
	}
}

// agentActed notes that the agent says or wants something, and returns the
// answers that this shows to be taken.
func (d *deliveries) agentActed() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.actedLocked()
}

func (d *deliveries) actedLocked() []string {
	d.acted++
	d.denied = nil
	return d.take(func(a delivery) bool { return a.alone })
}

// toolCallUpdated notes what the agent tells of a tool call, and returns the
// answers that this shows to be taken.
func (d *deliveries) toolCallUpdated(id, status string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, open := d.calls[id]
	waits := status == "" || status == "pending"
	var taken []string
	denied := d.denied != nil && *d.denied == id
	if !denied {
		d.denied = nil
	}
	if !open { // it begins
		taken = d.actedLocked()
		if denied && status == "failed" { // of which the agent had not told before
			d.denied = &id
		}
	}
	if !waits {
		d.acted++
		taken = append(taken, d.take(func(a delivery) bool { return a.call == id })...)
	}
	if status == "completed" || status == "failed" {
		delete(d.calls, id)
	} else if open || len(d.calls) < maxToolCalls {
		if d.calls == nil {
			d.calls = make(map[string]struct{})
		}
		d.calls[id] = struct{}{}
	}
	return taken
}

// turnEnded returns the answers that the end of the turn shows to be taken.
func (d *deliveries) turnEnded() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.take(func(delivery) bool { return true })
}

// take removes what was written and fits; mu is held.
func (d *deliveries) take(fits func(delivery) bool) (taken []string) {
	if len(d.answers) == 0 { // nearly always
		return nil
	}
	d.answers = slices.DeleteFunc(d.answers, func(a delivery) bool {
		if !a.written || !fits(a) {
			return false
		}
		taken = append(taken, a.approval)
		return true
	})
	return taken
}

// acted notes that the agent wants something of us.
func (a *agent) acted() {
	if t := a.current.Load(); t != nil {
		t.delivered(t.answers.agentActed())
	}
}
