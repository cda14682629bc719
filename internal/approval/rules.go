package approval

import (
	"context"
	"errors"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// A StandingRule is what a human has decided for all questions like one: for a
// conversation, or the whole project.
type StandingRule struct {
	domain.Rule
	Command   string        // what the tool runs; "" where any input will do, and where SameInput
	SameInput bool          // it holds for one input only
	InProject bool          // else in a conversation, Thread
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

// ForgetRule takes back a standing rule: from now on what it settled is asked.
// The error is of KindRuleNotFound if there is none.
func (in *Inbox) ForgetRule(ctx context.Context, id int64) error {
	return in.runs.Write(ctx, func(t store.Tx) error {
		err := t.DeleteRule(id)
		if errors.Is(err, store.ErrNotFound) {
			return domain.Errorf(domain.KindRuleNotFound, "no standing rule has the id %d", id)
		}
		return err
	})
}
