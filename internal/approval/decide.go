package approval

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/form"
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

// Decision answers an approval.
type Decision struct {
	ID           string // id of the approval or the tool call
	Type         string // expected type, function_call or human_contact; "": any
	Decision     string
	Comment      string          // required to deny, and to respond without an Option
	Option       string          // id or name of an offered option
	UpdatedInput json.RawMessage // replaces the tool's input, an object; absent: unchanged
	Scope        string          // one of domain.Scopes; "": once
	Content      json.RawMessage // form values, an object; absent: none
	Pattern      string          // commands or files that the rule covers; "": the narrowest
	Fingerprint  string          // of the question that the user saw; "": any
	Client       string          // names the deciding client for people, such as VS Code; "": unknown
	Tell         bool            // the comment must reach the agent, as the next prompt if the decision cannot carry it
}

// longestClient is the longest name of a client, in bytes.
const longestClient = 100

// Answered is an approval together with its decision.
type Answered struct {
	domain.Approval
	// Next is the turn that sends the comment to the agent. It is nil if the decision carries the
	// comment, or if it is not to be sent.
	Next *domain.Turn
}

// Decide answers a question and returns it. The first answer wins: a later one returns the existing
// decision with an error of domain.KindAlreadyDecided. The error is of domain.KindApprovalNotFound
// if no such question exists, and of domain.KindInvalid if the answer does not fit.
func (in *Inbox) Decide(ctx context.Context, d Decision) (Answered, error) {
	if err := d.Check(); err != nil {
		return Answered{}, err
	}
	var a domain.Approval
	var next *domain.Turn
	var decided bool // earlier
	err := in.turns.Write(ctx, func(t store.Tx) (err error) {
		decided = false
		if a, err = find(in.ctx, t, d.ID); err != nil {
			return err
		}
		if d.Fingerprint != "" && d.Fingerprint != a.Fingerprint() {
			return domain.Errorf(domain.KindChanged, "this is not the question that you saw: look at it again, then answer")
		}
		if decided = a.Status != domain.ApprovalPending; decided {
			return nil
		}
		d, err := d.checkedFor(a)
		if err != nil {
			return err
		}
		if (d.Decision == Approve || d.Decision == Respond) && in.isOld(a.Created) {
			return domain.Errorf(domain.KindBadState, "the agent asked this in another directory, which was replaced at %s: deny it, or run "+
				"`duet-rpc projects keep` first if this is the same project", in.since().Local().Format("2006-01-02 15:04"))
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
		return Answered{Approval: a}, domain.Errorf(
			domain.KindAlreadyDecided, "approval %s is closed: the agent changed the tool call; answer the question that replaced it", a.ID,
		)
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
		return d, domain.Invalid("updated_input", "no other input than the agent's: it would run the tool with its own; deny instead, with a "+
			"comment that says what to run", "another input")
	}
	return d, d.checkScope(a)
}

// checkedForElicitation is checkedFor for a form or an address.
func (d Decision) checkedForElicitation(a domain.Approval) (Decision, error) {
	switch {
	case d.Decision != Respond && d.Decision != Deny && d.Decision != Cancel:
		return d, domain.Invalid("decision", "one of respond, deny, cancel for a question of the mode "+a.Elicitation.Mode, fmt.Sprintf(
			"%q", d.Decision,
		), Respond, Deny, Cancel)
	case d.Option != "":
		return d, domain.Invalid("option", "nothing: no options were offered", fmt.Sprintf("%q", d.Option))
	case d.UpdatedInput != nil:
		return d, domain.Invalid("updated_input", "nothing: no tool waits; the values of a form are its content", "an input")
	case d.Scope != "" && d.Scope != domain.ScopeOnce:
		return d, domain.Invalid("scope", "once: the answer is given once", fmt.Sprintf("%q", d.Scope), domain.ScopeOnce)
	case d.Decision != Respond:
		return d, nil
	case a.Elicitation.Mode == domain.ElicitURL:
		if d.Content != nil && !toolinput.Same(d.Content, json.RawMessage("{}")) {
			return d, domain.Invalid("content", "nothing: what is typed at the address is not for the agent's protocol", "values")
		}
		d.Content = nil
		if strings.TrimSpace(d.Comment) == "" {
			d.Comment = "agreed to open it"
		}
		return d, nil
	}
	f, err := form.Read(a.Elicitation.Schema)
	if err != nil { // it was parsed when asked
		return d, domain.Invalid("content", "nothing: "+err.Error(), "values")
	}
	if d.Content == nil && len(f.Fields) == 1 { // clients without forms answer in words
		value, err := f.Fields[0].Parse(d.Comment)
		if err != nil {
			return d, invalidContent(err)
		}
		d.Content = f.Values(map[string]json.RawMessage{f.Fields[0].Name: value})
	}
	if err := f.Check(d.Content); err != nil {
		return d, invalidContent(err)
	}
	if why := toolinput.Read(d.Content).Ambiguity; why != "" {
		return d, domain.Invalid("content", "an object that every program reads alike", "one that they may read differently: "+why)
	}
	if words := f.InWords(d.Content); words != "" {
		d.Comment = words
	} else if strings.TrimSpace(d.Comment) == "" {
		d.Comment = "accepted"
	}
	return d, nil
}

// invalidContent returns the error of a form for a client: the field, the accepted type and the
// received value.
func invalidContent(err error) error {
	var wrong *form.Error
	if !errors.As(err, &wrong) {
		return err
	}
	param := "content"
	if wrong.Field != "" {
		param += "." + wrong.Field
	}
	return domain.Invalid(param, wrong.Expected, wrong.Received, wrong.Accepted...)
}

// mustChoose returns an error for an answer in words if the agent accepts only its options, else
// nil.
func mustChoose(a domain.Approval, d Decision) error {
	given := cmp.Or(d.Option, d.Comment)
	if d.Decision != Respond || !a.Answers().OptionsOnly || optionID(a, given) != "" {
		return nil
	}
	var names []string
	for _, o := range domain.Choices(a.Options) {
		names = append(names, cmp.Or(o.Name, o.ID))
	}
	return domain.Invalid("option", "one of "+strings.Join(names, ", ")+" (the agent accepts no other answer)", fmt.Sprintf("%q", given),
		names...)
}

// checkOption checks that the option of a decision was offered and means the same as the decision,
// because the agent gets the option.
func checkOption(a domain.Approval, d Decision) error {
	var fit []string
	for _, o := range a.Options {
		if fits(o, d.Decision) {
			fit = append(fit, cmp.Or(o.Name, o.ID))
		}
	}
	if d.Decision == Approve && len(a.Options) > 0 && len(fit) == 0 {
		return domain.Invalid("decision", `"deny": the agent offers no answer that allows it`, `"approve"`, Deny)
	}
	if d.Option == "" {
		return nil
	}
	expected := "none: no options were offered that fit " + d.Decision
	if len(fit) > 0 {
		expected = fmt.Sprintf("one of %s to %s", strings.Join(fit, ", "), d.Decision)
	}
	if o, ok := optionNamed(a, d.Option); !ok || !fits(o, d.Decision) {
		return domain.Invalid("option", expected, fmt.Sprintf("%q", d.Option), fit...)
	}
	return nil
}

// fits reports whether an option means the same as a decision. An option without a kind does not.
func fits(o domain.Option, decision string) bool {
	switch {
	case o.Kind == "" || decision == Respond:
		return true
	case o.Kind.Rejects():
		return decision == Deny
	}
	return decision == Approve
}

// optionNamed finds an option by its id or its name.
func optionNamed(a domain.Approval, named string) (domain.Option, bool) {
	for _, o := range a.Options {
		if named != "" && (o.ID == named || strings.EqualFold(o.Name, named)) {
			return o, true
		}
	}
	return domain.Option{}, false
}

// optionID returns the id of the named option, or "".
func optionID(a domain.Approval, named string) string {
	o, _ := optionNamed(a, named)
	return cmp.Or(o.ID, o.Name)
}

// isSameInput reports whether a changed input equals the agent's. An absent input is equal.
func isSameInput(changed, input json.RawMessage) bool {
	return len(changed) == 0 || toolinput.Same(changed, input)
}

func (d Decision) checkScope(a domain.Approval) error {
	switch {
	case d.Scope != "" && !slices.Contains(domain.Scopes(), d.Scope):
		return domain.Invalid("scope", "a scope", fmt.Sprintf("%q", d.Scope), domain.Scopes()...)
	case !d.makesRule() && d.Pattern != "":
		return domain.Invalid("pattern", "none without a scope that makes a rule", fmt.Sprintf("%q", d.Pattern))
	case !d.makesRule():
		return nil
	}
	if a.IsPlan() {
		return domain.Invalid("scope", "once: a plan is agreed to for itself, so no rule is made of that", fmt.Sprintf("%q", d.Scope),
			domain.ScopeOnce)
	}
	if a.IsProposal() {
		return domain.Invalid(
			"scope", "once: a trigger with requires_approval always asks, so no rule is made of that", fmt.Sprintf("%q", d.Scope), domain.ScopeOnce,
		)
	}
	call := callOf(a)
	if call.IsUnknown() && toolinput.IsEmpty(a.Input) {
		return domain.Invalid("scope", "once: the agent does not report the tool's input, so a rule could allow anything", fmt.Sprintf(
			"%q", d.Scope,
		), domain.ScopeOnce)
	}
	if d.Decision == Approve && call.IsAmbiguous() {
		return domain.Invalid(
			"scope", "once: the input can be read in more than one way ("+call.Ambiguity()+"), so no rule can allow it", fmt.Sprintf("%q", d.Scope),
			domain.ScopeOnce,
		)
	}
	return nil
}

// makesRule reports whether the scope of a decision creates a rule.
func (d Decision) makesRule() bool { return slices.Contains(domain.RuleScopes(), d.Scope) }

// decide stores a decision and applies its consequences. It may become a rule, which answers other
// questions. If the agent that asked is gone, the session is resumed. restrict says that the
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
	if err := in.keepRules(t, *a, rules); err != nil {
		return err
	}
	if a.Carried {
		return in.resume(t, *a, restrict)
	}
	return nil
}

// rulesOf returns the rules that a decision on a tool call creates, according to its scope.
func (in *Inbox) rulesOf(t store.Tx, a domain.Approval, d Decision) ([]domain.Rule, error) {
	if a.Type != domain.FunctionCall || !d.makesRule() {
		return nil, nil
	}
	session, err := t.Session(in.ctx, a.Session)
	if err != nil {
		return nil, err
	}
	spec := ruleSpec{Effect: config.EffectAllow, Directories: in.policy.directoriesOf(session.CWD), Pattern: strings.TrimSpace(d.Pattern)}
	if a.Status == domain.ApprovalDenied {
		spec.Effect = config.EffectDeny
	}
	if d.Scope == domain.ScopeSession {
		spec.Session = a.Session
	}
	rules, err := rulesFor(a, spec)
	if errors.Is(err, errNoPattern) {
		return nil, domain.Invalid("pattern", "none: a rule of this question is for no command and no files that a pattern could name",
			fmt.Sprintf("%q", d.Pattern))
	}
	if err == nil && spec.Pattern != "" && !in.policy.Holds(callOf(a), spec.Effect, rules, session) {
		return nil, domain.Invalid("pattern", "one that fits what was asked, and each part of it", fmt.Sprintf("%q", d.Pattern))
	}
	return rules, err
}

// keepRules stores the rules of a decision and answers open questions with them.
func (in *Inbox) keepRules(t store.Tx, a domain.Approval, rules []domain.Rule) error {
	if len(rules) == 0 {
		return nil
	}
	for _, rule := range rules {
		if err := t.PutRule(rule); err != nil {
			return err
		}
	}
	if rules[0].Session == 0 {
		return in.reconsiderAll(t)
	}
	return in.Reconsider(t, a.Session)
}

// close stores a question's end, announces it, wakes the waiting call, and lets its turn continue if
// nothing else blocks it.
func (in *Inbox) close(t store.Tx, a domain.Approval) error { return in.closeIn(t, a, "") }

// closeIn is close for the decision of a user, in a client of this name.
func (in *Inbox) closeIn(t store.Tx, a domain.Approval, client string) error {
	a.Decided = t.Now()
	if !mustBeTaken(a) {
		a.AwaitedBy = 0
	}
	if err := t.UpdateApproval(a); err != nil {
		return err
	}
	turn, err := t.Turn(in.ctx, a.Turn)
	if err != nil {
		return err
	}
	resolved := resolvedOf(a)
	resolved.DecidedIn = client
	if err := in.announce(t, turn, resolved); err != nil {
		return err
	}
	if err := in.noteAnswer(t, turn, a, client); err != nil {
		return err
	}
	t.AfterCommit(func() { in.wake(a) })
	if turn.State != domain.WaitingInput {
		return nil
	}
	pending, err := t.PendingApprovals(in.ctx, turn.ID)
	if err != nil || len(pending) > 0 {
		return err
	}
	return in.turns.GoOn(t, &turn)
}

// noteAnswer records an answer in the transcript if it says more than the tool call shows
// already. It also records denials by the policy. client names the client of the user who decided.
func (in *Inbox) noteAnswer(t store.Tx, turn domain.Turn, a domain.Approval, client string) error {
	if a.Status != domain.ApprovalDenied && (a.DecidedBy != domain.DecidedByUser || a.Status == domain.ApprovalApproved && a.UpdatedInput == nil) {
		return nil
	}
	if a.Status == domain.ApprovalDenied && a.Type == domain.FunctionCall {
		if err := in.transcript.RefuseTool(t, turn, a, cmp.Or(a.Explanation, a.Comment)); err != nil {
			return err
		}
	}
	if a.UpdatedInput != nil && !a.Carried { // otherwise the agent asks again
		if err := in.transcript.EditTool(t, turn, a); err != nil {
			return err
		}
	}
	n := noteOf(a)
	n.DecidedIn = client
	text := n.Title + " — " + n.Decision
	if a.DecidedBy != domain.DecidedByUser {
		n.DecidedBy = a.DecidedBy
		text += " by " + a.DecidedBy
	}
	if n.Explanation != "" {
		text += " (" + n.Explanation + ")"
	}
	if n.Response != "" {
		text += ": " + n.Response
	}
	return in.transcript.NoteApproval(t, turn, a.ID, text, n)
}

// noteOf returns the transcript's note of an answer.
func noteOf(a domain.Approval) domain.ApprovalNote {
	return domain.ApprovalNote{ApprovalID: a.ID, Type: a.Type, Decision: a.Status, Title: cmp.Or(
		titleOf(a), a.Subject, a.Tool,
	), Response: cmp.Or(a.Response, a.Comment), Explanation: a.Explanation, Edited: a.UpdatedInput != nil}
}

// titleOf returns the title of a question. After an edit it has the edited texts, such as the command.
func titleOf(a domain.Approval) string {
	if a.UpdatedInput == nil {
		return a.Title
	}
	return toolinput.Retitled(a.Title, a.Input, a.UpdatedInput)
}

// resume continues the session of a question that was answered after its agent ended. The
// agent asks again and then gets the answer.
func (in *Inbox) resume(t store.Tx, a domain.Approval, restrict bool) error {
	asked, err := t.Turn(in.ctx, a.Turn)
	if err != nil {
		return err
	}
	request, err := in.request(t, asked)
	if err != nil {
		return err
	}
	return in.turns.Resume(t, asked, resumePrompt(a, request), restrict)
}

// request returns the prompt that a turn works for: its own, or for an agent-initiated turn the one
// before.
func (in *Inbox) request(t store.Tx, turn domain.Turn) (string, error) {
	for turn.Source == domain.SourceAgent && turn.Parent != 0 {
		var err error
		if turn, err = t.Turn(in.ctx, turn.Parent); err != nil {
			return "", err
		}
	}
	return turn.Prompt, nil
}

// maxPromptInput limits, in bytes, the input that a prompt repeats.
const maxPromptInput = 4096

// resumePrompt asks an agent to continue where it was interrupted. It describes the turn, because
// the agent's own session may have lost it.
func resumePrompt(a domain.Approval, request string) string {
	asked := fmt.Sprintf("you asked the user %q, and the user has answered.", cmp.Or(a.Title, a.Tool))
	if a.Type == domain.FunctionCall {
		asked = fmt.Sprintf("you asked for permission to run %s (%s), and the user has granted it.", a.Tool, cmp.Or(a.Title, a.Tool))
		switch n := len(a.Input); {
		case n > 0 && n < maxPromptInput:
			asked += " Its input was: " + string(a.Input) + "."
		case n == 0 && a.Details != "" && len(a.Details) < maxPromptInput:
			asked += fmt.Sprintf(" You described it as %q.", a.Details)
		}
	}
	next := "Ask the same question again to receive the answer."
	if a.Reopens != "" {
		next = "You were asked to continue once before, and it is unknown whether you did it. Check first: if it is done, continue from there; " +
			"if it is not, ask the same question again to receive the answer."
	}
	return domain.GoOnPrompt(fmt.Sprintf("Before you were interrupted, %s %s", asked, next), domain.RequestOf(request))
}

// tell sends the comment of a decision to the agent as the next prompt, if requested and if the
// decision cannot carry it.
func (in *Inbox) tell(t store.Tx, a domain.Approval, d Decision, restrict bool) (*domain.Turn, error) {
	if !d.Tell || a.TakesComment() {
		return nil, nil
	}
	asked, err := t.Turn(in.ctx, a.Turn)
	if err != nil {
		return nil, err
	}
	next, err := in.turns.Tell(t, asked, tellPrompt(a, d.Comment), restrict)
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
