package demoagent

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/coder/acp-go-sdk"
)

// demoForm asks for a value of each kind.
const demoForm = `{
	"type": "object",
	"properties": {
		"colour": {"type": "string", "title": "Colour", "enum": ["red", "green", "blue"], "default": "green"},
		"count": {"type": "integer", "title": "How many", "minimum": 1, "maximum": 9},
		"gift": {"type": "boolean", "title": "Wrapped as a gift", "default": false},
		"name": {"type": "string", "title": "Name on it", "minLength": 2, "maxLength": 20}
	},
	"required": ["count"]
}`

// form has the human fill in a form.
func (t *turn) form(ctx context.Context, _ argument) error {
	if can := t.capabilities().Elicitation; can == nil || can.Form == nil {
		return t.say(ctx, "The client has no forms. ")
	}
	var schema acp.UnstableElicitationSchema
	if err := json.Unmarshal([]byte(demoForm), &schema); err != nil {
		return fmt.Errorf("the form: %w", err)
	}
	return t.elicit(ctx, acp.UnstableCreateElicitationRequest{
		Form: &acp.UnstableCreateElicitationForm{Mode: "form", Message: "What shall I order?", RequestedSchema: schema},
	})
}

// link asks the human to open an address that leads nowhere.
func (t *turn) link(ctx context.Context, _ argument) error {
	if can := t.capabilities().Elicitation; can == nil || can.Url == nil {
		return t.say(ctx, "The client opens no addresses. ")
	}
	id := acp.UnstableElicitationId(t.newCallID())
	err := t.elicit(ctx, acp.UnstableCreateElicitationRequest{
		Url: &acp.UnstableCreateElicitationUrl{Mode: "url", Message: "Sign in to the shop", ElicitationId: id, Url: "https://shop.example/sign-in?id=" + string(id)},
	})
	if err != nil {
		return err
	}
	return t.conn.UnstableCompleteElicitation(ctx, acp.UnstableCompleteElicitationNotification{ElicitationId: id})
}

// elicit asks the human, and repeats the answer.
func (t *turn) elicit(ctx context.Context, request acp.UnstableCreateElicitationRequest) error {
	if t.v2.on.Load() {
		meta := map[string]any{sessionMeta: t.id}
		if request.Form != nil {
			request.Form.Meta = meta
		} else {
			request.Url.Meta = meta
		}
	}
	t.v2.asks(t.id)
	answer, err := t.conn.UnstableCreateElicitation(ctx, request)
	if ctx.Err() == nil {
		t.v2.answered(t.id)
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return t.say(ctx, fmt.Sprintf("I could not ask: %v. ", err))
	case answer.Decline != nil:
		return t.say(ctx, "You declined. ")
	case answer.Accept == nil:
		return t.say(ctx, "You did not answer. ")
	}
	values, err := json.Marshal(answer.Accept.Content)
	if err != nil {
		return fmt.Errorf("the values: %w", err)
	}
	return t.say(ctx, fmt.Sprintf("You answered: %s. ", values))
}
