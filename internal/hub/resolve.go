package hub

import (
	"cmp"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// resolvedData is what clients see of a decision.
type resolvedData struct {
	ids
	ApprovalID   string `json:"approval_id"`
	CallID       string `json:"call_id"`
	Type         string `json:"type"`
	Approved     bool   `json:"approved"`
	Decision     string `json:"decision"` // the approval's status
	ResponseText string `json:"response_text"`
	Comment      string `json:"comment,omitempty"`
	Option       string `json:"option,omitempty"`
	DecidedBy    string `json:"decided_by"`
	Title        string `json:"title,omitempty"`
	ToolName     string `json:"tool_name,omitempty"`
	ToolUseID    string `json:"tool_use_id,omitempty"`
	Edited       bool   `json:"input_was_edited,omitempty"`
}

func resolvedOf(a domain.Approval, run domain.Run) resolvedData {
	return resolvedData{
		ids: idsOf(run), ApprovalID: a.ID, CallID: a.CallID, Type: a.Type, Approved: a.Status == domain.ApprovalApproved, Decision: a.Status,
		ResponseText: cmp.Or(a.Response, a.Comment), Comment: a.Comment, Option: a.Option, DecidedBy: a.DecidedBy, Title: a.Title, ToolName: a.Tool,
		ToolUseID: a.ToolUseID(), Edited: a.UpdatedInput != nil,
	}
}

// close keeps a question's end, announces it, wakes who waits for
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
	if err := in.announce(t, EventResolved, run, resolvedOf(a, run)); err != nil {
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
	return answerNote{ApprovalID: a.ID, Type: a.Type, Decision: a.Status, Title: cmp.Or(a.Title, a.Subject, a.Tool), Response: cmp.Or(a.Response, a.Comment), Edited: a.UpdatedInput != nil}
}

// noteAnswer keeps what a human has said in the conversation, where it is more
// than leave for what a tool call shows already, and what the policy has denied.
func (in *Inbox) noteAnswer(t store.Tx, run domain.Run, a domain.Approval) error {
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
	return in.transcript.NoteApproval(t, run, a.ID, text, n)
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

// announce adds an event of a run to the log.
func (in *Inbox) announce(t store.Tx, kind string, run domain.Run, data any) error {
	_, err := t.Append(domain.Event{Type: kind, Thread: run.Thread, Run: run.ID, Data: encode(data)})
	return err
}
