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

// Choices are the answers between which an agent lets a person choose: what is
// chosen is all that it is told, since its protocol has no place for other words.
// Options of a client, which have no kind, are none.
func Choices(options []Option) (list []Option) {
	for _, o := range options {
		if o.ID != "" && o.Kind != "" && !o.Kind.Rejects() {
			list = append(list, o)
		}
	}
	return list
}

// AnswersOf says how a question of a type, with such an elicitation and such
// options, can be answered.
func AnswersOf(question string, e Elicitation, options []Option) Answers {
	if question != HumanContact {
		return Answers{}
	}
	n := len(Choices(options))
	return Answers{
		OptionsOnly: e.Mode == "" && n > 1, // where there is but one the words go beside it
		Declinable:  e.Mode != "" || n > 0,
	}
}

// Answers say how a question that is not about a tool can be answered.
type Answers struct {
	OptionsOnly bool // with one of its options alone
	Declinable  bool // by a denial too: whoever asks is told that nothing was chosen, or filled in
}

// Rejects reports whether an answer of this kind says no. One of a kind that is
// not known does if the kind begins as the known ones do.
func (k OptionKind) Rejects() bool { return strings.HasPrefix(string(k), "reject_") }
