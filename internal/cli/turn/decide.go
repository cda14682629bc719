package turn

import (
	"cmp"
	"context"

	"github.com/duet-rpc/duet-rpc/internal/wire"
)

// decideAlone is decide where nobody can be asked again: if the decision does
// not fit the question, the session is interrupted, so that it does not wait for
// ever.
func (a *asker) decideAlone(ctx context.Context, q asked, d wire.Decision) {
	if a.decide(ctx, q, d) || ctx.Err() != nil {
		return
	}
	a.view.Note("nobody is there to answer; interrupting")
	if err := a.hub.Call(ctx, "interruptSession", map[string]string{"session_id": q.SessionID, "reason": "nobody_answers"}, nil); err != nil {
		a.view.Note(InWords(err).Error())
	}
}

// decide sends a decision, and reports whether the question is closed.
func (a *asker) decide(ctx context.Context, q asked, d wire.Decision) bool {
	d.ID = q.ID
	if q.Type == wire.HumanContact && q.Mode == "" {
		d = asResponse(q, d)
	}
	var r wire.Decided
	err := a.send(ctx, d, &r)
	if err != nil && ctx.Err() == nil {
		a.view.Note(InWords(err).Error())
		return false
	}
	if r.Success {
		a.decided[q.ID] = true
		if r.ToldTaskID != "" {
			a.view.Note("the agent is told that with its next prompt: " + r.ToldTaskID)
			a.told = append(a.told, r.ToldTaskID)
		}
	} // else the session was interrupted, or somebody else was faster: an event says so
	return true
}

// asResponse is a decision as an answer to a question that is not about a tool.
func asResponse(q asked, d wire.Decision) wire.Decision {
	if d.Decision == wire.Approve && len(q.Options) > 0 {
		d.Option, d.Comment = q.Options[0].OptionID, q.Options[0].Name
	}
	if d.Decision != wire.Deny || !q.Declinable {
		d.Decision = wire.Respond
	}
	d.Comment = cmp.Or(d.Comment, "yes")
	return d
}

// send sends a decision, and waits for what the hub says, signals and silence
// looked at meanwhile.
func (a *asker) send(ctx context.Context, d wire.Decision, result any) error {
	sent := make(chan error, 1)
	go func() { sent <- a.hub.Call(ctx, "sendDecision", d, result) }()
	for {
		select {
		case err := <-sent:
			if err == nil {
				a.hubHeard(a.view.Note)
			}
			return err
		case silent := <-a.silence:
			a.hubSilent(silent, a.view.Note)
		case sig := <-a.Signals:
			a.interrupt(sig)
		}
	}
}
