package approval

import (
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// This file settles questions and answers that a turn leaves behind: an answer is taken, handed
// over, asked again or given up; a question is cancelled, kept or overtaken.

// mustBeTaken reports whether a question has a human's answer that lets its agent continue, so that
// delivery to the agent matters.
func mustBeTaken(a domain.Approval) bool {
	return a.DecidedBy == domain.DecidedByUser && (a.Status == domain.ApprovalApproved || a.Status == domain.ApprovalResponded)
}

// Taken notes that the agent of a turn has acted on answers. Answers to other turns are left alone.
func (in *Inbox) Taken(t store.Tx, turn int64, approvals []string) error {
	for _, id := range approvals {
		if err := t.TakeAnswer(id, turn); err != nil {
			return err
		}
	}
	return nil
}

// handOverCarried returns a human's decision for a dead process. It is used up when the agent has
// taken it.
func (in *Inbox) handOverCarried(t store.Tx, a domain.Approval) (*domain.Approval, error) {
	known, err := t.CarriedDecision(in.ctx, a.Session, a.Question)
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
	known.Carried, known.AwaitedBy = false, a.Turn
	if err := t.UpdateApproval(known); err != nil {
		return nil, err
	}
	return &known, nil
}

// answeredByPolicy discards what waits for a question that the policy has now answered: a human's
// answer to it, and its repetition.
func (in *Inbox) answeredByPolicy(t store.Tx, a domain.Approval) error {
	known, err := t.CarriedDecision(in.ctx, a.Session, a.Question)
	if err == nil {
		err = in.giveUp(t, known, givenUpRuled)
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	_, err = in.supersede(t, a)
	return err
}

// Reasons for asking a question again. The verb is the earlier answer: see inWords.
const (
	againUnknown  = "%s before, but the agent ended before it was seen to act on the answer; it may have been carried out"
	againNotTaken = "%s before, but the agent ended its turn without taking the answer"
	againNotAsked = "%s before, but the agent continued without this question, so it never got the answer"
	againChanged  = "%s before, but the agent had changed the tool call by then"
	againEnded    = "%s before, but the agent ended before it asked this again, so it never got the answer"
)

// Reasons for dropping an answer.
const (
	givenUpStopped    = "%s, but the turn was stopped before the agent was seen to act on the answer"
	givenUpInputFixed = "%s, but the continuing agent would run the tool with its own input, so the question is asked again"
	givenUpRuled      = "%s, but a rule or a mode has answered the question since"
	givenUpNotNeeded  = "%s, but the agent continued without this question"
	givenUpLate       = "%s, but the agent did not ask this again for so long that the answer no longer counts"
	givenUpChanged    = "%s, but the agent had changed the tool call by then"
	givenUpOvertaken  = "%s, but the session continued without this question"
)

// inWords describes a human's answer in a few words.
func inWords(a domain.Approval) string {
	switch {
	case a.Status == domain.ApprovalResponded:
		return "answered"
	case a.UpdatedInput != nil: // the repeated question shows the agent's own input
		return "allowed with another input"
	}
	return "allowed"
}

// SettleAnswers settles the answers of a turn that has ended: those that its agent got but has not
// taken, those that wait for the question to be asked again, and stale questions that an answer has
// passed. stopped says that a client ended the turn, which overrides any answer.
func (in *Inbox) SettleAnswers(t store.Tx, turn domain.Turn, stopped bool) error {
	if turn.State == domain.Completed && turn.Source == domain.SourceDecision {
		if err := in.closeBefore(t, turn); err != nil {
			return err
		}
	}
	in.forgetAsked(turn.ID)
	untaken, err := t.UntakenAnswers(in.ctx, turn.ID)
	if err != nil {
		return err
	}
	for _, a := range untaken {
		switch {
		case turn.State == domain.Completed && !in.turns.ConfirmsAnswers(turn):
			err = t.TakeAnswer(a.ID, turn.ID)
		case turn.State == domain.Completed:
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
	return in.settleCarried(t, turn, stopped)
}

// settleCarried settles the answers that wait for their question, once no turn of the session is left
// that could ask it.
func (in *Inbox) settleCarried(t store.Tx, turn domain.Turn, stopped bool) error {
	more, err := t.HasUnfinished(in.ctx, turn.Session, turn.ID)
	if err != nil {
		return err
	}
	// Stopping the turn that an answer started takes the answer back, whatever is queued behind it.
	tookBack := stopped && turn.Source == domain.SourceDecision
	if more && !tookBack && !turn.IsQuestion() {
		return nil
	}
	carried, err := t.CarriedDecisions(in.ctx, turn.Session)
	if err != nil {
		return err
	}
	for _, a := range carried {
		if turn.IsQuestion() { // other clients may ask in its session, so its end says nothing about their questions
			if turn.State == domain.Completed && a.Decided.Before(turn.Created) {
				if err := in.giveUp(t, a, givenUpOvertaken); err != nil {
					return err
				}
			}
			continue
		}
		if more && a.Decided.After(turn.Created) { // for another question
			continue
		}
		switch {
		case stopped:
			err = in.giveUp(t, a, givenUpStopped)
		case turn.State != domain.Completed:
			err = in.reopen(t, a, againEnded)
		default:
			// An agent may ask its question in other words. An agent that learned that its call may
			// have run need not ask at all. A human who was asked twice is not asked a third time.
			// A turn that was not started for an answer does not know it.
			var other bool
			continued := turn.Source == domain.SourceDecision && !turn.Created.Before(a.Decided)
			overtaken := turn.Source != domain.SourceDecision && a.Decided.Before(turn.Created)
			if other, err = t.HasAsked(in.ctx, turn.ID, a.Tool); err == nil && continued && other {
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

// reopen asks a human again when it is unknown whether the agent acted on the answer.
func (in *Inbox) reopen(t store.Tx, a domain.Approval, why string) error {
	turn, err := t.Turn(in.ctx, a.Turn)
	if err != nil {
		return err
	}
	again := domain.Approval{
		ID: uuid.NewString(), Session: a.Session, Turn: a.Turn, Type: a.Type, CallID: a.ToolUseID(), Tool: a.Tool, Input: a.Input, Title: a.Title,
		Subject: a.Subject, ToolKind: a.ToolKind, Paths: a.Paths, Diffs: a.Diffs, Options: a.Options, Channel: a.Channel, Plan: a.Plan,
		Details: a.Details,
		Status:  domain.ApprovalPending, Stale: true, Question: a.Question, InputFixed: a.InputFixed, NameByKind: a.NameByKind, Created: t.Now(),
		Reopens: a.ID, Reopened: fmt.Sprintf(why, inWords(a)), Elicitation: a.Elicitation,
	}
	if a.CallID == a.ID { // not a tool call of the agent
		again.CallID = again.ID
	}
	a.AwaitedBy, a.Carried, a.ReopenedAs = 0, false, again.ID
	if err := t.UpdateApproval(a); err != nil {
		return err
	}
	if err := in.noteDelivery(t, a, turn, again.Reopened+"; it is asked again"); err != nil {
		return err
	}
	if err := t.InsertApproval(&again); err != nil {
		return err
	}
	if err := in.linkTool(t, &again, turn); err != nil {
		return err
	}
	return in.announceQuestion(t, turn, again)
}

// giveUp drops an answer that no agent will act on.
func (in *Inbox) giveUp(t store.Tx, a domain.Approval, why string) error {
	turn, err := t.Turn(in.ctx, a.Turn)
	if err != nil {
		return err
	}
	a.AwaitedBy, a.Carried = 0, false
	if err := t.UpdateApproval(a); err != nil {
		return err
	}
	return in.noteDelivery(t, a, turn, fmt.Sprintf(why, inWords(a)))
}

// noteNotAsked notes that the agent continued without asking again. The answer is kept for the
// following turn, in which an agent that continues by itself may ask.
func (in *Inbox) noteNotAsked(t store.Tx, a domain.Approval) error {
	turn, err := t.Turn(in.ctx, a.Turn)
	if err != nil {
		return err
	}
	return in.noteDelivery(t, a, turn, fmt.Sprintf(givenUpNotNeeded, inWords(a)))
}

// noteDelivery records in the transcript what became of an answer.
func (in *Inbox) noteDelivery(t store.Tx, a domain.Approval, turn domain.Turn, text string) error {
	n := noteOf(a)
	n.Delivery = text
	return in.transcript.NoteApproval(t, turn, a.ID, n.Title+" — "+text, n)
}

// CancelQuestions closes the questions of a turn that has ended or is about to. Those kept by
// KeepQuestions stay open.
func (in *Inbox) CancelQuestions(t store.Tx, turn domain.Turn) error {
	pending, err := t.PendingApprovals(in.ctx, turn.ID)
	if err != nil {
		return err
	}
	for _, a := range pending {
		if a.Stale {
			continue
		}
		a.Status, a.DecidedBy, a.Decided, a.AwaitedBy = domain.ApprovalCancelled, domain.DecidedByEnd, t.Now(), 0
		if err := t.UpdateApproval(a); err != nil {
			return err
		}
		if err := in.announce(t, turn, domain.ApprovalResolved{
			ApprovalID: a.ID, CallID: a.CallID, ToolUseID: a.ToolUseID(), Type: a.Type, Status: a.Status, DecidedBy: a.DecidedBy, Tool: a.Tool,
		}); err != nil {
			return err
		}
		t.AfterCommit(func() { in.wake(a) })
	}
	return nil
}

// KeepQuestions marks a turn's questions as stale: they stay open when the turn ends.
func (in *Inbox) KeepQuestions(t store.Tx, turn domain.Turn) error {
	pending, err := t.PendingApprovals(in.ctx, turn.ID)
	if err != nil {
		return err
	}
	for _, a := range pending {
		a.Stale, a.AwaitedBy = true, 0
		if err := t.UpdateApproval(a); err != nil {
			return err
		}
	}
	return nil
}

// CloseOvertaken closes stale questions when a later turn begins in their session. Approving
// such a question must not run a tool of a turn that is over for the user. If the agent still needs
// it, it asks again. A turn started by an answer continues the earlier one, so it leaves other
// questions open until it has completed.
func (in *Inbox) CloseOvertaken(t store.Tx, turn domain.Turn) error {
	if turn.Source == domain.SourceDecision {
		return nil
	}
	return in.closeBefore(t, turn)
}

// CloseStale closes the stale questions of a session that gets another agent.
func (in *Inbox) CloseStale(t store.Tx, session int64) error {
	return in.closeStale(t, session, func(domain.Approval) bool { return true })
}

// closeBefore closes stale questions that are older than a turn.
func (in *Inbox) closeBefore(t store.Tx, turn domain.Turn) error {
	return in.closeStale(t, turn.Session, func(a domain.Approval) bool { return isOvertaken(a, turn) })
}

// closeStale closes the stale questions of a session for which overtaken returns true.
func (in *Inbox) closeStale(t store.Tx, session int64, overtaken func(domain.Approval) bool) error {
	stale, err := t.StaleApprovals(in.ctx, session)
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

// isOvertaken reports whether a turn was launched after a question of an earlier turn.
func isOvertaken(a domain.Approval, turn domain.Turn) bool {
	return a.Turn < turn.ID && a.Created.Before(turn.Created)
}

// Done notes in the transcript that the action at an address is complete, as the turn's agent
// reports. It ignores questions that the turn did not ask.
func (in *Inbox) Done(t store.Tx, turn domain.Turn, id string) error {
	a, err := t.Approval(in.ctx, id)
	if errors.Is(err, store.ErrNotFound) || err == nil && (a.Turn != turn.ID || a.Elicitation.Mode != domain.ElicitURL) {
		return nil
	}
	if err != nil {
		return err
	}
	return in.noteDelivery(t, a, turn, "the agent says that this is done")
}
