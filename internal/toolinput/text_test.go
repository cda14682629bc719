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

func TestATitleHasTheEditedTexts(t *testing.T) {
	for _, c := range []struct{ title, before, after, want string }{
		{"`echo 1`", `{"command":"echo 1"}`, `{"command":"echo 2"}`, "`echo 2`"},
		{"Bash", `{"command":"echo 1"}`, `{"command":"echo 2"}`, "Bash"},
		{"Write a", `{"file_path":"a","content":"x"}`, `{"file_path":"b","content":"y"}`, "Write b"},
		{"read a", `{"file_path":"ea"}`, `{"file_path":"b"}`, "read a"},
		{"run ls", `{"command":"l"}`, `{"command":"m"}`, "run ls"},
		{"run ls", `{"command":"ls"}`, `{"command":""}`, "run ls"},
		{"run ls", `{"command":"ls"}`, `{"args":["ls"]}`, "run ls"},
		{"run ls", `[]`, `{"command":"make"}`, "run ls"},
	} {
		assert.Equal(t, c.want, Retitled(c.title, []byte(c.before), []byte(c.after)), "%+v", c)
	}
}
