package approval

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
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

// asked is the latest request with a question_id.
type asked struct {
	revision int
	approval string // its ID
}

// latest notes that approval id asks the question that p names, and returns the
// approval that asked it before, "" if none did. It reports false for a request
// that a later revision has overtaken on its way.
func (in *Inbox) latest(run int64, p catalog.RequestPermissionParams, id string) (earlier string, ok bool) {
	if p.QuestionID == "" {
		return "", true
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	before, known := in.asked[run][p.QuestionID]
	if known && before.revision > p.Revision {
		return "", false
	}
	if in.asked[run] == nil {
		in.asked[run] = make(map[string]asked)
	}
	in.asked[run][p.QuestionID] = asked{p.Revision, id}
	return before.approval, true
}

// forgetAsked forgets the question_ids of a run that has ended.
func (in *Inbox) forgetAsked(run int64) {
	in.mu.Lock()
	defer in.mu.Unlock()
	delete(in.asked, run)
}

// changed is the question that a asks again because the agent has changed the tool
// call, or nil if nothing is left to do about it. A human's answer to it was given to
// another tool call: a says so.
func (in *Inbox) changed(t store.Tx, earlier string, a *domain.Approval) (*domain.Approval, error) {
	if earlier == "" {
		return nil, nil
	}
	old, err := t.Approval(in.ctx, earlier)
	switch {
	case errors.Is(err, store.ErrNotFound): // the policy had answered it
		return nil, nil
	case err != nil:
		return nil, err
	case old.Status == domain.ApprovalPending:
		return &old, nil
	case old.AwaitedBy == a.Run:
		a.Reopens, a.Reopened = old.ID, fmt.Sprintf(againChanged, inWords(old))
		return &old, nil
	}
	return nil, nil
}

// replace closes the question that a asks again. found is what answers a at once.
func (in *Inbox) replace(t store.Tx, old, a domain.Approval, found answer) error {
	switch {
	case old.Status == domain.ApprovalPending:
		old.Status, old.DecidedBy = domain.ApprovalCancelled, domain.DecidedByChanged
		return in.close(t, old)
	case found != (answer{}):
		return in.giveUp(t, old, givenUpChanged)
	}
	old.AwaitedBy, old.ReopenedAs = 0, a.ID
	return t.UpdateApproval(old)
}
