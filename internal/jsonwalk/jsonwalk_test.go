package jsonwalk_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/internal/jsonwalk"
)

func TestEachPartIsGoneThrough(t *testing.T) {
	const text = ` { "a\"\\" : [1, {"b":null} , "x]\u005d"],"c" : -1.5e3 , "d":{} }`
	start := jsonwalk.Space(text, 0)
	var got []string
	end := jsonwalk.Members(text, start, func(quoted string, at int) int {
		end := jsonwalk.Value(text, at)
		got = append(got, quoted, text[at:end])
		if text[at] == '[' {
			assert.Equal(t, end, jsonwalk.Elements(text, at, func(at int) int {
				end := jsonwalk.Value(text, at)
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
	assert.Equal(t, len(text), jsonwalk.Elements(text, 0, func(at int) int {
		end := jsonwalk.Value(text, at)
		got = append(got, string(text[at:end]))
		return end
	}))
	assert.Equal(t, []string{"\"\xff\\\\\"", "true"}, got)
}
