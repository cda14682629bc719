// Package question puts what an agent asks to the user of a client of the Agent Client
// Protocol, and makes the user's answer a decision. It offers what the agent offers,
// and takes nothing else for an answer.
package question

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/duet-rpc/duet-rpc/internal/acpagent/schema"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

// A Client is asked. A call that is given up is taken back from it.
type Client interface {
	Call(ctx context.Context, method string, params, result any) error
}

// An Asker asks the user of a client.
type Asker struct {
	Client Client
	Can    schema.ClientCapabilities
	// Spelled makes the request for permission as the client's version of the protocol
	// has it; nil: as it is.
	Spelled func(wire.Approval, schema.PermissionRequest) any
}

// The answers to a question of an agent that offers none.
var ownOptions = []schema.PermissionOption{
	{OptionID: "duet-allow", Name: "Allow", Kind: schema.AllowOnce},
	{OptionID: "duet-reject", Name: "Reject", Kind: schema.RejectOnce},
}

// Fits reports whether the client can show a question so that it can be answered
// there. Any other is answered elsewhere.
func (a Asker) Fits(q wire.Approval) bool {
	switch {
	case q.Mode == wire.ModeForm:
		return schema.Has(a.Can.Elicitation.Form)
	case q.Mode == wire.ModeURL:
		return schema.Has(a.Can.Elicitation.URL)
	case q.Type == wire.HumanContact:
		return len(q.Options) > 0 || schema.Has(a.Can.Elicitation.Form)
	}
	return true
}

// Ask asks, about a tool call, and returns the decision; nil if the user has made none. It fails with the
// error of ctx where the question was answered elsewhere.
func (a Asker) Ask(ctx context.Context, session string, q wire.Approval, about schema.ToolCall) (*wire.Decision, error) {
	if q.Mode != "" || q.Type == wire.HumanContact && len(q.Options) == 0 {
		return a.elicit(ctx, session, q)
	}
	return a.permit(ctx, session, q, about)
}

// permit asks whether a tool may run, or which of the agent's answers it is to be.
func (a Asker) permit(ctx context.Context, session string, q wire.Approval, about schema.ToolCall) (*wire.Decision, error) {
	options := offered(q)
	var answer schema.PermissionResponse
	asked := schema.PermissionRequest{SessionID: session, ToolCall: about, Options: options}
	var params any = asked
	if a.Spelled != nil {
		params = a.Spelled(q, asked)
	}
	err := a.Client.Call(ctx, schema.RequestPermission, params, &answer)
	if err != nil || answer.Outcome.Outcome != schema.Selected {
		return nil, err
	}
	i := slices.IndexFunc(options, func(o schema.PermissionOption) bool { return o.OptionID == answer.Outcome.OptionID })
	if i < 0 {
		return nil, fmt.Errorf("the client chose the option %q, which was not offered", answer.Outcome.OptionID)
	}
	chosen := options[i]
	d := &wire.Decision{ID: q.ID}
	if len(q.Options) > 0 {
		d.Option = chosen.OptionID
	}
	switch rejects := chosen.Kind == schema.RejectOnce || chosen.Kind == schema.RejectAlways; {
	case rejects:
		d.Decision, d.Comment = wire.Deny, chosen.Name
	case q.Type == wire.HumanContact:
		d.Decision, d.Comment = wire.Respond, chosen.Name
	default:
		d.Decision = wire.Approve
	}
	return d, nil
}

// offered are the agent's own answers, each of a kind that clients know.
func offered(q wire.Approval) []schema.PermissionOption {
	if len(q.Options) == 0 {
		return ownOptions
	}
	options := make([]schema.PermissionOption, len(q.Options))
	for i, o := range q.Options {
		options[i] = schema.PermissionOption{OptionID: o.OptionID, Name: cmp.Or(o.Name, o.OptionID), Kind: o.Kind}
		switch o.Kind {
		case schema.AllowOnce, schema.AllowAlways, schema.RejectOnce, schema.RejectAlways:
		default:
			options[i].Kind = schema.AllowOnce
		}
	}
	return options
}
