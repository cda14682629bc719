package approval

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// checkOption checks that the option of a decision is one of those that were
// offered, and says the same as the decision: it is what an agent is told.
func checkOption(a domain.Approval, d Decision) error {
	var fit []string
	options := optionsOf(a)
	for _, o := range options {
		if o.fits(d.Decision) {
			fit = append(fit, cmp.Or(o.Name, o.OptionID))
		}
	}
	if d.Decision == Approve && len(options) > 0 && len(fit) == 0 {
		return domain.Invalid("decision", `"deny": the agent offers no answer that allows it`, `"approve"`, Deny)
	}
	if d.Option == "" {
		return nil
	}
	expected := "none: no options were offered that fit " + d.Decision
	if len(fit) > 0 {
		expected = fmt.Sprintf("one of %s to %s", strings.Join(fit, ", "), d.Decision)
	}
	if o, ok := optionNamed(a, d.Option); !ok || !o.fits(d.Decision) {
		return domain.Invalid("option", expected, fmt.Sprintf("%q", d.Option), fit...)
	}
	return nil
}

// An offered is an answer that was offered with a question.
type offered catalog.PermissionOption

// fits reports whether an answer says the same as a decision. Without a kind
// it says neither.
func (o offered) fits(decision string) bool {
	switch {
	case o.Kind == "" || decision == Respond:
		return true
	case strings.HasPrefix(o.Kind, "reject_"):
		return decision == Deny
	}
	return decision == Approve
}

// optionsOf are the answers that were offered with a question.
func optionsOf(a domain.Approval) (options []offered) {
	_ = json.Unmarshal(a.Options, &options) // ours, or absent, or somebody else's
	return options
}

// optionNamed is the option that a human named by its id or its name.
func optionNamed(a domain.Approval, named string) (offered, bool) {
	for _, o := range optionsOf(a) {
		if named != "" && (o.OptionID == named || strings.EqualFold(o.Name, named)) {
			return o, true
		}
	}
	return offered{}, false
}

// optionID is the id of the option that a human named, or "".
func optionID(a domain.Approval, named string) string {
	o, _ := optionNamed(a, named)
	return cmp.Or(o.OptionID, o.Name)
}

// choices are the names of the answers between which an agent lets a human
// choose. Its protocol has no place for other words; where there is but one
// answer the words go beside it.
func choices(a domain.Approval) (names []string) {
	for _, o := range optionsOf(a) {
		if o.OptionID != "" && o.Kind != "" && !strings.HasPrefix(o.Kind, "reject_") {
			names = append(names, o.Name)
		}
	}
	return names
}
