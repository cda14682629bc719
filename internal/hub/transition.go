package hub

import (
	"cmp"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// Values of Run.ErrorCode that the hub sets.
const (
	codeOrphaned     = "ORPHANED"
	codeTimeout      = "TIMEOUT"
	codeExecutorGone = "EXECUTOR_GONE"
	codeAgentExited  = "AGENT_EXITED"        // set by executors
	codeAuthRequired = "AGENT_AUTH_REQUIRED" // set by executors
	codeStart        = "START_FAILED"
	codeRevoked      = "TRUST_REVOKED"
)

// outcome is the reason for a state transition.
type outcome struct {
	reason  string // in the event: user_cancelled, timeout, ...
	code    string // error code in capitals
	message string // for a human
	stop    string // the agent's stop reason
	signIn  []domain.AuthMethod
	// leaveApprovals keeps open questions open, because the process ended the run and no client
	// asked for that.
	leaveApprovals bool
	// leaveOpen keeps the current message, running tool calls and undelivered answers open, because
	// the disk has no space to close them. CloseLeftOpen closes them later.
	leaveOpen bool
}

// transition is the only function that changes the state of a run. In one transaction it updates
// the row, adds the event, and closes open approvals if the run ends. It updates run in place. Runs
// that may start now start at the end of the transaction, which must be one of [Hub.change].
func (h *Hub) transition(t store.Tx, run *domain.Run, to domain.State, why outcome) error {
	from := run.State
	if !from.CanBecome(to) {
		return domain.Errorf(domain.KindBadState, "%s is %s, so it cannot become %s", domain.TaskName(run.Task), from, to)
	}
	stopped := from == domain.Interrupting && run.ErrorCode != codeTimeout && !domain.IsBudgetCode(run.ErrorCode) || to == domain.Cancelled
	run.State, run.Active = to, t.Now()
	if to == domain.Starting {
		run.Started = t.Now()
		h.clocks.begin(run.ID, run.Started)
	}
	run.ClockOff = h.clocks.off(*run, t.Now())
	h.clocks.pause(run.ID, to == domain.WaitingInput)
	if to.Ended() {
		h.clocks.end(run.ID)
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

// touch updates the thread's time.
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
