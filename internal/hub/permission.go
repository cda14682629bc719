package hub

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/policy"
	"github.com/duet-rpc/duet-rpc/internal/store"

	"github.com/duet-rpc/duet-rpc/internal/domain"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/toolinput"
)

// A resolution is how a question ended.
type resolution struct {
	approval  domain.Approval
	cancelled bool // the run is ending: nobody decided
}

// unconfirmedPatience is how long an executor that somebody else wrote waits at
// most, less a moment: the executor catalog gives it 30 s.
const unconfirmedPatience = 29 * time.Second

// Ask asks, by the policy first and then a person, whether a tool of a run may
// run, and waits for the answer. It gives up when ctx ends: the agent asks no
// more. p is without keys that the agent was given.
func (in *Inbox) Ask(ctx context.Context, run int64, p catalog.RequestPermissionParams) (catalog.RequestPermissionResult, error) {
	if strings.TrimSpace(p.ToolName) == "" {
		return catalog.RequestPermissionResult{}, domain.Invalid("tool_name", "the name of a tool", "an empty string")
	}
	if p.ToolInput != nil && p.ToolParams != nil && !toolinput.Same(p.ToolInput, p.ToolParams) {
		return catalog.RequestPermissionResult{}, domain.Invalid("tool_params", "nothing beside tool_input, or the same", "another input")
	}
	a := approvalOf(p)
	a.Run, a.AwaitedBy = run, run
	answered := make(chan resolution, 1)
	var found answer
	err := in.runs.Write(ctx, func(t store.Tx) (err error) {
		found, err = in.answerOrAsk(t, &a, answered)
		return err
	})
	switch {
	case err != nil:
		if ctx.Err() != nil && in.ctx.Err() == nil { // it may have been asked nevertheless, and nobody waits
			in.closeUnawaited(a.ID, domain.ApprovalCancelled, "end")
		}
		return catalog.RequestPermissionResult{}, err
	case found.ended:
		return cancelledResult, nil
	case found.ruling.IsSettled():
		return catalog.RequestPermissionResult{Approved: found.ruling.Approved, Reason: found.ruling.Reason}, nil
	case found.carried != nil:
		return resultOf(*found.carried), nil
	}
	return in.awaitAnswer(ctx, a, answered)
}

// cancelledResult is for an agent whose run is ending.
var cancelledResult = catalog.RequestPermissionResult{Reason: "cancelled", Cancelled: true}

// An answer is what is known to a question when it is asked. The zero value is
// nothing: a person is asked.
type answer struct {
	ended   bool             // its run asks nothing any more
	ruling  policy.Ruling    // the policy's
	carried *domain.Approval // what a person has answered before
}

// answerOrAsk finds the answer to a question of a run, or keeps the question and
// has its resolution sent to answered.
func (in *Inbox) answerOrAsk(t store.Tx, a *domain.Approval, answered chan resolution) (answer, error) {
	run, err := t.Run(in.ctx, a.Run)
	if err != nil {
		return answer{}, err
	}
	if !canAsk(run) {
		return answer{ended: true}, nil
	}
	a.Thread, a.Created = run.Thread, t.Now()
	if a.Type == domain.FunctionCall {
		situation, err := in.situationOf(t, run)
		if err != nil {
			return answer{}, err
		}
		if ruling := in.policy.Judge(policy.CallOf(*a), situation); ruling.IsSettled() {
			return answer{ruling: ruling}, in.answeredByPolicy(t, *a)
		}
	}
	if carried, err := in.handOverCarried(t, *a); err != nil || carried != nil {
		return answer{carried: carried}, err
	}
	if !in.runs.ConfirmsAnswers(run) {
		a.Deadline = t.Now().Add(unconfirmedPatience)
	}
	t.AfterCommit(func() {
		in.mu.Lock()
		in.waiting[a.ID] = answered
		in.mu.Unlock()
	})
	return answer{}, in.askReplacing(t, a, &run)
}

// canAsk reports whether the agent of a run may still ask something.
func canAsk(run domain.Run) bool { return run.State.Active() && run.State != domain.Interrupting }

// situationOf is what the policy judges the calls of a run in.
func (in *Inbox) situationOf(t store.Tx, run domain.Run) (policy.Situation, error) {
	thread, err := t.Thread(in.ctx, run.Thread)
	if err != nil {
		return policy.Situation{}, err
	}
	rules, err := t.Rules(in.ctx, run.Thread)
	return policy.Situation{Thread: thread, Run: run, Rules: rules, Now: t.Now()}, err
}

// CheckUnasked tells whether the policy denies what an agent has an executor do
// without having asked, under each of the names of tools that p.Unasked has. Nobody
// is asked now, but a denial is shown where others are.
func (in *Inbox) CheckUnasked(ctx context.Context, run int64, p catalog.RequestPermissionParams) (catalog.RequestPermissionResult, error) {
	a := approvalOf(p)
	var result catalog.RequestPermissionResult
	err := in.runs.Write(ctx, func(t store.Tx) error {
		result = catalog.RequestPermissionResult{Approved: true}
		run, err := t.Run(in.ctx, run)
		if err != nil {
			return err
		}
		if !canAsk(run) {
			result = catalog.RequestPermissionResult{Cancelled: true}
			return nil
		}
		situation, err := in.situationOf(t, run)
		if err != nil {
			return err
		}
		var denial policy.Ruling
		for _, name := range p.Unasked {
			a.Tool = name
			ruling := in.policy.Judge(policy.CallOf(a), situation)
			if ruling.Approved || !ruling.IsSettled() {
				return nil
			}
			denial = ruling
		}
		result = catalog.RequestPermissionResult{Reason: denial.Reason}
		a.Tool, a.Thread, a.Run, a.Created = cmp.Or(p.ToolName, a.Tool), run.Thread, run.ID, t.Now()
		return in.recordRuling(t, &a, run, denial)
	})
	return result, err
}

// recordRuling keeps and announces a question that the policy has answered.
func (in *Inbox) recordRuling(t store.Tx, a *domain.Approval, run domain.Run, r policy.Ruling) error {
	a.Status, a.DecidedBy, a.Decided = statusOf(r), r.Reason, t.Now()
	if err := t.InsertApproval(a); err != nil {
		return err
	}
	if err := in.announce(t, run, resolvedOf(*a)); err != nil {
		return err
	}
	return in.noteAnswer(t, run, *a)
}

// handOverCarried hands out a decision that a human made for a dead process. It is
// used up when the agent has taken it.
func (in *Inbox) handOverCarried(t store.Tx, a domain.Approval) (*domain.Approval, error) {
	known, err := t.CarriedDecision(in.ctx, a.Thread, a.Question)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if a.InputFixed && known.UpdatedInput != nil {
		return nil, in.giveUp(t, known, whyUnheeded)
	}
	known.Carried, known.AwaitedBy = false, a.Run
	if err := t.UpdateApproval(known); err != nil {
		return nil, err
	}
	return &known, nil
}

// answeredByPolicy lets go what waited for a question that the policy has
// answered now: a human's answer to it, and its asking.
func (in *Inbox) answeredByPolicy(t store.Tx, a domain.Approval) error {
	known, err := t.CarriedDecision(in.ctx, a.Thread, a.Question)
	if err == nil {
		err = in.giveUp(t, known, whyRuled)
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	_, err = in.supersede(t, a)
	return err
}

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
		old.Status, old.DecidedBy = domain.ApprovalCancelled, "end"
		if err := in.close(t, old); err != nil {
			return nil, err
		}
		if old.Reopens != "" {
			reopened = &old
		}
	}
	return reopened, nil
}

// askReplacing is ask for a question that may have been open already, of a
// process that is dead. What that said of an earlier answer holds for this one
// too: it may have been carried out.
func (in *Inbox) askReplacing(t store.Tx, a *domain.Approval, run *domain.Run) error {
	old, err := in.supersede(t, *a)
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
	if err := in.linkTool(t, *a, *run); err != nil {
		return err
	}
	if err := in.announce(t, *run, Requested(*a)); err != nil {
		return err
	}
	if run.State == domain.Running {
		return in.runs.AwaitInput(t, run)
	}
	return nil
}

// linkTool shows a question at its tool call, which begins with it if the
// agent asks before it tells of the call.
func (in *Inbox) linkTool(t store.Tx, a domain.Approval, run domain.Run) error {
	item, err := t.ToolItem(in.ctx, run.ID, a.ToolUseID())
	switch {
	case err == nil:
		item.Approval = a.ID
		return t.UpdateItem(item)
	case !errors.Is(err, store.ErrNotFound):
		return err
	case a.Type != domain.FunctionCall || a.CallID == a.ID: // no call of the agent's
		return nil
	}
	return in.transcript.BeginTool(t, run, a)
}

// awaitAnswer waits for a human.
func (in *Inbox) awaitAnswer(ctx context.Context, a domain.Approval, answered chan resolution) (catalog.RequestPermissionResult, error) {
	defer func() {
		in.mu.Lock()
		delete(in.waiting, a.ID)
		in.mu.Unlock()
	}()
	var late <-chan time.Time
	if !a.Deadline.IsZero() {
		timer := time.NewTimer(time.Until(a.Deadline))
		defer timer.Stop()
		late = timer.C
	}
	select {
	case v := <-answered:
		if v.cancelled {
			return cancelledResult, nil
		}
		return resultOf(v.approval), nil
	case <-late:
		in.closeUnawaited(a.ID, domain.ApprovalExpired, "timeout")
		return catalog.RequestPermissionResult{Reason: "timeout"}, nil
	case <-in.ctx.Done():
		// Any answer would be taken for a human's: the agent would go on without
		// what it asked for, before it is ended.
		<-ctx.Done()
		return catalog.RequestPermissionResult{}, errClosing
	case <-ctx.Done(): // the agent asks no more, or has gone
		in.awaitEnd(a.Run)
		if in.ctx.Err() == nil {
			in.closeUnawaited(a.ID, domain.ApprovalCancelled, "end")
		}
		return catalog.RequestPermissionResult{}, ctx.Err()
	}
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
		r.Approved, r.Reason, r.Comment = true, "user_responded", a.Response
	case domain.ApprovalApproved:
		if a.DecidedBy == byUser {
			r.Reason = "user_approved"
		}
	case domain.ApprovalDenied:
		if a.DecidedBy == byUser {
			r.Reason = "user_denied"
		}
	}
	return r
}

const byUser = "user"

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
