package acp

import (
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/rawjson"
)

// An input is the agent's stdin. It notes when a prompt or an answer has been written.
type input struct {
	a *agent

	mu     sync.Mutex // guards closed
	closed bool       // the agent reads no more: it is exiting, or has closed its stdin
}

func (in *input) Write(p []byte) (int, error) {
	t := in.a.turns.now()
	if t != nil { // before the write: the agent may react before Write returns
		t.answers.written(p)
	}
	// The agent chooses its request ids, and answers repeat them. Parse the member, so that an id
	// cannot pass for one.
	isPrompt := t != nil && !t.hasPrompt() && string(rawjson.Member(p, "method")) == `"session/prompt"`
	if isPrompt { // before the agent can answer it
		t.sending(string(rawjson.Member(p, "id")))
	}
	in.a.steering.written(p)
	n, err := in.a.proc.Write(p)
	if err != nil {
		in.close()
	}
	if isPrompt && err == nil {
		t.sent.Do(func() { close(t.prompted) })
	}
	return n, err
}

func (in *input) close() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.closed = true
}

func (in *input) isClosed() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.closed
}
