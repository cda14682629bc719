package hub

import (
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

func resolvedOf(a domain.Approval) domain.ApprovalResolved {
	return domain.ApprovalResolved{
		ApprovalID: a.ID, CallID: a.CallID, ToolUseID: a.ToolUseID(), Type: a.Type, Status: a.Status, Response: firstOf(a.Response, a.Comment), Comment: a.Comment,
		Option: a.Option, DecidedBy: a.DecidedBy, Title: a.Title, Tool: a.Tool, InputEdited: a.UpdatedInput != nil,
	}
}

// resolveApproval keeps a question's end, announces it, wakes who waits for
// it, and lets its run go on if that waits for nothing else.
func (h *Hub) resolveApproval(t store.Tx, a domain.Approval) error {
	a.Decided = t.Now()
	if !letsGoOn(a) {
		a.AwaitedBy = 0
	}
	if err := t.UpdateApproval(a); err != nil {
		return err
	}
	run, err := t.Run(h.ctx, a.Run)
	if err != nil {
		return err
	}
	if err := h.announce(t, run, resolvedOf(a)); err != nil {
		return err
	}
	if err := h.noteAnswer(t, run, a); err != nil {
		return err
	}
	t.AfterCommit(func() { h.answer(a) })
	if run.State != domain.WaitingInput {
		return nil
	}
	pending, err := t.PendingApprovals(h.ctx, run.ID)
	if err != nil || len(pending) > 0 {
		return err
	}
	return h.transition(t, &run, domain.Running, outcome{reason: "approval"})
}

// answerNote is what the conversation holds of an answer.
type answerNote struct {
	ApprovalID string `json:"approval_id"`
	Type       string `json:"type"`
	Decision   string `json:"decision"` // denied, responded or approved
	Title      string `json:"title"`
	Response   string `json:"response_text,omitempty"`
	DecidedBy  string `json:"decided_by,omitempty"` // if not the user
	Edited     bool   `json:"input_was_edited,omitempty"`
	Delivery   string `json:"delivery,omitempty"` // what became of the answer, where the agent is not known to have taken it
}

func noteOf(a domain.Approval) answerNote {
	return answerNote{ApprovalID: a.ID, Type: a.Type, Decision: a.Status, Title: firstOf(a.Title, a.Subject, a.Tool), Response: firstOf(a.Response, a.Comment), Edited: a.UpdatedInput != nil}
}

// noteAnswer keeps what a human has said in the conversation, where it is more
// than leave for what a tool call shows already, and what the policy has denied.
func (h *Hub) noteAnswer(t store.Tx, run domain.Run, a domain.Approval) error {
	if a.Status != domain.ApprovalDenied && (a.DecidedBy != byUser || a.Status == domain.ApprovalApproved && a.UpdatedInput == nil) {
		return nil
	}
	n := noteOf(a)
	text := n.Title + " — " + n.Decision
	if a.DecidedBy != byUser {
		n.DecidedBy = a.DecidedBy
		text += " by " + a.DecidedBy
	}
	if n.Response != "" {
		text += ": " + n.Response
	}
	return h.note(t, run, kindApproval, a.ID, text, encode(n))
}

// answer wakes the executor that asked.
func (h *Hub) answer(a domain.Approval) {
	h.mu.Lock()
	answered := h.waiting[a.ID]
	delete(h.waiting, a.ID)
	h.mu.Unlock()
	if answered != nil {
		answered <- verdict{approval: a, cancelled: a.Status == domain.ApprovalCancelled}
	}
}
