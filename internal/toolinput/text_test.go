package toolinput

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTheTextOfAnInputIsEdited(t *testing.T) {
	for input, want := range map[string][2]string{
		`{"file_path":"a","content":"x\ny"}`:                     {"content", `{"file_path":"a","content":"<z>\n"}`},
		` {"new_string" : "\u003cx" , "old_string":"y","n":1.0}`: {"new_string", ` {"new_string" : "<z>\n" , "old_string":"y","n":1.0}`},
		`{"command":"ls","in":{"command":"rm"}}`:                 {"command", `{"command":"<z>\n","in":{"command":"rm"}}`},
		`{"command":["ls"]}`:                                     {},
		`{"command":"ls","content":"x"}`:                         {},
		`{"command":"ls","command":"rm"}`:                        {},
		`{"command":"ls","Command":"rm"}`:                        {},
		`{"edits":[{"new_string":"x"}],"file":"y"}`:              {},
		`"content"`: {},
		``:          {},
	} {
		member := TextMember([]byte(input))
		assert.Equal(t, want[0], member, input)
		if member != "" {
			edited := WithText([]byte(input), member, "<z>\n")
			assert.JSONEq(t, want[1], string(edited), input)
			assert.Equal(t, "<z>\n", Text(edited, member))
		}
	}
}
