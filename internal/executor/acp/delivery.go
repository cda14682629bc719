package acp

import (
	"bytes"
	"encoding/json"
	"slices"
	"sync"
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
}

type delivery struct {
	approval string
	call     string
	body     []byte // as it is written
	written  bool
	acted    int  // when it was asked
	alone    bool // whatever the agent does next, it does because of this
}

// questionAsked notes a question of a tool call, and returns what answers that shows to
// be taken.
func (g *deliveries) questionAsked(call string) []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	taken := g.actedLocked()
	g.asking++
	if g.asked == nil {
		g.asked = make(map[string]int)
	}
	g.asked[call] = g.acted
	return taken
}

// questionClosed notes that a question has its answer, or was given up.
func (g *deliveries) questionClosed(call string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asking--
	delete(g.asked, call)
}

// answered notes an answer that is about to be written.
func (g *deliveries) answered(approval, call string, answer permissionAnswer) {
	body, err := json.Marshal(answer)
	if err != nil { // then it is not written either
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.answers = append(g.answers, delivery{approval: approval, call: call, body: body, acted: g.asked[call]})
}

// written notes what is written to the agent.
func (g *deliveries) written(message []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range g.answers {
		a := &g.answers[i]
		if a.written || !bytes.Contains(message, a.body) {
			continue
		}
		a.written = true
		others := len(g.calls)
		if _, open := g.calls[a.call]; open {
			others--
		}
		a.alone = others == 0 && g.asking == 0 && a.acted == g.acted
		return
	}
}

// agentActed notes that the agent says or wants something, and returns the answers
// that this shows to be taken.
func (g *deliveries) agentActed() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.actedLocked()
}

func (g *deliveries) actedLocked() []string {
	g.acted++
	return g.take(func(a delivery) bool { return a.alone })
}

// toolCallUpdated notes what the agent tells of a tool call, and returns the answers
// that this shows to be taken.
func (g *deliveries) toolCallUpdated(id, status string) []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, open := g.calls[id]
	waits := status == "" || status == "pending"
	var taken []string
	if !open { // it begins
		taken = g.actedLocked()
	}
	if !waits {
		g.acted++
		taken = append(taken, g.take(func(a delivery) bool { return a.call == id })...)
	}
	if status == "completed" || status == "failed" {
		delete(g.calls, id)
	} else if open || len(g.calls) < maxToolCalls {
		if g.calls == nil {
			g.calls = make(map[string]struct{})
		}
		g.calls[id] = struct{}{}
	}
	return taken
}

// turnEnded returns the answers that the end of the turn shows to be taken.
func (g *deliveries) turnEnded() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.take(func(delivery) bool { return true })
}

// take removes what was written and fits; mu is held.
func (g *deliveries) take(fits func(delivery) bool) (taken []string) {
	if len(g.answers) == 0 { // nearly always
		return nil
	}
	g.answers = slices.DeleteFunc(g.answers, func(a delivery) bool {
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
