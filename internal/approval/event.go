package approval

import (
	"cmp"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// announce adds an event of a run to the log.
func (in *Inbox) announce(t store.Tx, run domain.Run, p domain.Payload) error {
	_, err := t.Append(run.Event(p))
	return err
}

// Requested is a question as an event tells of it: without what is too long for
// one, which the approval has.
func Requested(a domain.Approval) domain.ApprovalRequested {
	ambiguity, title := Presented(a)
	r := domain.ApprovalRequested{
		ApprovalID: a.ID, CallID: a.CallID, ToolUseID: a.ToolUseID(), Type: a.Type, Tool: a.Tool, Input: a.Input, ToolKind: a.ToolKind,
		InputEditable: a.InputEditable(), Ambiguity: ambiguity, Title: title, Subject: a.Subject, Options: a.Options, Paths: a.Paths, Diffs: a.Diffs,
		Stale: a.Stale, Reopens: a.Reopens, Reopened: a.Reopened, Elicitation: a.Elicitation,
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
	}
}
