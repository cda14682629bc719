package approval

import (
	"cmp"
	"errors"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// supersede closes the question of a dead process that is asked again: one
// question waits for one answer. It returns the last of them that asks again
// what was answered, or nil.
func (in *Inbox) supersede(t store.Tx, a domain.Approval) (reopened *domain.Approval, err error) {
	stale, err := t.StaleApprovals(in.ctx, a.Thread)
	if err != nil {
		return nil, err
	}
	for _, old := range stale {
		if old.Question != a.Question {
			continue
		}
		old.Status, old.DecidedBy = domain.ApprovalCancelled, domain.DecidedByEnd
		if err := in.close(t, old); err != nil {
			return nil, err
		}
		if old.Reopens != "" {
			reopened = &old
		}
	}
	return reopened, nil
}

// overtaken is the question, closed as the turn began that asks it now, which asked
// again what was answered, or nil.
func (in *Inbox) overtaken(t store.Tx, a domain.Approval) (*domain.Approval, error) {
	old, err := t.OvertakenApproval(in.ctx, a.Thread, a.Question)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	answered, err := t.Approval(in.ctx, old.Reopens)
	if err != nil || answered.ReopenedAs != old.ID { // it was asked, and answered, since
		return nil, err
	}
	return &old, nil
}

// askReplacing is ask for a question that may have been open already, of a
// process that is dead. What that said of an earlier answer holds for this one
// too: it may have been carried out.
func (in *Inbox) askReplacing(t store.Tx, a *domain.Approval, run *domain.Run) error {
	old, err := in.supersede(t, *a)
	if err == nil && old == nil {
		old, err = in.overtaken(t, *a)
	}
	if err != nil {
		return err
	}
	if old != nil {
		a.Reopens, a.Reopened = old.Reopens, old.Reopened
		answered, err := t.Approval(in.ctx, old.Reopens)
		if err != nil {
			return err
		}
		answered.ReopenedAs = a.ID
		if err := t.UpdateApproval(answered); err != nil {
			return err
		}
	}
	return in.ask(t, a, run)
}

// ask keeps a question, and makes its run wait.
func (in *Inbox) ask(t store.Tx, a *domain.Approval, run *domain.Run) error {
	if err := in.transcript.CloseMessage(t, run); err != nil {
		return err
	}
	if err := t.InsertApproval(a); err != nil {
		return err
	}
	if err := in.linkTool(t, a, *run); err != nil {
		return err
	}
	if err := in.announceQuestion(t, *run, *a); err != nil {
		return err
	}
	if run.State == domain.Running {
		return in.runs.AwaitInput(t, run)
	}
	return nil
}

// linkTool shows a question at its tool call, which begins with it if the
// agent asks before it tells of the call. Each of the two may know the sub-agent.
func (in *Inbox) linkTool(t store.Tx, a *domain.Approval, run domain.Run) error {
	item, err := t.ToolItem(in.ctx, run.ID, a.ToolUseID())
	switch {
	case err == nil:
		item.Approval = a.ID
		item.ParentID = cmp.Or(item.ParentID, a.ParentID)
		a.ParentID = item.ParentID
		if details, ok := item.Data.(domain.ToolDetails); ok { // refused before, perhaps
			details.RefusedBy, details.Refusal = "", ""
			item.Data = details
		}
		return t.UpdateItem(item)
	case !errors.Is(err, store.ErrNotFound):
		return err
	case a.Type != domain.FunctionCall || a.CallID == a.ID: // no call of the agent's
		return nil
	}
	return in.transcript.BeginTool(t, run, *a)
}
