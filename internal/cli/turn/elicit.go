package turn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/form"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

// filling is a form that the user fills in, field by field.
type filling struct {
	question  string // the id of the question
	form      form.Form
	questions []form.Field // of the form
	values    map[string]json.RawMessage
	at        int // the current question; after the last one of several the user reviews all values
}

// isOne reports whether the form has a single question. Its answer is sent without a review.
func (f *filling) isOne() bool { return len(f.questions) == 1 }

// field returns the index of the current question, or -1 if there is none. f may be nil.
func (f *filling) field() int {
	if f == nil || f.at == len(f.questions) {
		return -1
	}
	return f.at
}

// fillingOf returns the state of the form of a question. It begins with the values that the
// agent proposes.
func (a *asker) fillingOf(q asked) *filling {
	if a.filling == nil || a.filling.question != q.ApprovalID {
		f, _ := form.Read(q.Schema) // an invalid schema has no fields; the hub reports the error
		a.filling = &filling{question: q.ApprovalID, form: f, questions: f.Questions(), values: f.Defaults()}
		if a.filling.isOne() {
			a.view.Note("your answer is sent at once; :none sends the form without one, :decline and :cancel answer without the form")
			return a.filling
		}
		a.view.Note("an empty line takes the default in brackets; :back goes back, :none leaves a field out, :decline and :cancel answer the " +
			"whole form")
	}
	return a.filling
}

// elicitationPrompt returns the text before the cursor.
func (a *asker) elicitationPrompt(q asked) string {
	if q.Mode != domain.ElicitForm {
		return "Open it yourself, and agree? [y] Agree, [n] Decline, [c] Cancel: "
	}
	f := a.fillingOf(q)
	if f.at == len(f.questions) {
		a.view.aside(f.summary(), dim)
		return "Send this? [y] Send, [b] Back, [n] Decline, [c] Cancel: "
	}
	field := f.questions[f.at]
	label, expects := field.Label(), field.Asks()
	if field.Title == "" && f.isOne() { // the question says what it is
		label = "Answer"
	}
	if field.Own != "" {
		expects += ", or your own words"
	}
	text := fmt.Sprintf("%s (%s)", term.Line(label), term.Line(expects))
	if value, ok := f.values[field.Own]; ok {
		return text + " [" + term.Line(field.InWords(value)) + "]: "
	}
	if value, ok := f.values[field.Name]; ok {
		text += " [" + term.Line(field.InWords(value)) + "]"
	}
	return text + ": "
}

// summary returns the values that would be sent.
func (f *filling) summary() string {
	var lines []string
	for _, field := range f.questions {
		text := "—"
		for _, name := range []string{field.Name, field.Own} {
			if value, ok := f.values[name]; ok {
				text = term.Line(field.InWords(value))
			}
		}
		lines = append(lines, "  "+term.Line(field.Label())+": "+text)
	}
	return strings.Join(lines, "\n")
}

var (
	decline = protocol.DecisionParams{Decision: protocol.Deny, Comment: "declined"}
	dismiss = protocol.DecisionParams{Decision: protocol.Cancel}
)

// elicited makes a decision from a line. again means that the line needs another prompt.
func (a *asker) elicited(q asked, line typed) (d protocol.DecisionParams, again bool) {
	if line.err != nil { // the user has not declined
		a.view.endLine()
		return dismiss, false
	}
	word := strings.ToLower(line.text)
	switch word {
	case ":decline":
		return decline, false
	case ":cancel":
		return dismiss, false
	}
	if q.Mode != domain.ElicitForm {
		switch word {
		case "y", "yes":
			return protocol.DecisionParams{Decision: protocol.Respond, Comment: "agreed to open it"}, false
		case "n", "no":
			return decline, false
		case "c", "cancel":
			return dismiss, false
		}
		a.view.Note("please type y, n or c")
		return d, true
	}
	f := a.fillingOf(q)
	if f.at < len(f.questions) {
		err := f.fill(line.text)
		switch {
		case err != nil:
			a.view.Note(err.Error())
		case f.isOne() && f.at == 1:
			return protocol.DecisionParams{Decision: protocol.Respond, Content: f.form.Values(f.values)}, false
		}
		return d, true
	}
	switch word {
	case "y", "yes":
		return protocol.DecisionParams{Decision: protocol.Respond, Content: f.form.Values(f.values)}, false
	case "b", "back", ":back":
		f.back()
	case "n", "no":
		return decline, false
	case "c", "cancel":
		return dismiss, false
	default:
		a.view.Note("please type y, b, n or c")
	}
	return d, true
}

func (f *filling) back() { f.at = max(0, f.at-1) }

// fill stores the line as the value of the current field, and moves on if it is valid.
func (f *filling) fill(line string) error {
	field := f.questions[f.at]
	_, known := f.values[field.Name]
	if _, own := f.values[field.Own]; own {
		known = true
	}
	switch {
	case line == ":back":
		f.back()
		return nil
	case line == ":none" && field.Required, line == "" && !known && field.Required:
		return errors.New("this is needed: " + term.Line(field.Asks()))
	case line == "" && !known && f.isOne(): // a key too many is no answer
		return errors.New("type an answer, or :none for none: " + term.Line(field.Asks()))
	case line == ":none":
		delete(f.values, field.Name)
		delete(f.values, field.Own)
	case line != "":
		if rest, doubled := strings.CutPrefix(line, "::"); doubled { // escapes a text that begins with a colon
			line = ":" + rest
		}
		value, err := field.Parse(line)
		if isNumber := strings.Trim(line, "0123456789") == ""; err != nil && field.Own != "" && !isNumber {
			own, _ := f.form.Field(field.Own)
			if value, err = own.Parse(line); err == nil {
				delete(f.values, field.Name)
				f.values[field.Own] = value
				break
			}
		}
		if refused := (*form.Error)(nil); errors.As(err, &refused) && (field.Title != "" || f.isOne()) {
			words := *refused
			words.Field = field.Title
			err = &words
		}
		if err != nil {
			return errors.New(term.Line(err.Error()))
		}
		delete(f.values, field.Own)
		f.values[field.Name] = value
	}
	f.at++
	return nil
}

// elicitedAlone decides about a form or an address without a user. A form can be sent as the
// agent proposes it. Only a person can agree to an address.
func (a *asker) elicitedAlone(q hubclient.Approval) (note string, d protocol.DecisionParams) {
	switch {
	case a.Deny:
		return "declined by --deny", protocol.DecisionParams{Decision: protocol.Deny, Comment: "declined by --deny"}
	case a.Yes && q.Mode == domain.ElicitForm:
		f, err := form.Read(q.Schema)
		content := f.Values(f.Defaults())
		if err == nil && f.Check(content) == nil {
			return "sent with the agent's values, by --yes", protocol.DecisionParams{Decision: protocol.Respond, Content: content}
		}
		return "not answered: --yes sends the agent's values, and a field has none", dismiss
	case a.Yes:
		return "not answered: --yes opens no address", dismiss
	}
	return "not answered: there is no terminal to ask on", dismiss
}

const (
	// keyWithin is how long the user has to type a key: slightly less than the hub waits.
	keyWithin = 24 * time.Second
	// leaveToOthers is how long other clients have to provide a key if this one has no
	// terminal.
	leaveToOthers = 2 * time.Second
)

// giveKey asks on the terminal for the API key that the agent needs, without showing it, and
// sends it to the hub. It does not store the key. Without a terminal, other clients have a
// moment to provide it.
func (a *asker) giveKey(ctx context.Context, d *protocol.SecretEvent, running *sync.WaitGroup) {
	hub := a.hub
	provide := func(key string) error {
		return hub.Call(ctx, "secret.provide", protocol.ProvideSecretParams{RequestID: d.RequestID, Service: d.Service, Secret: key}, nil)
	}
	if a.terminal == nil || a.interrupts {
		running.Go(func() {
			select {
			case <-time.After(leaveToOthers):
				_ = provide("") // another client may have answered
			case <-ctx.Done():
			}
		})
		return
	}
	service := term.Line(d.Service)
	a.view.Note("the agent needs the key of " + service + ", which is passed on and kept nowhere; `duet-rpc config --defaults` shows how " +
		"[keys." + service + "] finds it")
	key, interrupted := a.unseen(ctx, "Key of "+service+" (it is not shown; Return for none): ")
	switch {
	case a.isClosed:
		return
	case interrupted:
		// Answer nothing: a refusal could end the turn as failed before the interrupt arrives.
		var sig os.Signal = os.Interrupt
		if a.isToEnd {
			sig = syscall.SIGTERM
		}
		a.interrupts = false // interrupt would take a second request as "at once"
		a.interrupt(sig)
		return
	}
	if err := provide(key); err != nil && key != "" {
		a.view.Note("the key came too late, or another client has given one")
	}
}

// unseen asks for a line that the terminal does not show. The line is empty after a timeout.
func (a *asker) unseen(ctx context.Context, question string) (line string, interrupted bool) {
	ctx, cancel := context.WithTimeout(ctx, keyWithin)
	defer cancel()
	before := a.interrupts
	line, err := a.line(ctx, question, aSecret)
	if err != nil {
		a.view.endLine()
	}
	return line, a.interrupts && !before
}
