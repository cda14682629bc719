package acpagent

import (
	"cmp"
	"context"
	"encoding/json"
	"strconv"
	"sync"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/wire"
	"github.com/duet-rpc/duet-rpc/server"
)

// A turn is a prompt of the client, until it is answered.
type turn struct {
	run       string // the session that it is, once it has begun; guarded by session.mu
	cancelled bool   // guarded by session.mu
	claimed   bool   // its handler has it; guarded by session.mu
	ended     chan outcome
	prompt    []json.RawMessage // its content blocks, once it is claimed; guarded by session.mu
	before    <-chan struct{}   // closed when the prompt before it has begun, or will not; nil: there is none
	begun     chan struct{}
	markBegun func() // closes begun
}

// An outcome is how a turn ended.
type outcome struct {
	state, stopReason, err, code string
	authMethods                  []domain.AuthMethod

	inserted string // of version 2: the id of the prompt of a turn that has just begun, not ended
}

func outcomeOf(d wire.EventData) outcome {
	return outcome{state: d.State, stopReason: d.StopReason, err: d.Error, code: d.ErrorCode, authMethods: d.AuthMethods}
}

func newTurn() *turn {
	t := &turn{ended: make(chan outcome, 1), begun: make(chan struct{})}
	t.markBegun = sync.OnceFunc(func() { close(t.begun) })
	return t
}

// end ends the turn, once.
func (t *turn) end(o outcome) {
	select {
	case t.ended <- o:
	default:
	}
}

// interruptOurs ends the turns that the client has begun, and waits until that has
// begun.
func (s *session) interruptOurs() {
	s.mu.Lock()
	var runs []string
	for run, goesOn := range s.ours {
		if goesOn {
			runs = append(runs, run)
		}
	}
	for _, t := range s.turns {
		t.cancelled = true
	}
	s.mu.Unlock()
	for _, run := range runs {
		s.interrupt(run)
	}
}

// endWithin limits how long session/close waits for the runs to end.
const endWithin = 30 * time.Second

// endWork ends the runs of a conversation, waits until the client has their end, and ends
// the background work.
func (s *session) endWork(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, endWithin)
	defer cancel()
	for _, run := range s.cancelled() {
		s.interrupt(run)
	}
	s.mu.Lock()
	ended := s.work.whenEnded()
	s.mu.Unlock()
	select {
	case <-ended:
	case <-ctx.Done():
	case <-s.conn.Stopping():
		return
	}
	s.order.Lock() // waits for the last state update
	defer s.order.Unlock()
	s.mu.Lock()
	isBusy := len(s.work.background) > 0
	s.mu.Unlock()
	if isBusy {
		s.interrupt(s.id)
	}
}

// interrupt begins to end a session of the hub.
func (s *session) interrupt(run string) {
	err := s.agent.hub.Call(context.Background(), "interruptSession", map[string]string{"session_id": run, "reason": "user_cancelled"}, nil)
	if err != nil {
		s.agent.opts.Logger.Debug("a turn could not be interrupted", "err", err) // mostly, it has just ended
	}
}

// cancelTask stops a terminal or a tool call of the agent's background work.
func (a *agent) cancelTask(ctx context.Context, p cancelWorkRequest) (present, error) {
	s, err := a.find(p.SessionID)
	if err != nil {
		return present{}, err
	}
	id := cmp.Or(p.TerminalID, p.ToolCallID)
	s.order.Lock()
	s.mu.Lock()
	task := s.translator.BackgroundTask(s.work.background, id)
	s.mu.Unlock()
	s.order.Unlock()
	if task == "" {
		return present{}, server.NewError(jsonrpc2.CodeInvalidParams, "Invalid params: the agent does not run "+strconv.Quote(id)+" in the background; session/cancel ends its turn", nil)
	}
	err = a.hub.Call(ctx, "interruptSession", map[string]string{"session_id": s.id, "background": task, "reason": "user_cancelled"}, nil)
	return present{}, refusedFor(s.id, err)
}

// stopped is why a turn stopped, or whether it failed: by itself, or since a process has
// gone or its time was up.
func (o outcome) stopped() (why string, failed bool) {
	switch {
	case o.code != "":
		return endTurn, true
	case o.state == wire.Completed:
		switch o.stopReason {
		case maxTokens, maxTurnRequests, refusal, cancelled:
			return o.stopReason, false
		}
		return endTurn, false
	case o.state == wire.Cancelled, o.state == wire.Interrupted, o.state == wire.Discarded:
		return cancelled, false
	}
	return endTurn, true
}
