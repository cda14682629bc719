package term

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestLineIsEdited(t *testing.T) {
	for _, c := range []struct {
		keys []string
		want string
		rest string
	}{
		{[]string{"abc\r"}, "abc", ""},
		{[]string{"abc\ndef\n"}, "abc", "def\n"},
		{[]string{"a", "bü\x7f", "\xc3", "\xa4", "\r"}, "abä", ""},
		{[]string{"one two \x17", "three\x17\x17\x17four\r"}, "four", ""},
		{[]string{"abc\x15d\x04e\r"}, "de", ""},
		{[]string{"a\x1b[Ab\x1bOC\x1b[", "3~c\x01\r"}, "abc", ""},
		{[]string{"a\x1b[20", "0~b\r\nc\x7f\x1b[2", "01~d\rrest"}, "ab\nc\x7fd", "rest"},
	} {
		var l EditedLine
		for i, keys := range c.keys {
			isComplete, isClosed, rest := l.Take([]byte(keys))
			assert.Equal(t, i == len(c.keys)-1, isComplete, "%q", c.keys)
			assert.False(t, isClosed)
			if isComplete {
				assert.Equal(t, c.rest, string(rest))
			}
		}
		assert.Equal(t, c.want, l.Text(), "%q", c.keys)
	}
	var l EditedLine
	_, isClosed, _ := l.Take([]byte("\x04"))
	assert.True(t, isClosed)
}
