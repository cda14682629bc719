package approval

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// StandingRule is a human's decision for all similar questions of a conversation or of the project.
type StandingRule struct {
	domain.Rule
	Command   string        // command that the rule covers; "" for any input, and with SameInput
	SameInput bool          // the rule covers one input only
	InProject bool          // for the project; else for Thread
	Thread    domain.Thread // not set if InProject
}

// Rules lists the standing rules, the oldest first.
func (in *Inbox) Rules(ctx context.Context) ([]StandingRule, error) {
	found, err := in.store.AllRules(ctx)
	if err != nil {
		return nil, store.Explain(err)
	}
	rules := make([]StandingRule, 0, len(found))
	for _, r := range found {
		rule := StandingRule{Rule: r, Command: r.Command, InProject: r.Thread == 0}
		if isForExactInput(r) {
			rule.Command, rule.SameInput = "", true
		}
		if !rule.InProject {
			if rule.Thread, err = in.store.Thread(ctx, r.Thread); err != nil {
				return nil, store.Explain(err)
			}
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

// ForgetRule deletes a standing rule; its calls are asked again. The error is of KindRuleNotFound
// if none has the id.
func (in *Inbox) ForgetRule(ctx context.Context, id int64) error {
	return in.runs.Write(ctx, func(t store.Tx) error {
		err := t.DeleteRule(id)
		if errors.Is(err, store.ErrNotFound) {
			return domain.Errorf(domain.KindRuleNotFound, "no standing rule has the id %d", id)
		}
		return err
	})
}

// situationOf returns the situation for judging the calls of a run.
func (in *Inbox) situationOf(t store.Tx, run domain.Run) (Situation, error) {
	thread, err := t.Thread(in.ctx, run.Thread)
	if err != nil {
		return Situation{}, err
	}
	seen, err := t.AgentSession(in.ctx, run.Thread)
	if err != nil {
		return Situation{}, err
	}
	rules, err := in.standingRules(t, run.Thread)
	situation := Situation{Thread: thread, Run: run, Rules: rules, Now: t.Now()}
	if seen.Modes != nil && seen.Agent == run.Agent {
		situation.AgentModes = domain.IDs(seen.Modes.Choices)
	}
	return situation, err
}

// standingRules returns the valid rules of a conversation and of the project.
func (in *Inbox) standingRules(t store.Tx, thread int64) ([]domain.Rule, error) {
	rules, err := t.Rules(in.ctx, thread)
	return slices.DeleteFunc(rules, func(r domain.Rule) bool {
		return r.Effect != config.EffectDeny && in.isOld(r.Created)
	}), err
}

// isOld reports whether a decision of that time no longer counts.
func (in *Inbox) isOld(decided time.Time) bool {
	return in.since != nil && decided.Before(in.since())
}

// decideBy stores a ruling in a as the decision.
func decideBy(a *domain.Approval, r Ruling) {
	a.Status, a.DecidedBy, a.Explanation = statusOf(r), r.Reason, r.Explanation
}

// recordRuling stores and announces a question that the policy has answered.
func (in *Inbox) recordRuling(t store.Tx, a *domain.Approval, run domain.Run, r Ruling) error {
	decideBy(a, r)
	a.Decided, a.AwaitedBy = t.Now(), 0
	if err := t.InsertApproval(a); err != nil {
		return err
	}
	if err := in.announce(t, run, resolvedOf(*a)); err != nil {
		return err
	}
	return in.noteAnswer(t, run, *a, "")
}

// statusOf returns the approval status for a ruling.
func statusOf(r Ruling) string {
	if r.Approved {
		return domain.ApprovalApproved
	}
	return domain.ApprovalDenied
}

// Reconsider applies the policy again to the open questions of a conversation whose settings or
// rules have changed.
func (in *Inbox) Reconsider(t store.Tx, thread int64) error {
	pending, err := t.PendingInThread(in.ctx, thread)
	if err != nil {
		return err
	}
	return in.reconsider(t, pending)
}

// ReconsiderAll applies the policy again to all open questions, after the project's or configured
// rules have changed.
func (in *Inbox) ReconsiderAll(ctx context.Context) error {
	return in.runs.Write(ctx, in.reconsiderAll)
}

func (in *Inbox) reconsiderAll(t store.Tx) error {
	pending, err := t.PendingApprovals(in.ctx, 0)
	if err != nil {
		return err
	}
	return in.reconsider(t, pending)
}

// reconsider closes the questions that the policy can answer now. Stale ones are left to people.
func (in *Inbox) reconsider(t store.Tx, pending []domain.Approval) error {
	situations := make(map[int64]Situation) // by conversation
	for _, a := range pending {
		if a.Type != domain.FunctionCall || a.Stale {
			continue
		}
		run, err := t.Run(in.ctx, a.Run)
		if err != nil {
			return err
		}
		if run.State == domain.Draft { // not an agent's tool; see Propose
			continue
		}
		situation, known := situations[a.Thread]
		if !known {
			if situation, err = in.situationOf(t, run); err != nil {
				return err
			}
			situations[a.Thread] = situation
		}
		situation.Run = run
		ruling := in.policy.Judge(callOf(a), situation)
		if !ruling.IsSettled() {
			continue
		}
		decideBy(&a, ruling)
		if err := in.close(t, a); err != nil {
			return err
		}
	}
	return nil
}
