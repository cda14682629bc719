package approval

import (
	"cmp"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// close keeps a question's end, announces it, wakes whoever waits for
// it, and lets its run go on if that waits for nothing else.
func (in *Inbox) close(t store.Tx, a domain.Approval) error {
	a.Decided = t.Now()
	if !mustBeTaken(a) {
		a.AwaitedBy = 0
	}
	if err := t.UpdateApproval(a); err != nil {
		return err
	}
	run, err := t.Run(in.ctx, a.Run)
	if err != nil {
		return err
	}
	if err := in.announce(t, run, resolvedOf(a)); err != nil {
		return err
	}
	if err := in.noteAnswer(t, run, a); err != nil {
		return err
	}
	t.AfterCommit(func() { in.wake(a) })
	if run.State != domain.WaitingInput {
		return nil
	}
	pending, err := t.PendingApprovals(in.ctx, run.ID)
	if err != nil || len(pending) > 0 {
		return err
	}
	return in.runs.GoOn(t, &run)
}

// noteOf is what the conversation holds of an answer.
func noteOf(a domain.Approval) domain.ApprovalNote {
	return domain.ApprovalNote{ApprovalID: a.ID, Type: a.Type, Decision: a.Status, Title: cmp.Or(a.Title, a.Subject, a.Tool), Response: cmp.Or(a.Response, a.Comment), Explanation: a.Explanation, Edited: a.UpdatedInput != nil}
}

// noteAnswer keeps what a human has said in the conversation, where it is more
// than leave for what a tool call shows already, and what the policy has denied.
func (in *Inbox) noteAnswer(t store.Tx, run domain.Run, a domain.Approval) error {
	if a.Status != domain.ApprovalDenied && (a.DecidedBy != domain.DecidedByUser || a.Status == domain.ApprovalApproved && a.UpdatedInput == nil) {
		return nil
	}
	if a.Status == domain.ApprovalDenied && a.Type == domain.FunctionCall {
		if err := in.transcript.RefuseTool(t, run, a, cmp.Or(a.Explanation, a.Comment)); err != nil {
			return err
		}
	}
	n := noteOf(a)
	text := n.Title + " — " + n.Decision
	if a.DecidedBy != domain.DecidedByUser {
		n.DecidedBy = a.DecidedBy
		text += " by " + a.DecidedBy
	}
	if n.Explanation != "" {
		text += " (" + n.Explanation + ")"
	}
	if n.Response != "" {
		text += ": " + n.Response
	}
	return in.transcript.NoteApproval(t, run, a.ID, text, n)
}

// CancelQuestions closes what a run has asked that ends, or is about to. What is kept
// by KeepQuestions stays open.
func (in *Inbox) CancelQuestions(t store.Tx, run domain.Run) error {
	pending, err := t.PendingApprovals(in.ctx, run.ID)
	if err != nil {
		return err
	}
	for _, a := range pending {
		if a.Stale {
			continue
		}
		a.Status, a.DecidedBy, a.Decided, a.AwaitedBy = domain.ApprovalCancelled, domain.DecidedByEnd, t.Now(), 0
		if err := t.UpdateApproval(a); err != nil {
			return err
		}
		if err := in.announce(t, run, domain.ApprovalResolved{
			ApprovalID: a.ID, CallID: a.CallID, ToolUseID: a.ToolUseID(), Type: a.Type, Status: a.Status, DecidedBy: a.DecidedBy, Tool: a.Tool,
		}); err != nil {
			return err
		}
		t.AfterCommit(func() { in.wake(a) })
	}
	return nil
}

// KeepQuestions marks a run's questions as those of an agent that is gone: they stay open
// when the run ends.
func (in *Inbox) KeepQuestions(t store.Tx, run domain.Run) error {
	pending, err := t.PendingApprovals(in.ctx, run.ID)
	if err != nil {
		return err
	}
	for _, a := range pending {
		a.Stale, a.AwaitedBy = true, 0
		if err := t.UpdateApproval(a); err != nil {
			return err
		}
	}
	return nil
}

// A resolution is how a question ended.
type resolution struct {
	approval  domain.Approval
	cancelled bool // the run is ending: nobody decided
}

// wake tells the agent that waits for an approval how that ended.
func (in *Inbox) wake(a domain.Approval) {
	in.mu.Lock()
	answered := in.waiting[a.ID]
	delete(in.waiting, a.ID)
	in.mu.Unlock()
	if answered != nil {
		answered <- resolution{approval: a, cancelled: a.Status == domain.ApprovalCancelled}
	}
}

// mustBeTaken reports whether a question has a human's answer that lets its agent
// go on, so that it matters whether the agent takes it.
func mustBeTaken(a domain.Approval) bool {
	return a.DecidedBy == domain.DecidedByUser && (a.Status == domain.ApprovalApproved || a.Status == domain.ApprovalResponded)
}
