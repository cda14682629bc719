package hub

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/store"

	"github.com/duet-rpc/duet-rpc/internal/domain"

	"github.com/google/uuid"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/toolinput"
)

// A verdict is how a question ended.
type verdict struct {
	approval  domain.Approval
	cancelled bool // the run is ending: nobody decided
}

// foreignPatience is how long an executor that somebody else wrote waits at
// most: seed 002 gives it 30 s.
const foreignPatience = 29 * time.Second

// RequestPermission asks, by the policy first and then a human, whether a
// tool of a run may run.
func (h *Hub) RequestPermission(ctx context.Context, p catalog.RequestPermissionParams) (catalog.RequestPermissionResult, error) {
	var result catalog.RequestPermissionResult
	token, _, err := h.speakerOf(ctx, p.SessionToken, p.TaskID)
	if err != nil {
		return result, err
	}
	if len(p.Unasked) > 0 {
		return h.checkUnasked(ctx, token.Run, h.withoutSecrets(p, token.Thread))
	}
	if strings.TrimSpace(p.ToolName) == "" {
		return result, domain.Invalid("tool_name", "the name of a tool", "an empty string")
	}
	if p.ToolInput != nil && p.ToolParams != nil && !toolinput.Same(p.ToolInput, p.ToolParams) {
		return result, domain.Invalid("tool_params", "nothing beside tool_input, or the same", "another input")
	}
	a := approvalOf(h.withoutSecrets(p, token.Thread))
	h.intake.EndMessage(token.Run)
	answered := make(chan verdict, 1)
	var ruled ruling
	var carried *domain.Approval
	var foreign bool
	err = h.write(ctx, func(t store.Tx) error {
		run, err := t.Run(h.ctx, token.Run)
		if err != nil {
			return err
		}
		if !run.State.Active() || run.State == domain.Interrupting {
			ruled, carried = ruling{}, nil
			answered <- verdict{cancelled: true}
			return nil
		}
		thread, err := t.Thread(h.ctx, run.Thread)
		if err != nil {
			return err
		}
		foreign = h.isForeign(run)
		a.Thread, a.Run, a.AwaitedBy, a.Created = thread.ID, run.ID, run.ID, t.Now()
		if a.Type == domain.FunctionCall {
			rules, err := t.Rules(h.ctx, thread.ID)
			if err != nil {
				return err
			}
			if ruled = h.rule(questionOf(a), thread, run, rules, t.Now()); ruled.reason != "" {
				return h.answeredByPolicy(t, a)
			}
		}
		if carried, err = h.takeCarried(t, a); err != nil || carried != nil {
			return err
		}
		if foreign {
			a.Deadline = t.Now().Add(foreignPatience)
		}
		t.AfterCommit(func() {
			h.mu.Lock()
			h.waiting[a.ID] = answered
			h.mu.Unlock()
		})
		return h.askInstead(t, &a, &run)
	})
	switch {
	case err != nil:
		if ctx.Err() != nil && h.ctx.Err() == nil { // it may have been asked nevertheless, and nobody waits
			h.closeAlone(a.ID, domain.ApprovalCancelled, "end")
		}
		return result, err
	case ruled.reason != "":
		return catalog.RequestPermissionResult{Approved: ruled.approved, Reason: ruled.reason}, nil
	case carried != nil:
		result = resultOf(*carried)
	default:
		result, err = h.awaitVerdict(ctx, a, answered)
	}
	if foreign && err == nil && result.ApprovalID != "" {
		h.intake.Answered(token.Run, result.ApprovalID)
	}
	return result, err
}

// checkUnasked tells whether the policy denies what an agent has an executor do
// without having asked. Nobody is asked now, but a denial stands where others
// stand.
func (h *Hub) checkUnasked(ctx context.Context, id int64, p catalog.RequestPermissionParams) (catalog.RequestPermissionResult, error) {
	a := approvalOf(p)
	var ruled ruling
	var cancelled bool
	err := h.write(ctx, func(t store.Tx) error {
		ruled, cancelled = ruling{approved: true}, false
		run, err := t.Run(h.ctx, id)
		if err != nil {
			return err
		}
		if cancelled = !run.State.Active() || run.State == domain.Interrupting; cancelled {
			return nil
		}
		thread, err := t.Thread(h.ctx, run.Thread)
		if err != nil {
			return err
		}
		rules, err := t.Rules(h.ctx, thread.ID)
		if err != nil {
			return err
		}
		denied := ruling{}
		for _, name := range p.Unasked {
			a.Tool = name
			r := h.rule(questionOf(a), thread, run, rules, t.Now())
			if r.approved || r.reason == "" {
				return nil
			}
			denied = r
		}
		ruled = denied
		a.Tool, a.Thread, a.Run, a.Created = firstOf(p.ToolName, a.Tool), thread.ID, run.ID, t.Now()
		return h.keepRuling(t, &a, run, ruled)
	})
	return catalog.RequestPermissionResult{Approved: ruled.approved && !cancelled, Reason: ruled.reason, Cancelled: cancelled}, err
}

// keepRuling keeps and announces a question that the policy has answered.
func (h *Hub) keepRuling(t store.Tx, a *domain.Approval, run domain.Run, r ruling) error {
	a.Status, a.DecidedBy, a.Decided = domain.ApprovalDenied, r.reason, t.Now()
	if r.approved {
		a.Status = domain.ApprovalApproved
	}
	if err := t.InsertApproval(a); err != nil {
		return err
	}
	if err := h.announce(t, run, resolvedOf(*a)); err != nil {
		return err
	}
	return h.noteAnswer(t, run, *a)
}

// approvalOf is what an executor asks, as a row.
func approvalOf(p catalog.RequestPermissionParams) domain.Approval {
	input := p.ToolInput
	if input == nil {
		input = p.ToolParams
	}
	a := domain.Approval{
		ID: uuid.NewString(), Type: domain.FunctionCall, CallID: p.ToolUseID, Tool: p.ToolName, Input: input, Title: p.Title,
		ToolKind: p.ToolKind, Paths: p.Paths, Status: domain.ApprovalPending, Question: questionHash(p.ToolName, input), InputFixed: p.InputFixed, NameByKind: p.NameByKind,
	}
	switch {
	case p.IsQuestion:
		a.Type = domain.HumanContact
		a.Question = questionHash(p.ToolName+"\x00"+p.Title, input)
	case saysNothing(input): // then it is known by what was shown of it
		a.Question = questionHash(p.ToolName+"\x00"+p.Title, encode(struct {
			Paths []string
			Diffs []FileDiff
		}{p.Paths, p.Diffs}))
	case len(p.Diffs) > 0: // an agent's input may name the file alone
		a.Question = questionHash(p.ToolName+"\x00"+questionHash("", input), encode(unsaid(p.Diffs, input)))
	}
	if len(p.Diffs) > 0 {
		a.Diffs = encode(p.Diffs)
	}
	if len(p.Options) > 0 {
		a.Options = encode(p.Options)
	}
	if a.CallID == "" {
		a.CallID = a.ID
	}
	return a
}

// takeCarried hands out a decision that a human made for a dead process. It is
// used up when the agent has taken it.
func (h *Hub) takeCarried(t store.Tx, a domain.Approval) (*domain.Approval, error) {
	known, err := t.CarriedDecision(h.ctx, a.Thread, a.Question)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if a.InputFixed && known.UpdatedInput != nil {
		return nil, h.letLie(t, known, whyUnheeded)
	}
	known.Carried, known.AwaitedBy = false, a.Run
	if err := t.UpdateApproval(known); err != nil {
		return nil, err
	}
	return &known, nil
}

// answeredByPolicy lets go what waited for a question that the policy has
// answered now: a human's answer to it, and its asking.
func (h *Hub) answeredByPolicy(t store.Tx, a domain.Approval) error {
	known, err := t.CarriedDecision(h.ctx, a.Thread, a.Question)
	if err == nil {
		err = h.letLie(t, known, whyRuled)
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	_, err = h.supersede(t, a)
	return err
}

// supersede closes the question of a dead process that is asked again: one
// question waits for one answer. It returns the last of them that asks again
// what was answered, or nil.
func (h *Hub) supersede(t store.Tx, a domain.Approval) (reopened *domain.Approval, err error) {
	stale, err := t.StaleApprovals(h.ctx, a.Thread)
	if err != nil {
		return nil, err
	}
	for _, old := range stale {
		if old.Question != a.Question {
			continue
		}
		old.Status, old.DecidedBy = domain.ApprovalCancelled, "end"
		if err := h.resolveApproval(t, old); err != nil {
			return nil, err
		}
		if old.Reopens != "" {
			reopened = &old
		}
	}
	return reopened, nil
}

// askInstead is ask for a question that may have been open already, of a
// process that is dead. What that said of an earlier answer holds for this one
// too: it may have been carried out.
func (h *Hub) askInstead(t store.Tx, a *domain.Approval, run *domain.Run) error {
	old, err := h.supersede(t, *a)
	if err != nil {
		return err
	}
	if old != nil {
		a.Reopens, a.Reopened = old.Reopens, old.Reopened
		answered, err := t.Approval(h.ctx, old.Reopens)
		if err != nil {
			return err
		}
		answered.ReopenedAs = a.ID
		if err := t.UpdateApproval(answered); err != nil {
			return err
		}
	}
	return h.ask(t, a, run)
}

// ask keeps a question, and makes its run wait.
func (h *Hub) ask(t store.Tx, a *domain.Approval, run *domain.Run) error {
	if err := h.closeMessage(t, run); err != nil {
		return err
	}
	if err := t.InsertApproval(a); err != nil {
		return err
	}
	if err := h.linkTool(t, *a, *run); err != nil {
		return err
	}
	if err := h.announce(t, *run, requestOf(*a)); err != nil {
		return err
	}
	if run.State == domain.Running {
		return h.transition(t, run, domain.WaitingInput, outcome{reason: "approval"})
	}
	return nil
}

// linkTool shows a question at its tool call, which begins with it if the
// agent asks before it tells of the call.
func (h *Hub) linkTool(t store.Tx, a domain.Approval, run domain.Run) error {
	item, err := t.ToolItem(h.ctx, run.ID, a.ToolUseID())
	switch {
	case err == nil:
		item.Approval = a.ID
		return t.UpdateItem(item)
	case !errors.Is(err, store.ErrNotFound):
		return err
	case a.Type != domain.FunctionCall || a.CallID == a.ID: // no call of the agent's
		return nil
	}
	item = newTool(run, a.ToolUseID(), t.Now())
	item.Tool, item.Title, item.ToolKind, item.Input, item.Approval = a.Tool, a.Title, a.ToolKind, a.Input, a.ID
	data := toolData{Paths: a.Paths}
	_ = json.Unmarshal(a.Diffs, &data.Diffs) // ours, or absent
	item.Data = encode(data)
	if item.Seq, err = h.announceTool(t, run, item, item, "tool_call"); err != nil {
		return err
	}
	return t.InsertItem(&item)
}

// requestOf is a question as an event tells of it.
func requestOf(a domain.Approval) domain.ApprovalRequested {
	ambiguity, title := Presented(a)
	r := domain.ApprovalRequested{
		ApprovalID: a.ID, CallID: a.CallID, ToolUseID: a.ToolUseID(), Type: a.Type, Tool: a.Tool, Input: a.Input, ToolKind: a.ToolKind,
		InputEditable: a.InputEditable(), Ambiguity: ambiguity, Title: title, Subject: a.Subject, Options: a.Options, Paths: a.Paths, Diffs: a.Diffs,
		Stale: a.Stale, Reopens: a.Reopens, Reopened: a.Reopened,
	}
	for _, part := range []*json.RawMessage{&r.Input, &r.Diffs} { // getApproval has all of it
		if len(*part) > maxEventText {
			*part, r.Truncated = nil, true
		}
	}
	return r
}

// awaitVerdict waits for a human.
func (h *Hub) awaitVerdict(ctx context.Context, a domain.Approval, answered chan verdict) (catalog.RequestPermissionResult, error) {
	defer func() {
		h.mu.Lock()
		delete(h.waiting, a.ID)
		h.mu.Unlock()
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
			return catalog.RequestPermissionResult{Reason: "cancelled", Cancelled: true}, nil
		}
		return resultOf(v.approval), nil
	case <-late:
		h.closeAlone(a.ID, domain.ApprovalExpired, "timeout")
		return catalog.RequestPermissionResult{Reason: "timeout"}, nil
	case <-h.ctx.Done():
		// Any answer would be taken for a human's: the agent would go on without
		// what it asked for, before it is ended.
		<-ctx.Done()
		return catalog.RequestPermissionResult{}, errClosing
	case <-ctx.Done(): // the agent asks no more, or has gone
		h.awaitEnd(a.Run, linkPatience)
		if h.ctx.Err() == nil {
			h.closeAlone(a.ID, domain.ApprovalCancelled, "end")
		}
		return catalog.RequestPermissionResult{}, ctx.Err()
	}
}

// linkPatience is how long the end of a run may take to be known after its
// link broke. If the run ends, its question is kept.
const linkPatience = time.Second

// awaitEnd waits until a run has no agent any more, but not for long.
func (h *Hub) awaitEnd(run int64, most time.Duration) {
	h.mu.Lock()
	live := h.live[run]
	h.mu.Unlock()
	if live == nil {
		return
	}
	select {
	case <-live.ended:
	case <-time.After(most):
	}
}

// resultOf is a decision as an executor is told it.
func resultOf(a domain.Approval) catalog.RequestPermissionResult {
	r := catalog.RequestPermissionResult{Approved: a.Status == domain.ApprovalApproved, Reason: a.DecidedBy, Comment: a.Comment, OptionID: a.Option, UpdatedInput: a.UpdatedInput}
	if letsGoOn(a) {
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

// closeAlone closes a question that nobody waits for any more.
func (h *Hub) closeAlone(id, status, by string) {
	err := h.write(h.ctx, func(t store.Tx) error {
		a, err := t.Approval(h.ctx, id)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		if err != nil || a.Status != domain.ApprovalPending || a.Stale || h.isDoomed(a.Run) {
			return err
		}
		a.Status, a.DecidedBy = status, by
		return h.resolveApproval(t, a)
	})
	if err != nil && h.ctx.Err() == nil {
		h.log.Warn("a question could not be closed", "err", err)
	}
}
