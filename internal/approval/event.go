package approval

import (
	"cmp"
	"context"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// announceQuestion tells of a question that waits now.
func (in *Inbox) announceQuestion(t store.Tx, run domain.Run, a domain.Approval) error {
	thread, err := t.Thread(in.ctx, run.Thread)
	if err != nil {
		return err
	}
	return in.announce(t, run, Requested(a, thread.CWD))
}

// announce adds an event of a run to the log.
func (in *Inbox) announce(t store.Tx, run domain.Run, p domain.Payload) error {
	_, err := t.Append(run.Event(p))
	return err
}

// RulePreview is what a rule would hold for that is made of a question in a
// conversation of the directory cwd, nil if none can be made.
func RulePreview(a domain.Approval, cwd string) *domain.RulePreview {
	if rule, ok := rulePreview(a, cwd); ok {
		return &rule
	}
	return nil
}

// Requested is a question as an event tells of it: without what is too long for
// one, which the approval has. cwd is the directory of its conversation.
func Requested(a domain.Approval, cwd string) domain.ApprovalRequested {
	ambiguity, title := Presented(a)
	r := domain.ApprovalRequested{
		ApprovalID: a.ID, CallID: a.CallID, ToolUseID: a.ToolUseID(), ParentID: a.ParentID, Type: a.Type, Tool: a.Tool, Input: a.Input, ToolKind: a.ToolKind,
		InputEditable: a.InputEditable(), Ambiguity: ambiguity, Title: title, Subject: a.Subject, Options: a.Options, Paths: a.Paths, Diffs: a.Diffs, Plan: a.Plan, Details: a.Details, TakesComment: a.TakesComment(),
		Stale: a.Stale, Reopens: a.Reopens, Reopened: a.Reopened, Elicitation: a.Elicitation,
	}
	if r.Rule = RulePreview(a, cwd); r.Rule != nil && len(r.Rule.Pattern) > domain.MaxEventText {
		r.Rule = nil
	}
	for _, text := range []*string{&r.Plan, &r.Details} {
		if len(*text) > domain.MaxEventText {
			*text, r.Truncated = "", true
		}
	}
	if len(r.Input) > domain.MaxEventText {
		r.Input, r.Truncated = nil, true
	}
	if len(r.Elicitation.Schema) > domain.MaxEventText {
		r.Elicitation.Schema, r.Truncated = nil, true
	}
	if domain.SizeOfDiffs(r.Diffs) > domain.MaxEventText {
		r.Diffs, r.Truncated = nil, true
	}
	return r
}

// resolvedOf is the end of a question as an event tells of it.
func resolvedOf(a domain.Approval) domain.ApprovalResolved {
	return domain.ApprovalResolved{
		ApprovalID: a.ID, CallID: a.CallID, ToolUseID: a.ToolUseID(), Type: a.Type, Status: a.Status, Response: cmp.Or(a.Response, a.Comment), Comment: a.Comment,
		Option: a.Option, DecidedBy: a.DecidedBy, Title: a.Title, Tool: a.Tool, InputEdited: a.UpdatedInput != nil,
		Explanation: a.Explanation,
	}
}

// PendingEvents are the questions that wait for a person, of one run or of all where
// run is 0, as events of when they were asked. What of them cannot be read is told by
// a [domain.LogDamaged] among them. The error is the store's own.
func (in *Inbox) PendingEvents(ctx context.Context, run int64) ([]domain.Event, error) {
	pending, err := in.store.PendingApprovals(ctx, run)
	var events []domain.Event
	unread := func(message string) {
		events = append(events, domain.Event{Payload: domain.LogDamaged{Message: message}})
	}
	if store.IsDamaged(err) {
		unread("not all questions that wait for an answer can be read")
	} else if err != nil {
		return nil, err
	}
	for _, a := range pending {
		run, err := in.store.Run(ctx, a.Run)
		if store.IsDamaged(err) {
			unread("the session of a question that waits for an answer cannot be read")
			continue
		}
		if err != nil {
			return nil, err
		}
		thread, err := in.store.Thread(ctx, a.Thread)
		if err != nil && !store.IsDamaged(err) { // then it has no preview of a rule
			return nil, err
		}
		e := run.Event(Requested(a, thread.CWD))
		e.Time = a.Created
		events = append(events, e)
	}
	return events, nil
}
