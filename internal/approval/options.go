package approval

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// checkOption checks that the option of a decision is one of those that were
// offered, and says the same as the decision: it is what an agent is told.
func checkOption(a domain.Approval, d Decision) error {
	var fit []string
	for _, o := range a.Options {
		if fits(o, d.Decision) {
			fit = append(fit, cmp.Or(o.Name, o.ID))
		}
	}
	if d.Decision == Approve && len(a.Options) > 0 && len(fit) == 0 {
		return domain.Invalid("decision", `"deny": the agent offers no answer that allows it`, `"approve"`, Deny)
	}
	if d.Option == "" {
		return nil
	}
	expected := "none: no options were offered that fit " + d.Decision
	if len(fit) > 0 {
		expected = fmt.Sprintf("one of %s to %s", strings.Join(fit, ", "), d.Decision)
	}
	if o, ok := optionNamed(a, d.Option); !ok || !fits(o, d.Decision) {
		return domain.Invalid("option", expected, fmt.Sprintf("%q", d.Option), fit...)
	}
	return nil
}

// fits reports whether an answer that was offered says the same as a decision.
// Without a kind it says neither.
func fits(o domain.Option, decision string) bool {
	switch {
	case o.Kind == "" || decision == Respond:
		return true
	case o.Kind.Rejects():
		return decision == Deny
	}
	return decision == Approve
}

// optionNamed is the option that a human named by its id or its name.
func optionNamed(a domain.Approval, named string) (domain.Option, bool) {
	for _, o := range a.Options {
		if named != "" && (o.ID == named || strings.EqualFold(o.Name, named)) {
			return o, true
		}
	}
	return domain.Option{}, false
}

// optionID is the id of the option that a human named, or "".
func optionID(a domain.Approval, named string) string {
	o, _ := optionNamed(a, named)
	return cmp.Or(o.ID, o.Name)
}

// mustChoose is the error for an answer in words, where an agent can be told one
// of its options alone; nil for any other.
func mustChoose(a domain.Approval, d Decision) error {
	given := cmp.Or(d.Option, d.Comment)
	if d.Decision != Respond || !a.Answers().OptionsOnly || optionID(a, given) != "" {
		return nil
	}
	var names []string
	for _, o := range domain.Choices(a.Options) {
		names = append(names, cmp.Or(o.Name, o.ID))
	}
	return domain.Invalid("option", "one of "+strings.Join(names, ", ")+" (the agent can be told nothing else)", fmt.Sprintf("%q", given), names...)
}
