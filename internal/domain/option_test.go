package domain

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// A question is answered with its options alone where an agent lets one choose
// between some, and so in words where it offers one answer, or a client asks.
func TestAQuestionSaysHowItCanBeAnswered(t *testing.T) {
	agents := func(kinds ...OptionKind) (list []Option) {
		for _, kind := range kinds {
			list = append(list, Option{ID: "id" + string(kind), Name: "name", Kind: kind})
		}
		return list
	}
	form := Elicitation{Mode: ElicitForm}
	for name, c := range map[string]struct {
		question    string
		elicitation Elicitation
		options     []Option
		want        Answers
	}{
		"a choice":                 {HumanContact, Elicitation{}, agents(AllowOnce, "other", RejectOnce), Answers{OptionsOnly: true, Declinable: true}},
		"one answer":               {HumanContact, Elicitation{}, agents(AllowOnce, RejectOnce), Answers{Declinable: true}},
		"no answer but no":         {HumanContact, Elicitation{}, agents(RejectOnce, RejectAlways), Answers{}},
		"a client's":               {HumanContact, Elicitation{}, []Option{{Name: "red"}, {ID: "b", Name: "blue"}}, Answers{}},
		"a client's, with kinds":   {HumanContact, Elicitation{}, []Option{{Name: "red", Kind: AllowOnce}, {Name: "blue", Kind: AllowOnce}}, Answers{}},
		"words":                    {HumanContact, Elicitation{}, nil, Answers{}},
		"a form":                   {HumanContact, form, agents(AllowOnce, AllowAlways), Answers{Declinable: true}},
		"a tool, which is allowed": {FunctionCall, Elicitation{}, agents(AllowOnce, AllowAlways), Answers{}},
	} {
		assert.Equal(t, c.want, AnswersOf(c.question, c.elicitation, c.options), name)
	}
}
