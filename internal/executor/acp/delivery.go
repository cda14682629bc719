package acp

import (
	"bytes"
	"encoding/json"
	"slices"
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/rawjson"
)

// deliveries are the user's answers that were sent to a turn's agent, until the agent visibly
// continues from them. The zero value is empty.
//
// A written answer proves nothing: the agent may die before it reads it. After the answer is
// written, these events prove that the agent went on:
//
//   - an update of the tool call that the answer is about, unless it says that the call waits;
//   - any other update or request, if the agent was silent while it waited and had nothing else
//     open;
//   - the successful end of the turn that the agent itself reports.
type deliveries struct {
	mu      sync.Mutex          // guards the fields below
	asking  int                 // questions without an answer yet
	calls   map[string]struct{} // open tool calls
	acted   int                 // number of the agent's updates and requests
	asked   map[string]int      // acted at the time of each question, by call
	answers []delivery
	denied  *string // the latest denied call, if the agent has done nothing since; nil: none
}

type delivery struct {
	approval string
	call     string
	body     []byte // as it is written
	written  bool
	acted    int  // acted at the time of the question
	alone    bool // any next action of the agent proves the delivery
}

// questionAsked notes a question about a tool call. It returns the answers whose delivery this
// proves.
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

// questionClosed notes that a question was answered or withdrawn.
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

// refused notes that the agent receives a denial of a call.
func (d *deliveries) refused(call string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.denied = &call
}

// endedByDenial reports whether the agent has done nothing since a denial except to report the
// denied call as failed.
func (d *deliveries) endedByDenial() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.denied != nil
}

// written notes a message written to the agent, and recognizes an answer by its result.
func (d *deliveries) written(message []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.ContainsFunc(d.answers, func(a delivery) bool { return !a.written }) {
		return
	}
	result := rawjson.Member(message, "result")
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

// agentActed notes an update or request of the agent. It returns the answers whose delivery this
// proves.
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

// toolCallUpdated notes an update of a tool call. It returns the answers whose delivery this
// proves.
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
	if !open { // the call begins
		taken = d.actedLocked()
		if denied && status == "failed" { // the agent had not reported it before
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

// turnEnded returns the answers whose delivery the end of the turn proves.
func (d *deliveries) turnEnded() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.take(func(delivery) bool { return true })
}

// take removes and returns the written answers that fit. The caller holds mu.
func (d *deliveries) take(fits func(delivery) bool) (taken []string) {
	if len(d.answers) == 0 { // the usual case
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

// acted notes a request of the agent.
func (a *agent) acted() {
	if t := a.turns.now(); t != nil {
		t.delivered(t.answers.agentActed())
	}
}

// delivered reports the answers from which the agent went on. Call it before the update that
// shows that is reported.
func (t *turn) delivered(approvals []string) {
	if len(approvals) > 0 {
		t.Event(catalog.EventPermissionTaken, catalog.PermissionTaken{ApprovalIDs: approvals})
	}
}
