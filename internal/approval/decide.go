package approval

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/toolinput"
)

// Values of Decision.Decision.
const (
	Approve = "approve" // a function_call
	Deny    = "deny"    // a function_call, or a human_contact in which an agent offers options
	Respond = "respond" // to a human_contact
	Cancel  = "cancel"  // a form or an address that was asked for: nobody decides
)

// Values of Decision.Scope.
const (
	ScopeOnce    = "once"    // "" too
	ScopeSession = "session" // it becomes a rule of the conversation
	ScopeProject = "project" // it becomes a rule of the project
)

// Decision answers an approval.
type Decision struct {
	ID           string // of the approval, or of the tool call
	Type         string // what it is taken for, function_call or human_contact; "": whatever it is
	Decision     string
	Comment      string          // required to deny, and to respond without an Option
	Option       string          // an option's id or name, where there are any
	UpdatedInput json.RawMessage // the tool runs with this object instead; absent: with its own
	Scope        string
	Content      json.RawMessage // the values of a form, an object; absent: none
	Pattern      string          // of the commands or files that a rule is to hold for; "": as narrow as what was asked
	Tell         bool            // the comment is to reach the agent, as the next prompt if it takes none with a decision
}

// An Answered is a question that was answered, as it is then.
type Answered struct {
	domain.Approval
	// Next is the run that gives the comment to the agent; nil where it has it with
	// the decision, or is not to have it.
	Next *domain.Run
}

// Decide answers a question, and returns it as it is then. The first answer
// wins: for a later one the error is of domain.KindAlreadyDecided, and what is
// returned is how it was decided. It is of domain.KindApprovalNotFound if there is
// no such question, and of domain.KindInvalid if that cannot be its answer.
func (in *Inbox) Decide(ctx context.Context, d Decision) (Answered, error) {
	if err := d.Check(); err != nil {
		return Answered{}, err
	}
	var a domain.Approval
	var next *domain.Run
	var decided bool // before
	err := in.runs.Write(ctx, func(t store.Tx) (err error) {
		decided = false
		if a, err = find(in.ctx, t, d.ID); err != nil {
			return err
		}
		if decided = a.Status != domain.ApprovalPending; decided {
			return nil
		}
		d, err := d.checkedFor(a)
		if err != nil {
			return err
		}
		if err := in.decide(t, &a, d, clientenv.IsRestricted(ctx)); err != nil {
			return err
		}
		next, err = in.tell(t, a, d, clientenv.IsRestricted(ctx))
		return err
	})
	switch {
	case err != nil: // the change may still be under way, if ctx has ended
		return Answered{}, err
	case decided && a.DecidedBy == domain.DecidedByChanged:
		return Answered{Approval: a}, domain.Errorf(domain.KindAlreadyDecided, "approval %s is closed: the agent changed the tool call; answer the question that replaced it", a.ID)
	case decided:
		return Answered{Approval: a}, domain.Errorf(domain.KindAlreadyDecided, "approval %s already decided with status: %s", a.ID, a.Status)
	}
	return Answered{a, next}, nil
}

// Check reports what is wrong with a decision whatever it is about, in an error of
// domain.KindInvalid. Decide does so too.
func (d Decision) Check() error {
	if d.ID == "" {
		return domain.Invalid("approval_id", "the id of an approval", "nothing")
	}
	if err := d.checkType(d.Type); err != nil {
		return err
	}
	if d.Tell && strings.TrimSpace(d.Comment) == "" {
		return domain.Invalid("comment", "what to tell the agent", "nothing")
	}
	if d.Decision == Approve || d.Decision == Cancel || strings.TrimSpace(d.Comment) != "" || d.Decision == Respond && (d.Option != "" || d.Content != nil) {
		return nil
	}
	return domain.Invalid("comment", "a string that is not empty, to "+d.Decision, "nothing")
}

// checkType reports whether a question of a type can be decided like that at all;
// "" is any type.
func (d Decision) checkType(of string) error {
	accepted := []string{Approve, Deny, Respond, Cancel}
	switch of {
	case domain.FunctionCall:
		accepted = []string{Approve, Deny}
	case domain.HumanContact:
		accepted = []string{Respond}
		if d.Decision == Cancel { // whether it fits is known with the question
			return nil
		}
	}
	if slices.Contains(accepted, d.Decision) {
		return nil
	}
	expected := "one of " + strings.Join(accepted, ", ")
	if of != "" {
		expected += " for a " + of
	}
	return domain.Invalid("decision", expected, fmt.Sprintf("%q", d.Decision), accepted...)
}

// checkedFor is a decision that has passed Check as it counts for an approval, or
// an error if it cannot be the answer to that.
func (d Decision) checkedFor(a domain.Approval) (Decision, error) {
	if d.Type != "" && d.Type != a.Type {
		return d, domain.Invalid("type", a.Type+", which the approval is", fmt.Sprintf("%q", d.Type), a.Type)
	}
	if a.Elicitation.Mode != "" {
		return d.checkedForElicitation(a)
	}
	if d.Content != nil {
		return d, domain.Invalid("content", "nothing: the question has no form", "values of one")
	}
	if a.Type == domain.HumanContact && d.Decision == Cancel {
		return d, domain.Invalid("decision", "a decision that fits "+a.Type, `"cancel"`, Respond)
	}
	if a.Type == domain.HumanContact && d.Decision == Deny {
		if !a.Answers().Declinable {
			return d, domain.Invalid("decision", "a decision that fits "+a.Type, `"deny"`, Respond)
		}
	} else if err := d.checkType(a.Type); err != nil {
		return d, err
	}
	if len(d.UpdatedInput) > 0 && d.UpdatedInput[0] != '{' {
		return d, domain.Invalid("updated_input", "object", "another value")
	}
	if err := mustChoose(a, d); err != nil {
		return d, err
	}
	if err := checkOption(a, d); err != nil {
		return d, err
	}
	if d.Decision == Deny || isSameInput(d.UpdatedInput, a.Input) {
		d.UpdatedInput = nil
	}
	if why := toolinput.Read(d.UpdatedInput).Ambiguity; why != "" {
		return d, domain.Invalid("updated_input", "an object that every program reads alike", "one that they may read differently: "+why)
	}
	if d.UpdatedInput != nil && !a.InputEditable() {
		return d, domain.Invalid("updated_input", "no other input than the agent's: it would run the tool with its own; deny instead, with a comment that says what to run", "another input")
	}
	return d, d.checkScope(a)
}

func (d Decision) checkScope(a domain.Approval) error {
	switch d.Scope {
	case "", ScopeOnce:
		if d.Pattern != "" {
			return domain.Invalid("pattern", "none without a scope of session or project: no rule is kept", fmt.Sprintf("%q", d.Pattern))
		}
		return nil
	case ScopeSession, ScopeProject:
	default:
		return domain.Invalid("scope", "a scope", fmt.Sprintf("%q", d.Scope), ScopeOnce, ScopeSession, ScopeProject)
	}
	if a.IsPlan() {
		return domain.Invalid("scope", "once: a plan is agreed to for itself, so no rule is made of that", fmt.Sprintf("%q", d.Scope), ScopeOnce)
	}
	call := callOf(a)
	if call.IsUnknown() && toolinput.IsEmpty(a.Input) {
		return domain.Invalid("scope", "once: the agent does not say what the tool would get, so a rule could hold for anything", fmt.Sprintf("%q", d.Scope), ScopeOnce)
	}
	if d.Decision == Approve && call.IsAmbiguous() {
		return domain.Invalid("scope", "once: the input can be read in more than one way ("+call.Ambiguity()+"), so no rule can allow it", fmt.Sprintf("%q", d.Scope), ScopeOnce)
	}
	return nil
}

// isSameInput reports whether a changed input is the same as the agent's; no
// input is none other.
func isSameInput(changed, input json.RawMessage) bool {
	return len(changed) == 0 || toolinput.Same(changed, input)
}

// decide keeps a decision and does what follows from it: it may become a rule,
// which answers other questions, and where the agent that asked is gone, the
// conversation is resumed. restrict says that it is by somebody who does not
// trust the workspace.
func (in *Inbox) decide(t store.Tx, a *domain.Approval, d Decision, restrict bool) error {
	a.DecidedBy, a.Comment, a.UpdatedInput = domain.DecidedByUser, d.Comment, d.UpdatedInput
	switch d.Decision {
	case Approve:
		a.Status = domain.ApprovalApproved
		a.Option = optionID(*a, d.Option)
	case Deny:
		a.Status = domain.ApprovalDenied
		a.Option = optionID(*a, d.Option)
	case Respond:
		a.Status, a.Response = domain.ApprovalResponded, cmp.Or(d.Comment, d.Option)
		a.Option = optionID(*a, cmp.Or(d.Option, d.Comment))
		a.Content = d.Content
	case Cancel:
		a.Status = domain.ApprovalCancelled
	}
	rules, err := in.rulesOf(t, *a, d)
	if err != nil {
		return err
	}
	a.Carried = a.Stale && (a.Status == domain.ApprovalApproved || a.Status == domain.ApprovalResponded)
	if err := in.close(t, *a); err != nil {
		return err
	}
	if err := in.keepRules(t, *a, d.Scope, rules); err != nil {
		return err
	}
	if a.Carried {
		return in.resume(t, *a, restrict)
	}
	return nil
}

// rulesOf are the rules that a decision on a tool call becomes, where its scope
// says so.
func (in *Inbox) rulesOf(t store.Tx, a domain.Approval, d Decision) ([]domain.Rule, error) {
	if a.Type != domain.FunctionCall || d.Scope != ScopeSession && d.Scope != ScopeProject {
		return nil, nil
	}
	thread, err := t.Thread(in.ctx, a.Thread)
	if err != nil {
		return nil, err
	}
	spec := ruleSpec{Effect: config.EffectAllow, CWD: thread.CWD, Pattern: strings.TrimSpace(d.Pattern)}
	if a.Status == domain.ApprovalDenied {
		spec.Effect = config.EffectDeny
	}
	if d.Scope == ScopeSession {
		spec.Thread = a.Thread
	}
	rules, err := rulesFor(a, spec)
	if errors.Is(err, errNoPattern) {
		return nil, domain.Invalid("pattern", "none: a rule of this question is for no command and no files that a pattern could name", fmt.Sprintf("%q", d.Pattern))
	}
	if err == nil && spec.Pattern != "" && !in.policy.Holds(callOf(a), spec.Effect, rules, thread) {
		return nil, domain.Invalid("pattern", "one that fits what was asked, and each part of it", fmt.Sprintf("%q", d.Pattern))
	}
	return rules, err
}

// keepRules keeps the rules of a decision, and answers with them what waits.
func (in *Inbox) keepRules(t store.Tx, a domain.Approval, scope string, rules []domain.Rule) error {
	if len(rules) == 0 {
		return nil
	}
	for _, rule := range rules {
		if err := t.PutRule(rule); err != nil {
			return err
		}
	}
	if scope == ScopeProject {
		return in.reconsiderAll(t)
	}
	return in.Reconsider(t, a.Thread)
}

// tell gives the comment of a decision to the agent as the next prompt, where it is
// to have it and takes none with the decision.
func (in *Inbox) tell(t store.Tx, a domain.Approval, d Decision, restrict bool) (*domain.Run, error) {
	if !d.Tell || a.TakesComment() {
		return nil, nil
	}
	asked, err := t.Run(in.ctx, a.Run)
	if err != nil {
		return nil, err
	}
	next, err := in.runs.Tell(t, asked, tellPrompt(a, d.Comment), restrict)
	if err != nil {
		return nil, err
	}
	return &next, nil
}

// tellPrompt says what a person has said about a question, with what that was
// about: other things may have been done since.
func tellPrompt(a domain.Approval, comment string) string {
	asked := cmp.Or(a.Title, a.Subject, a.Tool)
	switch {
	case a.Type == domain.HumanContact:
		return fmt.Sprintf("About your question %q: %s", asked, comment)
	case a.IsPlan() && a.Status == domain.ApprovalDenied:
		return "I did not agree to your plan: " + comment
	case a.IsPlan():
		return "I agreed to your plan: " + comment
	case a.Status == domain.ApprovalDenied:
		return fmt.Sprintf("You asked for permission (%s) and I did not give it: %s", asked, comment)
	}
	return fmt.Sprintf("You asked for permission (%s) and I gave it: %s", asked, comment)
}

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

// asJSON is a value of plain strings, lists and objects as JSON.
func asJSON(v any) json.RawMessage {
	b, _ := json.Marshal(v) // it cannot fail for those
	return b
}
