package hub

import (
	"cmp"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// Values of Turn.ErrorCode that the hub sets.
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
	// leaveApprovals keeps open questions open, because the process ended the turn and no client
	// asked for that.
	leaveApprovals bool
	// leaveOpen keeps the current message, running tool calls and undelivered answers open, because
	// the disk has no space to close them. CloseLeftOpen closes them later.
	leaveOpen bool
}

// transition is the only function that changes the state of a turn. In one transaction it updates
// the row, adds the event, and closes open approvals if the turn ends. It updates turn in place. Turns
// that may start now start at the end of the transaction, which must be one of [Hub.change].
func (h *Hub) transition(t store.Tx, turn *domain.Turn, to domain.State, why outcome) error {
	from := turn.State
	if !from.CanBecome(to) {
		return domain.Errorf(domain.KindBadState, "%s is %s, so it cannot become %s",
			turn.Label(), from, to)
	}
	stopped := from == domain.Interrupting && turn.ErrorCode != codeTimeout && !domain.IsBudgetCode(turn.ErrorCode) || to == domain.Cancelled
	turn.State, turn.Active = to, t.Now()
	if to == domain.Starting {
		turn.Started = t.Now()
		h.clocks.begin(turn.ID, turn.Started)
	}
	turn.ClockOff = h.clocks.off(*turn, t.Now())
	h.clocks.pause(turn.ID, to == domain.WaitingInput)
	if to.Ended() {
		h.clocks.end(turn.ID)
	}
	turn.ErrorCode, turn.Stop = cmp.Or(why.code, turn.ErrorCode), cmp.Or(why.stop, turn.Stop)
	if why.message != "" {
		turn.Error, turn.SignIn = why.message, why.signIn
	}
	if to.Ended() {
		turn.Ended = t.Now()
		if why.leaveOpen {
			h.transcript.Drop(t, turn.ID)
		} else if err := h.transcript.End(t, turn); err != nil {
			return err
		}
	}
	if (to.Ended() || to == domain.Interrupting) && !why.leaveApprovals {
		if err := h.approvals.CancelQuestions(t, *turn); err != nil {
			return err
		}
	}
	if err := t.UpdateTurn(*turn); err != nil {
		return err
	}
	session, err := h.touch(t, turn.Session)
	if err != nil {
		return err
	}
	if err := h.announceState(t, *turn, session, from, why.reason); err != nil {
		return err
	}
	if to.Ended() && !why.leaveOpen {
		if err := h.approvals.SettleAnswers(t, *turn, stopped); err != nil {
			return err
		}
	}
	if err := h.gates.Changed(t, *turn); err != nil {
		return err
	}
	h.follow(t, *turn, from)
	h.mayStart = h.mayStart || letsStart(from, to)
	return nil
}

// touch updates the session's time.
func (h *Hub) touch(t store.Tx, id int64) (domain.Session, error) {
	session, err := t.Session(h.ctx, id)
	if err != nil {
		return session, err
	}
	session.Active = t.Now()
	return session, t.UpdateSession(session)
}

// letsStart reports whether a transition may let a queued turn start.
func letsStart(from, to domain.State) bool {
	return to == domain.Queued || from.HoldsSlot() && !to.HoldsSlot() || from.Active() && to.Ended() // its executor is free
}
