package approval

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/form"
	"github.com/duet-rpc/duet-rpc/internal/toolinput"
)

// checkElicitation reports what is wrong with an elicitation before anybody is
// asked, in an error of domain.KindInvalid.
func checkElicitation(e domain.Elicitation, message string) error {
	if strings.TrimSpace(message) == "" {
		return domain.Invalid("title", "what is asked, in words", "an empty string")
	}
	switch e.Mode {
	case domain.ElicitForm:
		if _, err := form.Read(e.Schema); err != nil {
			return domain.Invalid("schema", "an object of JSON Schema whose properties are the form's fields", "another one: "+err.Error())
		}
	case domain.ElicitURL:
		if e.URL == "" {
			return domain.Invalid("url", "an address to open", "nothing")
		}
	default:
		return domain.Invalid("mode", "a mode of elicitation", fmt.Sprintf("%q", e.Mode), domain.ElicitForm, domain.ElicitURL)
	}
	return nil
}

// elicitationIdentity is by what an elicitation is known when it is asked again. An
// address is agreed to as it is: another one is another question.
func elicitationIdentity(a domain.Approval) string {
	e := a.Elicitation
	what := e.Schema
	if e.Mode == domain.ElicitURL {
		what = asJSON(e.URL)
	}
	return inputHash("elicitation\x00"+e.Mode+"\x00"+a.Title, what)
}

// checkedForElicitation is checkedFor for a question that has a form, or an address.
func (d Decision) checkedForElicitation(a domain.Approval) (Decision, error) {
	switch {
	case d.Decision != Respond && d.Decision != Deny && d.Decision != Cancel:
		return d, domain.Invalid("decision", "one of respond, deny, cancel for a question of the mode "+a.Elicitation.Mode, fmt.Sprintf("%q", d.Decision), Respond, Deny, Cancel)
	case d.Option != "":
		return d, domain.Invalid("option", "nothing: no options were offered", fmt.Sprintf("%q", d.Option))
	case d.UpdatedInput != nil:
		return d, domain.Invalid("updated_input", "nothing: no tool waits; the values of a form are its content", "an input")
	case d.Scope != "" && d.Scope != ScopeOnce:
		return d, domain.Invalid("scope", "once: the answer is given once", fmt.Sprintf("%q", d.Scope), ScopeOnce)
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
	if err != nil { // it was read when it was asked
		return d, domain.Invalid("content", "nothing: "+err.Error(), "values")
	}
	if d.Content == nil && len(f.Fields) == 1 { // who knows of no forms has said it in words
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

// invalidContent is the error of a form as a client is told it: with the field, what it
// takes and what it got.
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
