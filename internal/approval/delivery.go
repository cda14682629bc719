package approval

import (
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// Why a question is asked again. The verb is what the answer was: see inWords.
const (
	againUnknown  = "%s before, but the agent ended before it was seen to act on the answer; it may have been carried out"
	againNotTaken = "%s before, but the agent ended its turn without taking the answer"
	againNotAsked = "%s before, but the agent went on without asking this again, so it never got the answer"
	againChanged  = "%s before, but the agent had changed the tool call by then"
	againEnded    = "%s before, but the agent ended before it asked this again, so it never got the answer"
)

// Why an answer is given up.
const (
	givenUpStopped    = "%s, but the turn was stopped before the agent was seen to act on the answer"
	givenUpInputFixed = "%s, but the agent that goes on would run the tool with its own input, so the question is asked anew"
	givenUpRuled      = "%s, but a rule or a mode has answered the question since"
	givenUpNotNeeded  = "%s, but the agent went on without asking this again"
	givenUpLate       = "%s, but nobody asked this again for so long that the answer does not count any more"
	givenUpChanged    = "%s, but the agent had changed the tool call by then"
	givenUpOvertaken  = "%s, but the conversation went on with something else, in which this was not asked again"
)

// inWords says in a few words what a human did.
func inWords(a domain.Approval) string {
	switch {
	case a.Status == domain.ApprovalResponded:
		return "answered"
	case a.UpdatedInput != nil: // the question that is asked again shows the agent's own
		return "approved with another input"
	}
	return "approved"
}

// SettleAnswers sees to the answers of a run that has ended: what its agent
// was given and has not taken, what it was to be given when it asked again, and
// questions of dead agents that an answer has led past. stopped says that somebody
// wished it to end, which is later than any answer.
func (in *Inbox) SettleAnswers(t store.Tx, run domain.Run, stopped bool) error {
	if run.State == domain.Completed && run.Source == domain.SourceDecision {
		if err := in.closeBefore(t, run); err != nil {
			return err
		}
	}
	in.forgetAsked(run.ID)
	untaken, err := t.UntakenAnswers(in.ctx, run.ID)
	if err != nil {
		return err
	}
	for _, a := range untaken {
		switch {
		case run.State == domain.Completed && !in.runs.ConfirmsAnswers(run):
			err = t.TakeAnswer(a.ID, run.ID)
		case run.State == domain.Completed:
			err = in.reopen(t, a, againNotTaken)
		case stopped:
			err = in.giveUp(t, a, givenUpStopped)
		default:
			err = in.reopen(t, a, againUnknown)
		}
		if err != nil {
			return err
		}
	}
	return in.settleCarried(t, run, stopped)
}

// settleCarried sees to the answers that waited for a question to be asked
// again, once nothing of the thread is left that would ask it.
func (in *Inbox) settleCarried(t store.Tx, run domain.Run, stopped bool) error {
	more, err := t.HasUnfinished(in.ctx, run.Thread, run.ID)
	if err != nil {
		return err
	}
	// Who stops the turn that an answer began has taken that back, whatever waits
	// behind it.
	tookBack := stopped && run.Source == domain.SourceDecision
	if more && !tookBack && !run.IsQuestion() {
		return nil
	}
	carried, err := t.CarriedDecisions(in.ctx, run.Thread)
	if err != nil {
		return err
	}
	for _, a := range carried {
		if run.IsQuestion() { // others may ask in its conversation: it says nothing of what they have asked
			if run.State == domain.Completed && a.Decided.Before(run.Created) {
				if err := in.giveUp(t, a, givenUpOvertaken); err != nil {
					return err
				}
			}
			continue
		}
		if more && a.Decided.After(run.Created) { // for another one
			continue
		}
		switch {
		case stopped:
			err = in.giveUp(t, a, givenUpStopped)
		case run.State != domain.Completed:
			err = in.reopen(t, a, againEnded)
		default:
			// An agent may put its question in other words, and one that was told
			// that a thing may be done already need not ask at all. Who has been
			// asked twice is not asked for ever. A turn that was not continued for an
			// answer knows nothing of it.
			var other bool
			continued := run.Source == domain.SourceDecision && !run.Created.Before(a.Decided)
			overtaken := run.Source != domain.SourceDecision && a.Decided.Before(run.Created)
			if other, err = t.HasAsked(in.ctx, run.ID, a.Tool); err == nil && continued && other {
				err = in.giveUp(t, a, givenUpNotNeeded)
			} else if err == nil && continued && a.Reopens != "" {
				err = in.noteNotAsked(t, a)
			} else if err == nil && overtaken {
				err = in.giveUp(t, a, givenUpOvertaken)
			} else if err == nil {
				err = in.reopen(t, a, againNotAsked)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// reopen asks a human again what was answered without anybody knowing that
// the agent has acted on it.
func (in *Inbox) reopen(t store.Tx, a domain.Approval, why string) error {
	run, err := t.Run(in.ctx, a.Run)
	if err != nil {
		return err
	}
	again := domain.Approval{
		ID: uuid.NewString(), Thread: a.Thread, Run: a.Run, Type: a.Type, CallID: a.ToolUseID(), Tool: a.Tool, Input: a.Input, Title: a.Title,
		Subject: a.Subject, ToolKind: a.ToolKind, Paths: a.Paths, Diffs: a.Diffs, Options: a.Options, Channel: a.Channel, Plan: a.Plan, Details: a.Details,
		Status: domain.ApprovalPending, Stale: true, Question: a.Question, InputFixed: a.InputFixed, NameByKind: a.NameByKind, Created: t.Now(),
		Reopens: a.ID, Reopened: fmt.Sprintf(why, inWords(a)), Elicitation: a.Elicitation,
	}
	if a.CallID == a.ID { // no call of the agent's
		again.CallID = again.ID
	}
	a.AwaitedBy, a.Carried, a.ReopenedAs = 0, false, again.ID
	if err := t.UpdateApproval(a); err != nil {
		return err
	}
	if err := in.noteDelivery(t, a, run, again.Reopened+"; it is asked again"); err != nil {
		return err
	}
	if err := t.InsertApproval(&again); err != nil {
		return err
	}
	if err := in.linkTool(t, &again, run); err != nil {
		return err
	}
	return in.announceQuestion(t, run, again)
}

// giveUp gives up an answer that nobody is to act on any more.
func (in *Inbox) giveUp(t store.Tx, a domain.Approval, why string) error {
	run, err := t.Run(in.ctx, a.Run)
	if err != nil {
		return err
	}
	a.AwaitedBy, a.Carried = 0, false
	if err := t.UpdateApproval(a); err != nil {
		return err
	}
	return in.noteDelivery(t, a, run, fmt.Sprintf(why, inWords(a)))
}

// noteNotAsked says that the agent went on without asking again. The answer is kept for the run
// that follows: the agent may go on by itself, and ask then.
func (in *Inbox) noteNotAsked(t store.Tx, a domain.Approval) error {
	run, err := t.Run(in.ctx, a.Run)
	if err != nil {
		return err
	}
	return in.noteDelivery(t, a, run, fmt.Sprintf(givenUpNotNeeded, inWords(a)))
}

// noteDelivery keeps in the conversation what became of an answer.
func (in *Inbox) noteDelivery(t store.Tx, a domain.Approval, run domain.Run, text string) error {
	n := noteOf(a)
	n.Delivery = text
	return in.transcript.NoteApproval(t, run, a.ID, n.Title+" — "+text, n)
}

// CloseOvertaken closes the questions of dead agents that a conversation leaves
// behind as a turn begins that somebody wanted since: to approve one must not run
// a tool whose turn is over for that person. If the agent still wants it, it asks
// again. A turn that an answer began goes on with the one before, so that leaves
// other questions open, until it has completed.
func (in *Inbox) CloseOvertaken(t store.Tx, run domain.Run) error {
	if run.Source == domain.SourceDecision {
		return nil
	}
	return in.closeBefore(t, run)
}

// CloseStale closes the questions of dead agents that a conversation leaves behind as it
// gets another agent, which has not asked them.
func (in *Inbox) CloseStale(t store.Tx, thread int64) error {
	return in.closeStale(t, thread, func(domain.Approval) bool { return true })
}

// closeBefore closes the questions of dead agents that were there when a run was
// wanted.
func (in *Inbox) closeBefore(t store.Tx, run domain.Run) error {
	return in.closeStale(t, run.Thread, func(a domain.Approval) bool { return isOvertaken(a, run) })
}

// closeStale closes those questions of dead agents in a conversation that are overtaken.
func (in *Inbox) closeStale(t store.Tx, thread int64, overtaken func(domain.Approval) bool) error {
	stale, err := t.StaleApprovals(in.ctx, thread)
	if err != nil {
		return err
	}
	for _, a := range stale {
		if !overtaken(a) {
			continue
		}
		a.Status, a.DecidedBy = domain.ApprovalCancelled, domain.DecidedByOvertaken
		if err := in.close(t, a); err != nil {
			return err
		}
	}
	return nil
}

// isOvertaken reports whether a run was wanted after a question had been asked, in
// an earlier one.
func isOvertaken(a domain.Approval, run domain.Run) bool {
	return a.Run < run.ID && a.Created.Before(run.Created)
}

// Taken notes that the agent of a run was seen to go on from answers. What was
// not answered to that run is left alone.
func (in *Inbox) Taken(t store.Tx, run int64, approvals []string) error {
	for _, id := range approvals {
		if err := t.TakeAnswer(id, run); err != nil {
			return err
		}
	}
	return nil
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
	if in.isOld(known.Decided) {
		return nil, nil
	}
	if a.InputFixed && known.UpdatedInput != nil {
		return nil, in.giveUp(t, known, givenUpInputFixed)
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
		err = in.giveUp(t, known, givenUpRuled)
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	_, err = in.supersede(t, a)
	return err
}
