package approval

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/toolinput"
)

// unconfirmedPatience is how long an executor that somebody else wrote waits at
// most, less a moment: the executor catalog gives it 30 s.
const unconfirmedPatience = 29 * time.Second

// Ask asks, by the policy first and then a person, whether a tool of a run may
// run, and waits for the answer. It gives up when ctx ends: the agent asks no
// more. p is without keys that the agent was given.
func (in *Inbox) Ask(ctx context.Context, run int64, p catalog.RequestPermissionParams) (catalog.RequestPermissionResult, error) {
	if p.Elicitation != nil {
		if err := checkElicitation(domain.Elicitation(*p.Elicitation), p.Title); err != nil {
			return catalog.RequestPermissionResult{}, err
		}
	} else if strings.TrimSpace(p.ToolName) == "" {
		return catalog.RequestPermissionResult{}, domain.Invalid("tool_name", "the name of a tool", "an empty string")
	}
	if p.ToolInput != nil && p.ToolParams != nil && !toolinput.Same(p.ToolInput, p.ToolParams) {
		return catalog.RequestPermissionResult{}, domain.Invalid("tool_params", "nothing beside tool_input, or the same", "another input")
	}
	a := approvalOf(p)
	a.Run, a.AwaitedBy = run, run
	answered := make(chan resolution, 1)
	defer in.forget(a.ID)
	var found answer
	err := in.runs.Write(ctx, func(t store.Tx) (err error) {
		earlier, latest := in.latest(run, p, a.ID)
		if !latest {
			found = answer{ended: true}
			return nil
		}
		old, err := in.changed(t, earlier, &a)
		if err != nil {
			return err
		}
		if found, err = in.answerOrAsk(t, &a, answered); err != nil || old == nil {
			return err
		}
		return in.replace(t, *old, a, found)
	})
	switch {
	case err != nil:
		if ctx.Err() != nil { // it may have been asked nevertheless, and nobody waits
			in.abandon(run, a.ID)
		}
		return catalog.RequestPermissionResult{}, err
	case found.ended:
		return cancelled(), nil
	case found.ruling.IsSettled():
		return catalog.RequestPermissionResult{Approved: found.ruling.Approved, Reason: found.ruling.Reason}, nil
	case found.carried != nil:
		return resultOf(*found.carried), nil
	}
	return in.awaitAnswer(ctx, a, answered)
}

// An answer is what is known to a question when it is asked. The zero value is
// nothing: a person is asked.
type answer struct {
	ended   bool             // its run asks nothing any more
	ruling  ruling           // the policy's
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
		if ruling := in.policy.Judge(callOf(*a), situation); ruling.IsSettled() {
			if err := in.answeredByPolicy(t, *a); err != nil || ruling.Approved {
				return answer{ruling: ruling}, err
			}
			return answer{ruling: ruling}, in.recordRuling(t, a, run, ruling)
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
		var denial ruling
		for _, name := range p.Unasked {
			a.Tool = name
			ruling := in.policy.Judge(callOf(a), situation)
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
