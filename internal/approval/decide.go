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
	Approve = "approve" // for a function_call
	Deny    = "deny"    // for a function_call, or a human_contact with an agent's options
	Respond = "respond" // for a human_contact
	Cancel  = "cancel"  // for a form or an address: closed without a decision
)

// Values of Decision.Scope.
const (
	ScopeOnce    = "once"    // "" too
	ScopeSession = "session" // creates a rule for the conversation
	ScopeProject = "project" // creates a rule for the project
)

// Decision answers an approval.
type Decision struct {
	ID           string // id of the approval or the tool call
	Type         string // expected type, function_call or human_contact; "": any
	Decision     string
	Comment      string          // required to deny, and to respond without an Option
	Option       string          // id or name of an offered option
	UpdatedInput json.RawMessage // replaces the tool's input, an object; absent: unchanged
	Scope        string
	Content      json.RawMessage // form values, an object; absent: none
	Pattern      string          // commands or files that the rule covers; "": the narrowest
	Client       string          // names the deciding client for people, such as VS Code; "": unknown
	Tell         bool            // the comment must reach the agent, as the next prompt if the decision cannot carry it
}

// longestClient is the longest name of a client, in bytes.
const longestClient = 100

// Answered is an approval together with its decision.
type Answered struct {
	domain.Approval
	// Next is the run that sends the comment to the agent. It is nil if the decision carries the
	// comment, or if it is not to be sent.
	Next *domain.Run
}

// Decide answers a question and returns it. The first answer wins: a later one returns the existing
// decision with an error of domain.KindAlreadyDecided. The error is of domain.KindApprovalNotFound
// if no such question exists, and of domain.KindInvalid if the answer does not fit.
func (in *Inbox) Decide(ctx context.Context, d Decision) (Answered, error) {
	if err := d.Check(); err != nil {
		return Answered{}, err
	}
	var a domain.Approval
	var next *domain.Run
	var decided bool // earlier
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
	case err != nil: // the transaction may still run if ctx has ended
		return Answered{}, err
	case decided && a.DecidedBy == domain.DecidedByChanged:
		return Answered{Approval: a}, domain.Errorf(domain.KindAlreadyDecided, "approval %s is closed: the agent changed the tool call; answer the question that replaced it", a.ID)
	case decided:
		return Answered{Approval: a}, domain.Errorf(domain.KindAlreadyDecided, "approval %s already decided with status: %s", a.ID, a.Status)
	}
	return Answered{a, next}, nil
}

// Check validates a decision without its question. Its error is of domain.KindInvalid. Decide calls
// it.
func (d Decision) Check() error {
	if d.ID == "" {
		return domain.Invalid("approval_id", "the id of an approval", "nothing")
	}
	if err := d.checkType(d.Type); err != nil {
		return err
	}
	if len(d.Client) > longestClient {
		return domain.Invalid("client", fmt.Sprintf("a name of at most %d bytes", longestClient), fmt.Sprintf("%d bytes", len(d.Client)))
	}
	if d.Tell && strings.TrimSpace(d.Comment) == "" {
		return domain.Invalid("comment", "what to tell the agent", "nothing")
	}
	if d.Decision == Approve || d.Decision == Cancel || strings.TrimSpace(d.Comment) != "" || d.Decision == Respond && (d.Option != "" || d.Content != nil) {
		return nil
	}
	return domain.Invalid("comment", "a string that is not empty, to "+d.Decision, "nothing")
}

// checkType checks that a decision fits a type of question; "" is any type.
func (d Decision) checkType(of string) error {
	accepted := []string{Approve, Deny, Respond, Cancel}
	switch of {
	case domain.FunctionCall:
		accepted = []string{Approve, Deny}
	case domain.HumanContact:
		accepted = []string{Respond}
		if d.Decision == Cancel { // checked later, with the question
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

// checkedFor validates a decision that has passed Check against its approval, and returns it with
// defaults filled in.
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

// isSameInput reports whether a changed input equals the agent's. An absent input is equal.
func isSameInput(changed, input json.RawMessage) bool {
	return len(changed) == 0 || toolinput.Same(changed, input)
}

// decide stores a decision and applies its consequences. It may become a rule, which answers other
// questions. If the agent that asked is gone, the conversation is resumed. restrict says that the
// deciding client does not trust the workspace.
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
	if err := in.closeIn(t, *a, d.Client); err != nil {
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

// rulesOf returns the rules that a decision on a tool call creates, according to its scope.
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

// keepRules stores the rules of a decision and answers open questions with them.
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

// tell sends the comment of a decision to the agent as the next prompt, if requested and if the
// decision cannot carry it.
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

// tellPrompt returns the prompt for a comment. It repeats what the question was about, because the
// agent may have done other things since.
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

// Reasons for asking a question again. The verb is the earlier answer: see inWords.
const (
	againUnknown  = "%s before, but the agent ended before it was seen to act on the answer; it may have been carried out"
	againNotTaken = "%s before, but the agent ended its turn without taking the answer"
	againNotAsked = "%s before, but the agent went on without asking this again, so it never got the answer"
	againChanged  = "%s before, but the agent had changed the tool call by then"
	againEnded    = "%s before, but the agent ended before it asked this again, so it never got the answer"
)

// Reasons for dropping an answer.
const (
	givenUpStopped    = "%s, but the turn was stopped before the agent was seen to act on the answer"
	givenUpInputFixed = "%s, but the continuing agent would run the tool with its own input, so the question is asked again"
	givenUpRuled      = "%s, but a rule or a mode has answered the question since"
	givenUpNotNeeded  = "%s, but the agent went on without asking this again"
	givenUpLate       = "%s, but the agent did not ask this again for so long that the answer no longer counts"
	givenUpChanged    = "%s, but the agent had changed the tool call by then"
	givenUpOvertaken  = "%s, but the conversation went on with something else, in which this was not asked again"
)

// inWords describes a human's answer in a few words.
func inWords(a domain.Approval) string {
	switch {
	case a.Status == domain.ApprovalResponded:
		return "answered"
	case a.UpdatedInput != nil: // the repeated question shows the agent's own input
		return "approved with another input"
	}
	return "approved"
}

// SettleAnswers settles the answers of a run that has ended: those that its agent got but has not
// taken, those that wait for the question to be asked again, and stale questions that an answer has
// passed. stopped says that a client ended the run, which overrides any answer.
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

// settleCarried settles the answers that wait for their question, once no run of the thread is left
// that could ask it.
func (in *Inbox) settleCarried(t store.Tx, run domain.Run, stopped bool) error {
	more, err := t.HasUnfinished(in.ctx, run.Thread, run.ID)
	if err != nil {
		return err
	}
	// Stopping the turn that an answer started takes the answer back, whatever is queued behind it.
	tookBack := stopped && run.Source == domain.SourceDecision
	if more && !tookBack && !run.IsQuestion() {
		return nil
	}
	carried, err := t.CarriedDecisions(in.ctx, run.Thread)
	if err != nil {
		return err
	}
	for _, a := range carried {
		if run.IsQuestion() { // other clients may ask in its conversation, so its end says nothing about their questions
			if run.State == domain.Completed && a.Decided.Before(run.Created) {
				if err := in.giveUp(t, a, givenUpOvertaken); err != nil {
					return err
				}
			}
			continue
		}
		if more && a.Decided.After(run.Created) { // for another question
			continue
		}
		switch {
		case stopped:
			err = in.giveUp(t, a, givenUpStopped)
		case run.State != domain.Completed:
			err = in.reopen(t, a, againEnded)
		default:
			// An agent may ask its question in other words. An agent that learned that its call may
			// have run need not ask at all. A human who was asked twice is not asked a third time.
			// A turn that was not started for an answer does not know it.
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

// reopen asks a human again when it is unknown whether the agent acted on the answer.
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
	if a.CallID == a.ID { // not a tool call of the agent
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

// giveUp drops an answer that no agent will act on.
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

// noteNotAsked notes that the agent continued without asking again. The answer is kept for the
// following run, in which an agent that continues by itself may ask.
func (in *Inbox) noteNotAsked(t store.Tx, a domain.Approval) error {
	run, err := t.Run(in.ctx, a.Run)
	if err != nil {
		return err
	}
	return in.noteDelivery(t, a, run, fmt.Sprintf(givenUpNotNeeded, inWords(a)))
}

// noteDelivery records in the conversation what became of an answer.
func (in *Inbox) noteDelivery(t store.Tx, a domain.Approval, run domain.Run, text string) error {
	n := noteOf(a)
	n.Delivery = text
	return in.transcript.NoteApproval(t, run, a.ID, n.Title+" — "+text, n)
}

// CloseOvertaken closes stale questions when a later turn begins in their conversation. Approving
// such a question must not run a tool of a turn that is over for the user. If the agent still needs
// it, it asks again. A turn started by an answer continues the earlier one, so it leaves other
// questions open until it has completed.
func (in *Inbox) CloseOvertaken(t store.Tx, run domain.Run) error {
	if run.Source == domain.SourceDecision {
		return nil
	}
	return in.closeBefore(t, run)
}

// CloseStale closes the stale questions of a conversation that gets another agent.
func (in *Inbox) CloseStale(t store.Tx, thread int64) error {
	return in.closeStale(t, thread, func(domain.Approval) bool { return true })
}

// closeBefore closes stale questions that are older than a run.
func (in *Inbox) closeBefore(t store.Tx, run domain.Run) error {
	return in.closeStale(t, run.Thread, func(a domain.Approval) bool { return isOvertaken(a, run) })
}

// closeStale closes the stale questions of a conversation for which overtaken returns true.
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

// isOvertaken reports whether a run was launched after a question of an earlier run.
func isOvertaken(a domain.Approval, run domain.Run) bool {
	return a.Run < run.ID && a.Created.Before(run.Created)
}

// Taken notes that the agent of a run has acted on answers. Answers to other runs are left alone.
func (in *Inbox) Taken(t store.Tx, run int64, approvals []string) error {
	for _, id := range approvals {
		if err := t.TakeAnswer(id, run); err != nil {
			return err
		}
	}
	return nil
}

// handOverCarried returns a human's decision for a dead process. It is used up when the agent has
// taken it.
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

// answeredByPolicy discards what waits for a question that the policy has now answered: a human's
// answer to it, and its repetition.
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

// asJSON encodes plain strings, lists and objects.
func asJSON(v any) json.RawMessage {
	b, _ := json.Marshal(v) // cannot fail for those
	return b
}
