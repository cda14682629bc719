package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/store"

	"github.com/duet-rpc/duet-rpc/internal/domain"

	"github.com/google/uuid"

	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/toolinput"
)

// resumePrompt continues a run whose question was answered after its process
// had died. The agent's own session may have lost the turn, so it says what
// that was about. The demo agent, which has no model, knows the first word and
// the line above the request.
func resumePrompt(a domain.Approval, request string) string {
	asked := firstOf(a.Title, a.Tool)
	if a.Type == domain.FunctionCall {
		asked = fmt.Sprintf("you asked for leave to run %s (%s), and may", a.Tool, asked)
		if n := len(a.Input); n > 0 && n < 4096 {
			asked += "; its input was " + string(a.Input)
		}
	} else {
		asked = fmt.Sprintf("you asked %q, and the answer is there", asked)
	}
	put := "Put the same question once more, to get the answer."
	if a.Reopens != "" {
		put = "You were told so before, and nobody knows whether you did it: look first, and if it is done go on from there. If it is not, put the same question once more, to get the answer."
	}
	return fmt.Sprintf("Continue where you left off: before you were cut short %s. %s\n\nThe request was:\n\n%s", asked, put, request)
}

// Decide answers a question. The first answer wins; a later one is a *domain.Error
// of KindAlreadyDecided.
func (h *Hub) Decide(ctx context.Context, d Decision) (domain.Approval, error) {
	if d.ID == "" {
		return domain.Approval{}, domain.Invalid("approval_id", "the id of an approval", "nothing")
	}
	if len(d.UpdatedInput) > 0 && d.UpdatedInput[0] != '{' {
		return domain.Approval{}, domain.Invalid("updated_input", "object", "another value")
	}
	var a domain.Approval
	d.restricted = isRestricted(ctx)
	err := h.write(ctx, func(t store.Tx) error {
		var err error
		if a, err = t.Approval(h.ctx, d.ID); errors.Is(err, store.ErrNotFound) {
			return domain.Errorf(domain.KindApprovalNotFound, "approval not found: %s", d.ID)
		} else if errors.Is(err, store.ErrAmbiguous) {
			return errAmbiguous(d.ID)
		} else if err != nil {
			return err
		}
		if err := checkDecision(a, &d); err != nil {
			return err
		}
		if a.Status != domain.ApprovalPending {
			return domain.Errorf(domain.KindAlreadyDecided, "approval %s already decided with status: %s", a.ID, a.Status)
		}
		return h.decide(t, &a, d)
	})
	if err != nil { // the change may still be under way, if ctx has ended
		return domain.Approval{}, err
	}
	return a, nil
}

// checkDecision checks a decision against what was asked (seed 001,
// "sendDecision").
func checkDecision(a domain.Approval, d *Decision) error {
	if d.Type != "" && d.Type != a.Type {
		return domain.Invalid("type", a.Type, fmt.Sprintf("%q", d.Type), a.Type)
	}
	accepted := []string{"approve", "deny"}
	if a.Type == domain.HumanContact {
		accepted = []string{"respond"}
		if d.Decision == "" || d.Decision == "approve" && d.Option != "" {
			d.Decision = "respond"
		}
	}
	switch d.Decision {
	case "approve":
		if a.Type == domain.HumanContact {
			return domain.Invalid("decision", "a decision that fits "+a.Type, `"approve"`, accepted...)
		}
	case "deny":
		if a.Type == domain.HumanContact && len(choices(a)) == 0 { // an agent is told that nothing was chosen
			return domain.Invalid("decision", "a decision that fits "+a.Type, `"deny"`, accepted...)
		}
		if strings.TrimSpace(d.Comment) == "" {
			return domain.Invalid("comment", "why it is denied", "nothing")
		}
	case "respond":
		if a.Type == domain.FunctionCall {
			return domain.Invalid("decision", "a decision that fits "+a.Type, `"respond"`, accepted...)
		}
		if strings.TrimSpace(d.Comment) == "" && d.Option == "" {
			return domain.Invalid("comment", "the answer", "nothing")
		}
		if names := choices(a); len(names) > 1 && optionID(a, firstOf(d.Option, d.Comment)) == "" {
			return domain.Invalid("option", "one of "+strings.Join(names, ", ")+" (the agent can be told nothing else)", fmt.Sprintf("%q", firstOf(d.Option, d.Comment)), names...)
		}
	default:
		return domain.Invalid("decision", "a decision", fmt.Sprintf("%q", d.Decision), accepted...)
	}
	if err := checkOption(a, *d); err != nil {
		return err
	}
	if d.Decision == "deny" || sameJSON(d.UpdatedInput, a.Input) {
		d.UpdatedInput = nil
	}
	if why := toolinput.Read(d.UpdatedInput).Ambiguity; why != "" {
		return domain.Invalid("updated_input", "an object that every program reads alike", "one that they may read differently: "+why)
	}
	if d.UpdatedInput != nil && !a.InputEditable() {
		return domain.Invalid("updated_input", "no other input than the agent's: it would run the tool with its own; deny instead, with a comment that says what to run", "another input")
	}
	switch d.Scope {
	case "", "once", "session", "project":
	default:
		return domain.Invalid("scope", "a scope", fmt.Sprintf("%q", d.Scope), "once", "session", "project")
	}
	if q := questionOf(a); d.Decision == "approve" && d.Scope != "" && d.Scope != "once" && q.isUnclear() {
		return domain.Invalid("scope", "once: the input can be read in more than one way ("+q.unclear+"), so no rule can allow it", fmt.Sprintf("%q", d.Scope), "once")
	}
	return nil
}

// sameJSON reports whether two inputs are the same; no input is none other.
func sameJSON(changed, input json.RawMessage) bool {
	return len(changed) == 0 || toolinput.Same(changed, input)
}

// checkOption checks that the option of a decision is one of those that were
// offered, and says the same as the decision: it is what an agent is told.
func checkOption(a domain.Approval, d Decision) error {
	var fit []string
	options := optionsOf(a)
	for _, o := range options {
		if o.fits(d.Decision) {
			fit = append(fit, firstOf(o.Name, o.OptionID))
		}
	}
	if d.Decision == "approve" && len(options) > 0 && len(fit) == 0 {
		return domain.Invalid("decision", `"deny": the agent offers no answer that allows it`, `"approve"`, "deny")
	}
	if d.Option == "" {
		return nil
	}
	expected := "none: no options were offered that fit " + d.Decision
	if len(fit) > 0 {
		expected = fmt.Sprintf("one of %s to %s", strings.Join(fit, ", "), d.Decision)
	}
	if o, ok := optionNamed(a, d.Option); !ok || !o.fits(d.Decision) {
		return domain.Invalid("option", expected, fmt.Sprintf("%q", d.Option), fit...)
	}
	return nil
}

// An offered is an answer that was offered with a question.
type offered PermissionOption

// fits reports whether an answer says the same as a decision. Without a kind
// it says neither.
func (o offered) fits(decision string) bool {
	switch {
	case o.Kind == "" || decision == "respond":
		return true
	case strings.HasPrefix(o.Kind, "reject_"):
		return decision == "deny"
	}
	return decision == "approve"
}

func optionsOf(a domain.Approval) (options []offered) {
	_ = json.Unmarshal(a.Options, &options) // ours, or absent, or somebody else's
	return options
}

// optionNamed is the option that a human named by its id or its name.
func optionNamed(a domain.Approval, given string) (offered, bool) {
	for _, o := range optionsOf(a) {
		if given != "" && (o.OptionID == given || strings.EqualFold(o.Name, given)) {
			return o, true
		}
	}
	return offered{}, false
}

// decide keeps a decision and does what follows from it.
func (h *Hub) decide(t store.Tx, a *domain.Approval, d Decision) error {
	a.DecidedBy, a.Comment, a.UpdatedInput = byUser, d.Comment, d.UpdatedInput
	effect := config.EffectAllow
	switch d.Decision {
	case "approve":
		a.Status = domain.ApprovalApproved
		a.Option = optionID(*a, d.Option)
	case "deny":
		a.Status, effect = domain.ApprovalDenied, config.EffectDeny
		a.Option = optionID(*a, d.Option)
	case "respond":
		a.Status, a.Response = domain.ApprovalResponded, d.Comment
		a.Option = optionID(*a, firstOf(d.Option, d.Comment))
		if a.Response == "" {
			a.Response = d.Option
		}
	}
	stale := a.Stale
	a.Carried = stale && a.Status != domain.ApprovalDenied
	if err := h.resolveApproval(t, *a); err != nil {
		return err
	}
	if a.Type == domain.FunctionCall && (d.Scope == "session" || d.Scope == "project") {
		thread := a.Thread
		if d.Scope == "project" {
			thread = 0
		}
		for _, rule := range remembered(*a, thread, effect) {
			if err := t.PutRule(rule); err != nil {
				return err
			}
		}
		if err := h.reconsiderIn(t, thread); err != nil {
			return err
		}
	}
	if a.Carried {
		return h.resume(t, *a, d.restricted)
	}
	return nil
}

func firstOf(texts ...string) string {
	for _, s := range texts {
		if s != "" {
			return s
		}
	}
	return ""
}

// optionID is the id of the option that a human named, or "".
func optionID(a domain.Approval, given string) string {
	o, _ := optionNamed(a, given)
	return firstOf(o.OptionID, o.Name)
}

// choices are the names of the answers between which an agent lets a human
// choose. Its protocol has no place for other words; where there is but one
// answer the words go beside it.
func choices(a domain.Approval) (names []string) {
	for _, o := range optionsOf(a) {
		if o.OptionID != "" && o.Kind != "" && !strings.HasPrefix(o.Kind, "reject_") {
			names = append(names, o.Name)
		}
	}
	return names
}

// closeApprovals closes what a run that ends has asked.
func (h *Hub) closeApprovals(t store.Tx, run domain.Run) error {
	pending, err := t.PendingApprovals(h.ctx, run.ID)
	if err != nil {
		return err
	}
	for _, a := range pending {
		if a.Stale {
			continue
		}
		a.Status, a.DecidedBy, a.Decided, a.AwaitedBy = domain.ApprovalCancelled, "end", t.Now(), 0
		if err := t.UpdateApproval(a); err != nil {
			return err
		}
		if err := h.announce(t, run, domain.ApprovalResolved{
			ApprovalID: a.ID, CallID: a.CallID, ToolUseID: a.ToolUseID(), Type: a.Type, Status: a.Status, DecidedBy: a.DecidedBy, Tool: a.Tool,
		}); err != nil {
			return err
		}
		t.AfterCommit(func() { h.answer(a) })
	}
	return nil
}

// reconsiderIn is reconsider for a thread, or for all where it is 0.
func (h *Hub) reconsiderIn(t store.Tx, thread int64) error {
	if thread != 0 {
		return h.reconsider(t, thread)
	}
	pending, err := t.PendingApprovals(h.ctx, 0)
	if err != nil {
		return err
	}
	threads := map[int64]bool{}
	for _, a := range pending {
		if threads[a.Thread] {
			continue
		}
		threads[a.Thread] = true
		if err := h.reconsider(t, a.Thread); err != nil {
			return err
		}
	}
	return nil
}

// reconsider applies the policy again to what a thread has asked, after the
// policy has changed.
func (h *Hub) reconsider(t store.Tx, id int64) error {
	thread, err := t.Thread(h.ctx, id)
	if err != nil {
		return err
	}
	rules, err := t.Rules(h.ctx, id)
	if err != nil {
		return err
	}
	pending, err := t.PendingApprovals(h.ctx, 0)
	if err != nil {
		return err
	}
	for _, a := range pending {
		if a.Thread != id || a.Type != domain.FunctionCall || a.Stale {
			continue
		}
		run, err := t.Run(h.ctx, a.Run)
		if err != nil {
			return err
		}
		r := h.rule(questionOf(a), thread, run, rules, t.Now())
		if r.reason == "" {
			continue
		}
		a.Status, a.DecidedBy = domain.ApprovalDenied, r.reason
		if r.approved {
			a.Status = domain.ApprovalApproved
		}
		if err := h.resolveApproval(t, a); err != nil {
			return err
		}
	}
	return nil
}

// resume continues the thread of a question that was answered after its
// process had died, unless something runs there already.
func (h *Hub) resume(t store.Tx, a domain.Approval, restricted bool) error {
	thread, err := t.Thread(h.ctx, a.Thread)
	if err != nil {
		return err
	}
	last, err := t.LastRun(h.ctx, thread.ID)
	if err != nil {
		return err
	}
	if !last.State.Ended() {
		return nil // it will ask, and find the answer
	}
	asked, err := t.Run(h.ctx, a.Run)
	if err != nil {
		return err
	}
	run := following(thread, asked, resumePrompt(a, asked.Prompt), thread.Agent)
	run.Source, run.Parent = SourceDecision, last.ID
	if restricted || wasRestricted(asked) {
		if _, err := h.resolveFor(true, thread.Agent); err != nil {
			return err
		}
		restrict(Restricted(h.ctx), &run)
	}
	return h.add(t, &run, thread, false)
}

// CreateApproval asks a human something on behalf of a client.
func (h *Hub) CreateApproval(ctx context.Context, spec ApprovalSpec) (domain.Approval, error) {
	if spec.Type == "" {
		spec.Type = domain.FunctionCall
	}
	if spec.Type == domain.FunctionCall && spec.Tool == "" {
		return domain.Approval{}, domain.Invalid("tool_name", "the name of a tool", "an empty string")
	}
	a := domain.Approval{
		ID: uuid.NewString(), Type: spec.Type, CallID: spec.CallID, Tool: spec.Tool, Input: spec.Input, Title: spec.Title, Subject: spec.Subject,
		Options: spec.Options, Channel: spec.Channel, Status: domain.ApprovalPending, Question: questionHash(spec.Tool, spec.Input),
	}
	if a.CallID == "" {
		a.CallID = a.ID
	}
	err := h.write(ctx, func(t store.Tx) error {
		run, err := h.find(t, spec.Run)
		if err != nil {
			return err
		}
		thread, err := t.Thread(h.ctx, run.Thread)
		if err != nil {
			return err
		}
		if run.State.Ended() || run.State == domain.Interrupting { // nobody would ever close it
			return domain.Errorf(domain.KindBadState, "%s is %s: it can ask nothing any more; continue it first", domain.TaskName(run.Task), run.State)
		}
		a.Thread, a.Run, a.Created = run.Thread, run.ID, t.Now()
		rules, err := t.Rules(h.ctx, run.Thread)
		if err != nil {
			return err
		}
		if r := h.rule(questionOf(a), thread, run, rules, t.Now()); a.Type == domain.FunctionCall && r.reason != "" {
			return h.keepRuling(t, &a, run, r)
		}
		return h.ask(t, &a, &run)
	})
	if err != nil { // the change may still be under way, if ctx has ended
		return domain.Approval{}, err
	}
	return a, nil
}
