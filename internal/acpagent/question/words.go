package question

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/visible"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

// InWords is what is asked, in a line.
func InWords(q wire.Approval) string {
	text, _, _ := strings.Cut(q.Asks(), "\n")
	return text
}

// Described is what is asked, of an approval as getApproval has it, with the answers that
// there are.
func Described(q wire.Approval) string {
	var b strings.Builder
	b.WriteString(cmp.Or(q.Title, q.Subject, q.Tool, "a question") + "\n\n")
	switch {
	case q.URL != "":
		b.WriteString("Yes means that you open " + q.URL + "\n\n")
	case q.Plan != "":
		b.WriteString(q.Plan + "\n\n")
	case q.Diff != "":
		b.WriteString(fenced("diff", q.Diff))
	case len(q.Input) > 0 && string(q.Input) != "null":
		b.WriteString(fenced("json", string(q.Input)))
	}
	if q.Details != "" {
		b.WriteString(q.Details + "\n\n")
	}
	for i, o := range q.Options {
		fmt.Fprintf(&b, "%d. %s\n", i+1, cmp.Or(o.Name, o.OptionID))
	}
	return b.String()
}

// fenced is a text as a block of Markdown, whatever is in it.
func fenced(language, text string) string {
	fence := visible.Fence(text)
	return fmt.Sprintf("%s%s\n%s\n%s\n\n", fence, language, strings.TrimSuffix(text, "\n"), fence)
}

// Answer is the decision that words mean: the number or the name of an option, yes or
// no, or the words themselves where words are asked for.
func Answer(q wire.Approval, words string) (d wire.Decision, ok bool) {
	d = wire.Decision{ID: q.ID}
	n, err := strconv.Atoi(words)
	i := slices.IndexFunc(q.Options, func(o wire.ApprovalOption) bool { return o.OptionID == words || strings.EqualFold(o.Name, words) })
	if err == nil && n >= 1 && n <= len(q.Options) {
		i = n - 1
	}
	yes, no := strings.EqualFold(words, "yes"), strings.EqualFold(words, "no")
	switch {
	case i >= 0:
		o := q.Options[i]
		d.Option, d.Comment = o.OptionID, cmp.Or(o.Name, o.OptionID)
		switch {
		case o.Rejects():
			d.Decision = wire.Deny
		case q.Type == wire.HumanContact:
			d.Decision = wire.Respond
		default:
			d.Decision, d.Comment = wire.Approve, ""
		}
		return d, true
	case q.Mode == wire.ModeForm:
		d.Decision, d.Comment = wire.Deny, "declined"
		return d, no
	case q.Mode == wire.ModeURL && yes, q.Type == wire.HumanContact && q.Mode == "":
		d.Decision, d.Comment = wire.Respond, words
		return d, true
	case no:
		d.Decision, d.Comment = wire.Deny, "denied"
		return d, true
	}
	d.Decision = wire.Approve
	return d, yes
}
