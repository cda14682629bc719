package hub

import (
	"cmp"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// Values of Run.ErrorCode that are ours.
const (
	codeOrphaned     = "ORPHANED"
	codeTimeout      = "TIMEOUT"
	codeExecutorGone = "EXECUTOR_GONE"
	codeAgentExited  = "AGENT_EXITED"        // an executor's
	codeAuthRequired = "AGENT_AUTH_REQUIRED" // an executor's
	codeStart        = "START_FAILED"
	codeRevoked      = "TRUST_REVOKED"
)

// An outcome is why a run changes its state.
type outcome struct {
	reason  string // in the event: user_cancelled, timeout, ...
	code    string // in capitals
	message string // for a human
	stop    string // the agent's stop reason
	signIn  []domain.AuthMethod
	// leaveApprovals keeps open questions open: the run is cut short by the
	// end of the process, not by anybody's wish.
	leaveApprovals bool
	// leaveOpen keeps the message that is being written and the tool calls
	// that run as they are, and answers that were not taken: there is no room
	// to close them. Package fulldisk closes them later.
	leaveOpen bool
}

// transition is the one function that changes the state of a run: the row,
// its event, and where the run ends or is about to, its open approvals, in
// one transaction. It changes run too. What may start now is started at the end
// of the change: it is to be one of [Hub.change].
func (h *Hub) transition(t store.Tx, run *domain.Run, to domain.State, why outcome) error {
	from := run.State
	if !from.CanBecome(to) {
		return domain.Errorf(domain.KindBadState, "%s is %s, so it cannot become %s", domain.TaskName(run.Task), from, to)
	}
	stopped := from == domain.Interrupting && run.ErrorCode != codeTimeout && !domain.IsBudgetCode(run.ErrorCode) || to == domain.Cancelled
	run.State, run.Active = to, t.Now()
	if to == domain.Starting {
		run.Started = t.Now()
	}
	run.ErrorCode, run.Stop = cmp.Or(why.code, run.ErrorCode), cmp.Or(why.stop, run.Stop)
	if why.message != "" {
		run.Error, run.SignIn = why.message, why.signIn
	}
	if to.Ended() {
		run.Ended = t.Now()
		if why.leaveOpen {
			h.conversation.Drop(t, run.ID)
		} else if err := h.conversation.End(t, run); err != nil {
			return err
		}
	}
	if (to.Ended() || to == domain.Interrupting) && !why.leaveApprovals {
		if err := h.approvals.CancelQuestions(t, *run); err != nil {
			return err
		}
	}
	if err := t.UpdateRun(*run); err != nil {
		return err
	}
	thread, err := h.touch(t, run.Thread)
	if err != nil {
		return err
	}
	if err := h.announceState(t, *run, thread, from, why.reason); err != nil {
		return err
	}
	if to.Ended() && !why.leaveOpen {
		if err := h.approvals.SettleAnswers(t, *run, stopped); err != nil {
			return err
		}
	}
	if err := h.gates.Changed(t, *run); err != nil {
		return err
	}
	h.follow(t, *run, from)
	h.mayStart = h.mayStart || letsStart(from, to)
	return nil
}

// touch notes that something happened in a thread.
func (h *Hub) touch(t store.Tx, id int64) (domain.Thread, error) {
	thread, err := t.Thread(h.ctx, id)
	if err != nil {
		return thread, err
	}
	thread.Active = t.Now()
	return thread, t.UpdateThread(thread)
}

// letsStart reports whether a transition may let a queued run start.
func letsStart(from, to domain.State) bool {
	return to == domain.Queued || from.HoldsSlot() && !to.HoldsSlot() || from.Active() && to.Ended() // its executor is free
}
