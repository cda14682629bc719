package acp

import (
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/acp"
)

// requests counts the open requests of an agent.
type requests struct {
	answered chan struct{} // buffer of 1: a question was answered

	mu        sync.Mutex // guards the fields below
	open      int
	questions int    // permission and elicitation requests whose answer was not written yet
	asking    int    // elicitations without an answer: the timeouts of calls do not run meanwhile
	overdue   string // the unanswered method for which the agent was killed
}

// admit counts a request. It returns false if too many are open.
func (r *requests) admit(method string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open >= acp.MaxRequests {
		return false
	}
	r.open++
	if isQuestion(method) {
		r.questions++
	}
	return true
}

func (r *requests) served() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open--
}

// questionAnswered notes that the answer to a question was written.
func (r *requests) questionAnswered() {
	r.mu.Lock()
	r.questions--
	r.mu.Unlock()
	notify(r.answered)
}

func (r *requests) hasQuestion() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.questions > 0
}

// asks notes that the agent waits for the user until done is called.
func (r *requests) asks() (done func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asking++
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.asking--
	}
}

// timeOut notes that the agent has not answered a call in time. It returns false if the agent waits for
// the user.
func (r *requests) timeOut(method string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asking > 0 {
		return false
	}
	r.overdue = method
	return true
}

// timedOut returns the method for which the agent was killed, or "".
func (r *requests) timedOut() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.overdue
}
