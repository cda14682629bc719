package turn

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/internal/toolinput"
)

// received takes input for a question, and shows it. ok is false if its line is not complete yet.
func (a *asker) received(input term.Typed) (line typed, ok bool) {
	return a.receivedKeys(a.decode(input.Keys), input.Err)
}

// receivedAhead takes what the user has typed ahead for the next field of a form. What is not for a field goes
// to the next prompt.
func (a *asker) receivedAhead() (line typed, ok bool) {
	isNextField, keys := a.isNextField, a.ahead
	if a.isNextField = false; !isNextField || len(keys) == 0 {
		a.keep(nil)
		return typed{}, false
	}
	a.ahead = nil
	return a.receivedKeys(keys, nil)
}

// receivedKeys is received for keys that were decoded. err is the end of the input.
func (a *asker) receivedKeys(keys []term.Key, err error) (line typed, ok bool) {
	isSecret := a.focus == aSecret
	line, ok = a.takeKeys(keys, err)
	switch {
	case !a.view.asking || line.err != nil || isSecret && !ok:
	case !ok:
		a.view.typing(a.unfinished.Cursor())
	case isSecret:
		a.view.typed("")
	case !line.isShown:
		a.view.typed(line.text)
	default:
		a.view.asking = false
	}
	return line, ok
}

// answered handles a typed line or key. d is the decision that closed the question, if one did.
func (a *asker) answered(ctx context.Context, line typed) (d protocol.DecisionParams) {
	meant := a.meant
	a.meant, a.isNextField = "", false
	if len(a.waiting) == 0 {
		return protocol.DecisionParams{}
	}
	q := a.waiting[0]
	if q.ApprovalID != meant { // the line may have been typed before this question appeared
		if line.err == nil {
			a.view.Note("not taken: the question before is closed, or its host cannot be reached; this one is open")
		}
		a.prompt()
		return protocol.DecisionParams{}
	}
	if a.isInbox && a.left(q, line) {
		return protocol.DecisionParams{}
	}
	before := a.filling
	field := before.field()
	d, again := a.decisionOf(q, line)
	if again {
		a.isNextField = before != nil && before == a.filling && before.field() >= 0 && before.field() != field
		a.prompt()
		return protocol.DecisionParams{}
	}
	a.expected = anAnswer
	a.view.denied[q.ToolUseID] = d.Decision == protocol.Deny && line.err == nil
	if line.err != nil {
		a.decideAlone(ctx, q, d)
	} else if !a.decide(ctx, q, d) {
		a.prompt()
		return protocol.DecisionParams{}
	}
	a.waiting = a.waiting[1:]
	a.next()
	return d
}

// denial is a denial without a reason. The hub requires a comment.
var denial = protocol.DecisionParams{Decision: protocol.Deny, Comment: "denied"}

// left handles input that leaves a question unanswered: for later, or to leave the inbox. It
// reports whether it did.
func (a *asker) left(q asked, line typed) bool {
	word := strings.ToLower(line.text)
	switch {
	case line.err != nil, word == ":quit", word == "q" && a.takesKey(q):
		a.view.endLine()
		a.hasLeft = true
	case word == ":later", word == "l" && a.takesKey(q), word == "" && a.expected == anAnswer && q.Type == domain.HumanContact && q.Mode == "":
		a.waiting, a.expected = a.waiting[1:], anAnswer
		a.skipped++
		a.view.Note("left open")
		a.next()
	default:
		return false
	}
	return true
}

// decisionOf makes a decision from a line. again means that the line needs another prompt.
func (a *asker) decisionOf(q asked, line typed) (d protocol.DecisionParams, again bool) {
	switch {
	case q.Mode != "":
		return a.elicited(q, line)
	case line.err != nil:
		a.view.endLine()
		return protocol.DecisionParams{Decision: protocol.Deny, Comment: "the terminal was closed"}, false
	case a.expected == aReason:
		if line.text == "" {
			a.expected = anAnswer
			return d, true
		}
		return protocol.DecisionParams{Decision: protocol.Deny, Comment: line.text, Tell: needsPrompt(q)}, false
	case a.expected == aPattern:
		return a.withPattern(q, line.text)
	case a.expected == aCommand:
		return a.withCommand(q, line.text)
	case a.expected == anInput:
		if !json.Valid([]byte(line.text)) || !strings.HasPrefix(line.text, "{") {
			if line.text == "" {
				a.expected = anAnswer
			} else {
				a.view.Note("that is not a JSON object; an empty line goes back")
			}
			return d, true
		}
		return protocol.DecisionParams{Decision: protocol.Approve, UpdatedInput: json.RawMessage(line.text)}, false
	case q.Type == domain.HumanContact:
		return a.responseOf(q, line.text)
	}
	if input := a.edited(q); input != nil {
		return a.withEdited(q, input, line.text)
	}
	options := offered(q.Approval)
	if n, err := strconv.Atoi(line.text); err == nil && n >= 1 && n <= len(options) {
		return a.optionOf(q, options[n-1])
	}
	word := strings.ToLower(line.text)
	if reason, isFast := a.reasonIn(line.text); isFast {
		a.expected = aReason
		a.unfinished.Set(reason)
		return d, true
	}
	switch answerTo(word) {
	case domain.AnswerAllow:
		return protocol.DecisionParams{Decision: protocol.Approve}, false
	case domain.AnswerDeny:
		return denial, false
	case domain.AnswerTell:
		a.expected = aReason
	case domain.AnswerSession, domain.AnswerProject:
		return a.always(q, answerTo(word))
	case domain.AnswerEdit:
		a.edit(q)
	case domain.AnswerKeys:
		a.explain(q)
	default:
		if word == "v" || word == "view" {
			a.page(q)
			break
		}
		a.view.Note("please type " + a.keysOf(q))
	}
	return d, true
}

// reasonIn returns the reason in a text that a fast user has typed, or a slow terminal has delivered, together with the
// key that asks for the reason. The user sees it, and sends it with Return.
func (a *asker) reasonIn(text string) (reason string, ok bool) {
	reason, ok = strings.CutPrefix(text, domain.AnswerNamed(domain.AnswerTell).Key)
	return reason, ok && a.mode == eachKey && reason != "" && answerTo(strings.ToLower(text)) == ""
}

// answerTo returns the name of the answer that a key or a word means, or "".
func answerTo(word string) string {
	switch word {
	case "yes":
		return domain.AnswerAllow
	case "no":
		return domain.AnswerDeny
	}
	for _, known := range domain.ToolAnswers() {
		if word == known.Key || word == known.Name {
			return known.Name
		}
	}
	return ""
}

// optionOf makes a decision from one of the answers that the agent offers.
func (a *asker) optionOf(q asked, o domain.Option) (d protocol.DecisionParams, again bool) {
	if o.Kind.Rejects() {
		return protocol.DecisionParams{Decision: protocol.Deny, Option: o.ID, Comment: cmp.Or(o.Name, "denied")}, false
	}
	return protocol.DecisionParams{Decision: protocol.Approve, Option: o.ID}, false
}

// always shows what a rule would apply to before it is stored.
func (a *asker) always(q asked, scope string) (d protocol.DecisionParams, again bool) {
	rule, known := q.Rules[scope]
	switch {
	case q.Plan != "":
		a.view.Note("a plan makes no rule: please type " + a.keysOf(q))
		return d, true
	case !known:
		a.view.Note("cannot make a rule: Duet cannot tell what else it would allow; please type " + a.keysOf(q))
		return d, true
	}
	a.view.Note("this rule allows without asking: " + rule.Text)
	a.expected, a.scope = aPattern, scope
	a.give(rule.Pattern)
	return d, true
}

// longestGiven limits a text that the user edits in a line, in bytes: it stays within a few rows of the screen.
const longestGiven = 300

// give begins the next line with a text, which the user edits. It reports whether it did: a line has no
// newlines, and would change tabs and spaces around a text.
func (a *asker) give(text string) bool {
	if a.mode != eachKey || text == "" || len(text) > longestGiven || text != strings.TrimSpace(text) ||
		strings.ContainsAny(text, "\t\n") || text != term.Exact(text) {
		return false
	}
	a.unfinished.Set(text)
	if a.unfinished.Text() != text {
		a.unfinished = term.EditedLine{}
		return false
	}
	a.given = text
	return true
}

// withPattern makes a decision that becomes a rule, for another pattern if the user typed one.
func (a *asker) withPattern(q asked, text string) (d protocol.DecisionParams, again bool) {
	given := a.given
	a.given = ""
	if text == "." || text != "" && q.Rules[a.scope].Pattern == "" || text == "" && given != "" {
		a.expected = anAnswer
		return d, true
	}
	if text == given { // the pattern as it is, not one with special characters
		text = ""
	}
	return protocol.DecisionParams{Decision: protocol.Approve, Scope: protocol.DecisionScope(a.scope), Pattern: text}, false
}

// responseOf makes a decision from the answer to a question that is not about a tool: the
// number of an option, or words.
func (a *asker) responseOf(q asked, text string) (d protocol.DecisionParams, again bool) {
	if _, hidden := q.sheet.Excerpt(""); hidden && text == "v" {
		a.page(q)
		return d, true
	}
	if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= len(q.Options) {
		return protocol.DecisionParams{Decision: protocol.Respond, Option: q.Options[n-1].ID, Comment: q.Options[n-1].Name}, false
	}
	if q.OptionsOnly && q.Declinable && text == declineKey {
		return decline, false
	}
	isNamed := func(o domain.Option) bool { return strings.EqualFold(o.Name, text) || o.ID == text }
	if q.OptionsOnly && text != "" && !slices.ContainsFunc(q.Options, isNamed) {
		keys := []domain.Answer{{Key: fmt.Sprintf("1 to %d", len(q.Options))}}
		if q.Declinable {
			keys = append(keys, domain.Answer{Key: declineKey})
		}
		a.view.Note("please type " + oneOf(append(keys, a.leaving(q)...)))
		return d, true
	}
	return protocol.DecisionParams{Decision: protocol.Respond, Comment: text}, text == ""
}

// declineKey declines a question that takes no answer but its options.
const declineKey = "n"

// keysFor lists the keys that answer a question about a tool, with the words for each. decisionOf
// takes them.
func keysFor(q asked) (list []domain.Answer) {
	for _, k := range domain.ToolAnswers() {
		switch k.Name {
		case domain.AnswerSession, domain.AnswerProject:
			if _, known := q.Rules[k.Name]; !known {
				continue
			}
		case domain.AnswerEdit:
			if !q.Editable {
				continue
			}
		case domain.AnswerKeys:
			if n := len(offered(q.Approval)); n > 0 {
				list = append(list, domain.Answer{
					Key: "1-" + strconv.Itoa(n), Words: "Choose", Meaning: "Gives the agent one of its own answers, which the question lists.",
				})
			}
			if _, hidden := q.sheet.Excerpt(""); hidden {
				list = append(list, domain.Answer{Key: "v", Words: "View all", Meaning: "Shows the whole question."})
			}
		}
		list = append(list, k)
	}
	return list
}

// leaving lists the keys that leave a question of the inbox unanswered. left takes them.
func (a *asker) leaving(q asked) []domain.Answer {
	if !a.isInbox {
		return nil
	}
	list := []domain.Answer{
		{Key: "l", Words: "Later", Meaning: "Leaves the question open, and shows the next."},
		{Key: "q", Words: "Quit", Meaning: "Leaves the questions that are open."},
	}
	if !a.takesKey(q) {
		list[0].Key, list[1].Key = ":later", ":quit"
	}
	return list
}

// allKeys are the keys of a question about a tool.
func (a *asker) allKeys(q asked) []domain.Answer {
	list := keysFor(q)
	last := len(list) - 1
	return append(append(list[:last:last], a.leaving(q)...), list[last])
}

// InPrompt returns keys with their words, as the end of a prompt.
func InPrompt(keys []domain.Answer) string {
	parts := make([]string, len(keys))
	for i, k := range keys {
		if parts[i] = "[" + k.Key + "] " + k.Words; strings.HasPrefix(k.Key, ":") { // a word that says it
			parts[i] = k.Key
		}
	}
	return strings.Join(parts, ", ") + ": "
}

// explain shows what the keys of a question about a tool do.
func (a *asker) explain(q asked) {
	a.view.Explain(a.allKeys(q))
}

// Explain prints what keys do.
func (v *View) Explain(keys []domain.Answer) {
	for _, k := range keys {
		v.aside(term.Lines(v.side, fmt.Sprintf("  %-4s %s: %s", k.Key, k.Words, k.Meaning)), dim)
	}
}

// keysOf describes what the user can type at a question about a tool.
func (a *asker) keysOf(q asked) string { return oneOf(a.allKeys(q)) }

// oneOf lists keys as alternatives.
func oneOf(keys []domain.Answer) string {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.Key
	}
	if last := len(names) - 1; last > 0 {
		return strings.Join(names[:last], ", ") + " or " + names[last]
	}
	return names[0]
}

// withCommand makes a decision from an edited command.
func (a *asker) withCommand(q asked, text string) (d protocol.DecisionParams, again bool) {
	given := a.given
	a.given = ""
	switch text {
	case "":
		a.expected = anAnswer
		return d, true
	case given:
		return protocol.DecisionParams{Decision: protocol.Approve}, false
	}
	return protocol.DecisionParams{Decision: protocol.Approve, UpdatedInput: toolinput.WithText(q.ToolInput, q.TextMember, text)}, false
}

// longestLine is the longest line, in bytes, that any terminal can deliver: Linux takes 4,096,
// macOS 1,024.
const longestLine = 1000

// edit shows the tool's input and asks for a changed one.
func (a *asker) edit(q asked) {
	switch {
	case !q.Editable:
		a.view.Note("this agent accepts no other input; type t, and then what to run instead")
	case q.TextMember == "command" && a.give(toolinput.Text(q.ToolInput, q.TextMember)):
		a.expected = aCommand
	case editorName() != "", a.mode == eachKey && hasEditor():
		a.editWith(q)
	case len(q.ToolInput) > longestLine:
		a.view.Note("the input is too long for a line; edit it with: duet-rpc approvals allow " + ShortID(q.ApprovalID) + " --edit-input JSON")
	default:
		a.expected = anInput
		a.view.aside("  "+typeable(q.ToolInput), dim)
	}
}

// typeable returns JSON that the user can read and type again. It escapes invisible characters
// in strings.
func typeable(raw json.RawMessage) string {
	var line bytes.Buffer
	if json.Compact(&line, raw) != nil {
		return term.Line(string(raw))
	}
	var b strings.Builder
	for _, r := range line.String() {
		switch {
		case term.Exact("a"+string(r)) == "a"+string(r):
			b.WriteRune(r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		}
	}
	return b.String()
}
