package approval

import (
	"context"
	"errors"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// awaitAnswer waits for a human.
func (in *Inbox) awaitAnswer(ctx context.Context, a domain.Approval, answered chan resolution) (catalog.RequestPermissionResult, error) {
	var late <-chan time.Time
	if !a.Deadline.IsZero() {
		timer := time.NewTimer(time.Until(a.Deadline))
		defer timer.Stop()
		late = timer.C
	}
	select {
	case v := <-answered:
		if v.cancelled {
			r := cancelled()
			r.Dismissed = v.approval.DecidedBy == domain.DecidedByUser
			return r, nil
		}
		return resultOf(v.approval), nil
	case <-late:
		in.closeUnawaited(a.ID, domain.ApprovalExpired, domain.DecidedByTimeout)
		return catalog.RequestPermissionResult{Reason: "timeout"}, nil
	case <-in.ctx.Done():
		// Any answer would be taken for a human's: the agent would go on without
		// what it asked for, before it is ended.
		<-ctx.Done()
		return catalog.RequestPermissionResult{}, domain.ErrEnding
	case <-ctx.Done():
		in.abandon(a.Run, a.ID)
		return catalog.RequestPermissionResult{}, ctx.Err()
	}
}

// abandon closes a question whose agent asks no more. If it has gone, the question is
// kept with the end of its run.
func (in *Inbox) abandon(run int64, id string) {
	in.awaitEnd(run)
	if in.ctx.Err() == nil {
		in.closeUnawaited(id, domain.ApprovalCancelled, domain.DecidedByEnd)
	}
}

// forget forgets who waits for the answer to a question.
func (in *Inbox) forget(id string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	delete(in.waiting, id)
}

// linkPatience is how long the end of a run may take to be known after its
// link broke. If the run ends, its question is kept.
const linkPatience = time.Second

// awaitEnd waits until a run has no agent any more, but not for long.
func (in *Inbox) awaitEnd(run int64) {
	ended := in.runs.AgentEnded(run)
	if ended == nil {
		return
	}
	timer := time.NewTimer(linkPatience)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
	}
}

// resultOf is a decision as an executor is told it.
func resultOf(a domain.Approval) catalog.RequestPermissionResult {
	r := catalog.RequestPermissionResult{Approved: a.Status == domain.ApprovalApproved, Reason: a.DecidedBy, Comment: a.Comment, OptionID: a.Option, UpdatedInput: a.UpdatedInput}
	if mustBeTaken(a) {
		r.ApprovalID = a.ID
	}
	switch a.Status {
	case domain.ApprovalResponded:
		r.Approved, r.Reason, r.Comment, r.Content = true, "user_responded", a.Response, a.Content
	case domain.ApprovalApproved:
		if a.DecidedBy == domain.DecidedByUser {
			r.Reason = "user_approved"
		}
	case domain.ApprovalDenied:
		if a.DecidedBy == domain.DecidedByUser {
			r.Reason = "user_denied"
		}
	}
	return r
}

// closeUnawaited closes a question that nobody waits for any more.
func (in *Inbox) closeUnawaited(id, status, by string) {
	err := in.runs.Write(in.ctx, func(t store.Tx) error {
		a, err := t.Approval(in.ctx, id)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		if err != nil || a.Status != domain.ApprovalPending || a.Stale || in.runs.KeepsQuestions(a.Run) {
			return err
		}
		a.Status, a.DecidedBy = status, by
		return in.close(t, a)
	})
	if err != nil && in.ctx.Err() == nil {
		in.log.Warn("a question could not be closed", "err", err)
	}
}

// cancelled is the result for an agent whose run is ending.
func cancelled() catalog.RequestPermissionResult {
	return catalog.RequestPermissionResult{Reason: "cancelled", Cancelled: true}
}
