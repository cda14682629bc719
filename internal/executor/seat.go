package executor

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// A seat is where the agent of one session sits, from prompt to prompt.
type seat struct {
	turn  chan struct{} // holds a token while somebody uses the seat
	agent *agent        // nil, or one that may have died
}

// takeSeat waits for the session's turn. It returns nil if the run is to stop
// first.
func (x *Executor) takeSeat(r *run) *seat {
	name := r.params.SessionID
	if name == "" { // nobody can come back to it
		name = "task " + r.task
	}
	for {
		x.mu.Lock()
		s := x.seats[name]
		if s == nil {
			s = &seat{turn: make(chan struct{}, 1)}
			x.seats[name] = s
		}
		x.mu.Unlock()
		select {
		case s.turn <- struct{}{}:
		case <-r.ctx.Done():
			return nil
		}
		x.mu.Lock()
		same := x.seats[name] == s
		x.mu.Unlock()
		if same {
			return s
		}
		<-s.turn // it was released while we waited
	}
}

// ReleaseSession implements catalog.Executor. The agent of a conversation has
// something to do while a prompt runs, or a program of its own in a terminal.
func (x *Executor) ReleaseSession(_ context.Context, p catalog.ReleaseSessionParams) (catalog.ReleaseSessionResult, error) {
	x.mu.Lock()
	s := x.seats[p.SessionID]
	x.mu.Unlock()
	if s == nil {
		return catalog.ReleaseSessionResult{Released: true}, nil
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	default:
		return catalog.ReleaseSessionResult{Reason: "busy"}, nil
	}
	if s.agent != nil && s.agent.hasPrograms() {
		return catalog.ReleaseSessionResult{Reason: "terminals"}, nil
	}
	s.dismiss()
	x.mu.Lock()
	delete(x.seats, p.SessionID)
	x.mu.Unlock()
	return catalog.ReleaseSessionResult{Released: true}, nil
}

// leaveSeat gives the turn to the next prompt. The agent stays, unless nobody
// can come back to it.
func (x *Executor) leaveSeat(r *run, s *seat) {
	if r.params.SessionID == "" {
		s.dismiss()
		x.mu.Lock()
		delete(x.seats, "task "+r.task)
		x.mu.Unlock()
	}
	<-s.turn
}

// clear ends the agent when nobody uses it any more.
func (s *seat) clear() {
	s.turn <- struct{}{}
	s.dismiss()
	<-s.turn
}

func (s *seat) dismiss() {
	if s.agent != nil {
		s.agent.retire()
		s.agent = nil
	}
}

// launchKey tells whether two prompts can share an agent.
func launchKey(r *run) string {
	key, _ := json.Marshal(struct {
		Launch      *catalog.AgentLaunch
		CWD         string
		Directories []string
	}{r.launch, r.params.CWD, r.directories})
	return string(key)
}

// accounts counts responses that went to the SDK and calls that have returned,
// so that the end of the agent's output is shown to the SDK only when every
// response has been taken: it would prefer the end.
type accounts struct {
	mu               sync.Mutex
	passed, returned int
	changed          chan struct{} // closed when returned rises; nil if nobody waits
}

func (a *accounts) pass() {
	a.mu.Lock()
	a.passed++
	a.mu.Unlock()
}

func (a *accounts) done() {
	a.mu.Lock()
	a.returned++
	if a.changed != nil {
		close(a.changed)
		a.changed = nil
	}
	a.mu.Unlock()
}

// pending is nil if all have been taken, else a channel that is closed at the
// next change.
func (a *accounts) pending() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.returned >= a.passed {
		return nil
	}
	if a.changed == nil {
		a.changed = make(chan struct{})
	}
	return a.changed
}
