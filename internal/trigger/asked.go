package trigger

import (
	"context"
	"errors"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// settle does what people have agreed to, and notes what they have not.
func (e *Engine) settle(ctx context.Context) {
	open, err := e.opts.Store.OpenTriggerExecutions(ctx)
	e.warn(err, "what waits for people cannot be read", "")
	for _, x := range open {
		if x.Status != domain.TriggerWaiting {
			continue
		}
		err := e.opts.Runs.Write(ctx, func(tx store.Tx) error { return e.settleOne(tx, x) })
		var refused *domain.Error
		if errors.As(err, &refused) && refused.Kind != domain.KindUnavailable {
			x.Status, x.Error = domain.TriggerError, refused.Message
			err = e.opts.Runs.Write(ctx, func(tx store.Tx) error { return e.keep(tx, &x, domain.Run{}) })
		}
		e.warn(err, "what a person has decided could not be done", x.Trigger)
	}
}

// settleOne does what the answer to the question of an execution says, if there is one.
func (e *Engine) settleOne(tx store.Tx, x domain.TriggerExecution) error {
	a, err := tx.Approval(e.ctx, x.Approval)
	if errors.Is(err, store.ErrNotFound) { // its conversation was deleted
		x.Status, x.Run = domain.TriggerNoApprover, 0
		return e.keep(tx, &x, domain.Run{})
	}
	if err != nil || a.Status == domain.ApprovalPending {
		return err
	}
	draft, err := tx.Run(e.ctx, x.Run)
	if err != nil {
		return err
	}
	if a.Status == domain.ApprovalApproved {
		t, automation, exists := e.definition(x.Trigger)
		if exists && t.Action.Type == x.Action {
			return e.perform(tx, automation, &x, &draft)
		}
		x.Error = "the trigger is not in the configuration any more, or does something else"
	}
	switch {
	case x.Error != "":
		x.Status = domain.TriggerError
	case a.Status == domain.ApprovalDenied:
		x.Status, x.Error = domain.TriggerDenied, a.Comment
	default:
		x.Status = domain.TriggerNoApprover
	}
	if draft.State == domain.Draft {
		if err := e.opts.Runs.Discard(tx, &draft); err != nil {
			return err
		}
	}
	return e.keep(tx, &x, draft)
}
