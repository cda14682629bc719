package acp

import (
	"sync"
	"time"
)

// turns says which turn has the agent, and what the agent does between two turns. Its methods return at
// once. They may be called from any goroutine, also while the turn waits for the hub (turn.taking).
type turns struct {
	wanted  chan struct{} // buffer of 1: wants became true
	changed chan struct{} // buffer of 1: the current turn changed
	retired chan struct{} // closed before the agent is ended

	mu         sync.Mutex // guards the fields below
	current    *turn
	last       *lastTask  // of the current or the latest turn
	ended      *endedTurn // the latest turn, until the agent starts other work
	foreground bool       // the agent has reported running and not yet idle
	cut        *lastTask  // the interrupted turn that ended before the agent reported idle
	signals    bool       // the agent sends end signals
	wants      bool       // reading has stopped until the agent has a turn
	refused    *lastTask  // begin_turn failed after this task
}

// A lastTask is the task of an agent's current or latest turn.
type lastTask struct {
	session, task string
	spentBefore   float64 // what the session had cost before it, in USD
}

func newTurns() turns {
	return turns{wanted: make(chan struct{}, 1), changed: make(chan struct{}, 1), retired: make(chan struct{})}
}

func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// now returns the current turn, or nil.
func (s *turns) now() *turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}

// latest returns the task of the current or the latest turn, or nil.
func (s *turns) latest() *lastTask {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// begin makes t the current turn.
func (s *turns) begin(t *turn) {
	s.mu.Lock()
	s.current, s.last = t, &lastTask{t.Params.SessionID, t.ID, t.spentBefore}
	s.mu.Unlock()
	notify(s.changed)
}

// end makes t the latest turn, and none the current one. The caller holds t.taking: no output is
// assigned to the turn any more.
func (s *turns) end(t *turn) {
	s.mu.Lock()
	if t.Stopped() && s.foreground {
		s.cut = &lastTask{session: t.Params.SessionID, task: t.ID}
	}
	if t.hasPrompt() { // else the agent does not know of the turn
		s.ended = &endedTurn{t, time.Now(), t.Stopped()}
	}
	s.current = nil
	s.mu.Unlock()
	notify(s.changed)
}

// latestEnded returns the latest turn, or nil if the agent has started other work since.
func (s *turns) latestEnded() *endedTurn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

// otherWork notes that the agent has started other work since the end of its turn, so no late text
// follows.
func (s *turns) otherWork() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = nil
}

// reported notes the state that the agent has reported. For idle it returns the interrupted turn that
// the state belongs to, or nil.
func (s *turns) reported(isActive bool) (wasActive bool, cut *lastTask) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wasActive, s.foreground = s.foreground, isActive
	if !isActive {
		cut, s.cut = s.cut, nil
	}
	return wasActive, cut
}

// isWorking reports whether the agent has reported that it works.
func (s *turns) isWorking() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.foreground
}

// signalled notes that the agent sends end signals.
func (s *turns) signalled() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.signals = true
}

func (s *turns) sendsSignals() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.signals
}

// want sets whether reading has stopped until the agent has a turn.
func (s *turns) want(wants bool) {
	s.mu.Lock()
	s.wants = wants
	s.mu.Unlock()
	if wants {
		notify(s.wanted)
	}
}

func (s *turns) isWanted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wants
}

// refuse notes that the hub starts no turn after a task.
func (s *turns) refuse(after *lastTask) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = after
}

// mayBegin returns the latest task if the hub can start a turn after it, or nil. A session without
// an id ends with its prompt.
func (s *turns) mayBegin() *lastTask {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil || s.last.session == "" || s.last == s.refused {
		return nil
	}
	return s.last
}

// isRetired reports whether the agent is to end.
func (s *turns) isRetired() bool {
	select {
	case <-s.retired:
		return true
	default:
		return false
	}
}
