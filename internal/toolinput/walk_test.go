package toolinput

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestEachPartIsGoneThrough(t *testing.T) {
	const text = ` { "a\"\\" : [1, {"b":null} , "x]\u005d"],"c" : -1.5e3 , "d":{} }`
	start := afterSpace(text, 0)
	var got []string
	end := eachMember(text, start, func(quoted string, at int) int {
		end := afterValue(text, at)
		got = append(got, quoted, text[at:end])
		if text[at] == '[' {
			assert.Equal(t, end, eachElement(text, at, func(at int) int {
				end := afterValue(text, at)
				got = append(got, text[at:end])
				return end
			}))
		}
		return end
	})
	assert.Equal(t, len(text), end)
	assert.Equal(t, []string{
		`"a\"\\"`, `[1, {"b":null} , "x]\u005d"]`, `1`, `{"b":null}`, `"x]\u005d"`,
		`"c"`, `-1.5e3`, `"d"`, `{}`,
	}, got)
}

// Text that is valid except for its encoding has the same parts.
func TestTextThatIsNoUTF8(t *testing.T) {
	text := []byte("[\"\xff\\\\\" ,true]")
	var got []string
	assert.Equal(t, len(text), eachElement(text, 0, func(at int) int {
		end := afterValue(text, at)
		got = append(got, string(text[at:end]))
		return end
	}))
	assert.Equal(t, []string{"\"\xff\\\\\"", "true"}, got)
}
