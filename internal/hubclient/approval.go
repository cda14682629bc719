package hubclient

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

// An Approval is a question to a person, as a result has it or an event. Only an event has
// Diffs, in place of Diff.
type Approval struct {
	protocol.Approval
	protocol.Elicitation               // the zero value: none; that of protocol.Approval is hidden
	Diffs                []domain.Diff `json:"diffs"`
}

// Asks describes the question for people.
func (a Approval) Asks() string {
	text := cmp.Or(a.Title, a.Subject, a.ToolName, "a question")
	if a.ToolName != "" && !strings.Contains(text, a.ToolName) {
		text = a.ToolName + ": " + text
	}
	return text
}

// Shell names this client in decisions.
const Shell = "the shell"

// Decide sends a decision. The result says if another client was first.
func Decide(ctx context.Context, c *client.Client, d protocol.DecisionParams) (protocol.DecisionResult, json.RawMessage, error) {
	d.Client = cmp.Or(d.Client, Shell)
	return ApprovalDecide(ctx, c, d)
}

// OpenApprovals lists the pending approvals of a turn, or all if it is empty.
func OpenApprovals(ctx context.Context, c *client.Client, turn string) ([]Approval, json.RawMessage, error) {
	r, raw, err := Call[struct{ Approvals []Approval }](ctx, c, "approval.list", protocol.ApprovalListParams{Turn: protocol.Ref(turn)})
	return r.Approvals, raw, err
}

// GetApproval returns an approval by its whole id.
func GetApproval(ctx context.Context, c *client.Client, id string) (Approval, json.RawMessage, error) {
	r, raw, err := Call[struct{ Approval Approval }](ctx, c, "approval.get", protocol.ApprovalParams{Approval: id})
	return r.Approval, raw, err
}
