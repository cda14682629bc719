package wire

import "cmp"

// Subject is what a rule is about, in words.
func (r Rule) Subject() string {
	switch {
	case r.Command != "":
		return r.Tool + ": " + r.Command
	case r.Path != "":
		return r.Tool + ": " + r.Path
	case r.SameInput:
		return r.Tool + ", with the same input"
	}
	return r.Tool
}

// Where is where a rule holds, in words.
func (r Rule) Where() string {
	if r.Scope == "session" {
		return "session " + cmp.Or(r.Title, r.ThreadID)
	}
	return r.Scope
}
