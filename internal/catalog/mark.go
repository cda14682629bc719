package catalog

import "strings"

const (
	// MarkVariable is in the environment of every process that runs for an agent,
	// so that one that got away is known again.
	MarkVariable = "DUET_AGENT_MARK"
	// EarlierMarkVariable was MarkVariable in earlier versions. It is also the
	// setting that says which agent whoever names none gets, so it is looked for,
	// and not set any more.
	EarlierMarkVariable = "DUET_AGENT"
)

// MarkIn is the mark that a variable of an environment, NAME=value, holds; an
// empty value is none.
func MarkIn(variable string) (mark string, ok bool) {
	name, value, _ := strings.Cut(variable, "=")
	return value, value != "" && (name == MarkVariable || name == EarlierMarkVariable)
}
