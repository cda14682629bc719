package approval

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/google/uuid"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// Spec asks a person something on behalf of a client.
type Spec struct {
	Run     string // any id of the run that waits
	Type    string // function_call or human_contact; "": function_call
	Tool    string // of a function call
	Input   json.RawMessage
	CallID  string // the agent's own id of the tool call; "": none
	Title   string // of a human contact: the message
	Subject string
	Options []domain.Option // the answers to choose from; none: any words will do
	Channel json.RawMessage // is given back

	Elicitation domain.Elicitation // of a human contact; zero: none
}

// Propose asks a person whether something that is about to be done is wanted, on behalf
// of the program itself. run is a draft: its question is never answered by a rule, and no
// agent waits for it.
func (in *Inbox) Propose(t store.Tx, run *domain.Run, a domain.Approval) error {
	a.Thread, a.Run, a.Created = run.Thread, run.ID, t.Now()
	return in.ask(t, &a, run)
}

// Create asks a person something on behalf of a client, unless the policy has an
// answer. The error is of domain.KindRunNotFound or domain.KindBadState if there is
// no run that could ask.
func (in *Inbox) Create(ctx context.Context, spec Spec) (domain.Approval, error) {
	spec.Type = cmp.Or(spec.Type, domain.FunctionCall)
	if spec.Type == domain.FunctionCall && spec.Tool == "" {
		return domain.Approval{}, domain.Invalid("tool_name", "the name of a tool", "an empty string")
	}
	if spec.Elicitation.Mode != "" {
		if err := checkElicitation(spec.Elicitation, spec.Title); err != nil {
			return domain.Approval{}, err
		}
	}
	a := domain.Approval{
		ID: uuid.NewString(), Type: spec.Type, CallID: spec.CallID, Tool: spec.Tool, Input: spec.Input, Title: spec.Title, Subject: spec.Subject,
		Elicitation: spec.Elicitation, Options: spec.Options, Channel: spec.Channel, Status: domain.ApprovalPending, Question: inputHash(spec.Tool, callIdentity(spec.Input, spec.CallID)),
	}
	a.CallID = cmp.Or(a.CallID, a.ID)
	err := in.runs.Write(ctx, func(t store.Tx) error {
		run, err := in.runs.Find(in.ctx, t, spec.Run)
		if err != nil {
			return err
		}
		if run.State.Ended() || run.State == domain.Interrupting { // nobody would ever close it
			return domain.Errorf(domain.KindBadState, "%s is %s: it can ask nothing any more; continue it first", domain.TaskName(run.Task), run.State)
		}
		a.Thread, a.Run, a.Created = run.Thread, run.ID, t.Now()
		if a.Type == domain.FunctionCall {
			situation, err := in.situationOf(t, run)
			if err != nil {
				return err
			}
			if ruling := in.policy.Judge(callOf(a), situation); ruling.IsSettled() {
				return in.recordRuling(t, &a, run, ruling)
			}
		}
		return in.ask(t, &a, &run)
	})
	if err != nil { // the change may still be under way, if ctx has ended
		return domain.Approval{}, err
	}
	return a, nil
}
