package domain

import (
	"encoding/json"
	"strings"
)

// An Option is an answer that is offered with a question.
type Option struct {
	ID   string // "" in a client's question: then its Name is its id
	Name string
	Kind OptionKind
	// Extra has the members that are none of these, as whoever asked spelled them;
	// nil: there are none. They are told to clients as they are.
	Extra map[string]json.RawMessage
}

// An OptionKind says what choosing an answer means, in the words of the Agent
// Client Protocol (PermissionOptionKind). One that is none of the constants is
// kept and told as it came; "" says nothing.
type OptionKind string

// Kinds of options.
const (
	AllowOnce    OptionKind = "allow_once"
	AllowAlways  OptionKind = "allow_always"
	RejectOnce   OptionKind = "reject_once"
	RejectAlways OptionKind = "reject_always"
)

// Rejects reports whether an answer of this kind says no. One of a kind that is
// not known does if the kind begins as the known ones do.
func (k OptionKind) Rejects() bool { return strings.HasPrefix(string(k), "reject_") }
