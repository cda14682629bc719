package acpagent

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/internal/acpagent/schema"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

// An asked question is one that the client is asked.
type asked struct {
	question wire.Approval
	cancel   context.CancelFunc // takes it back
}

// ask asks the user of the client, with s.order held, what an agent asks, which is in the inbox as well:
// whoever answers first decides, and the other one is not asked any more.
func (s *session) ask(q wire.Approval) {
	s.mu.Lock()
	_, isAsked := s.asking[q.ID]
	if isAsked || slices.ContainsFunc(s.askAgain, func(a wire.Approval) bool { return a.ID == q.ID }) {
		s.mu.Unlock()
		return // open questions are told again
	}
	ctx, cancel := context.WithTimeout(s.ctx, questionWithin)
	s.asking[q.ID] = asked{q, cancel}
	s.mu.Unlock()
	asker := asker{Client: s.conn, Can: s.agent.client.capabilities()}
	if s.version2 {
		asker.Spelled = permission2
		s.requiresAction(q.SessionID)
	}
	if !asker.Fits(q) {
		s.remark(schema.Warning, agentName(q)+" asks: "+questionInWords(q), "This editor cannot show the question. Answer with: duet-rpc approvals",
			"%s asks: %s — this editor cannot show it. Answer with: duet-rpc approvals", agentName(q), questionInWords(q))
		return
	}
	about := s.translator.Question(q)
	if !s.conn.Go(func(connected context.Context) {
		defer cancel()
		defer context.AfterFunc(connected, cancel)()
		s.await(ctx, asker, q, about)
	}) {
		cancel()
	}
}

// await waits for the user's answer, and makes it the decision.
func (s *session) await(ctx context.Context, asker asker, q wire.Approval, about schema.ToolCall) {
	log := s.agent.opts.Logger
	decision, err := asker.Ask(ctx, s.id, q, about)
	switch {
	case ctx.Err() != nil, errors.Is(err, jsonrpc2.ErrClosed):
		return // it was answered elsewhere, or waits for that
	case err != nil:
		log.Warn("the client could not be asked; the question stays in the inbox", "approval", q.ID, "err", err)
		return
	case decision == nil:
		log.Info("the client has not answered; the question stays in the inbox", "approval", q.ID)
		return
	}
	decided, _, err := wire.Decide(context.WithoutCancel(ctx), s.agent.hub, *decision)
	if err != nil {
		log.Warn("an answer was not taken", "approval", q.ID, "err", err)
		s.order.Lock()
		defer s.order.Unlock()
		s.remark(schema.Warning, "Your answer was not taken: "+message(err), "The question waits in the inbox: /inbox, or duet-rpc approvals",
			"your answer was not taken: %s. The question waits in the inbox: /inbox, or duet-rpc approvals", message(err))
	} else if !decided.Success {
		log.Info("an answer came too late", "approval", q.ID, "why", decided.Error)
	}
}

// answered takes back a question that was answered, wherever that was.
func (s *session) answered(id string) {
	s.mu.Lock()
	one := s.asking[id]
	delete(s.asking, id)
	s.askAgain = slices.DeleteFunc(s.askAgain, func(q wire.Approval) bool { return q.ID == id })
	s.mu.Unlock()
	if one.cancel != nil {
		one.cancel()
	}
}

// takeBack takes back the questions of a turn that has died with its hub: clients close them
// with their tool calls. They wait still, so the client is asked again when it knows of the
// end; s.mu is held.
func (s *session) takeBack() {
	for _, id := range slices.Sorted(maps.Keys(s.asking)) {
		s.asking[id].cancel()
		s.askAgain = append(s.askAgain, s.asking[id].question)
	}
	clear(s.asking)
}

// askOpen asks again what takeBack has taken back and nobody has answered since; s.order is
// held.
func (s *session) askOpen() {
	s.mu.Lock()
	open := s.askAgain
	s.askAgain = nil
	s.mu.Unlock()
	for _, q := range open {
		s.ask(q)
	}
}

// agentName is who asks.
func agentName(q wire.Approval) string {
	if q.Agent == "" {
		return "The agent"
	}
	return q.Agent
}
