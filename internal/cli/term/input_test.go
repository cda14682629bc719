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
		{[]string{"ac\x1b[", "Db\x1b[Cd\r"}, "abcd", ""},                      // the arrows
		{[]string{"bd\x01a\x06c\x05e\r"}, "abcde", ""},                        // C-a, C-f, C-e
		{[]string{"one two\x1bb\x1bdthree\x1b[H\x1b[3~O\r"}, "One three", ""}, // M-b, M-d, Home, DEL
		{[]string{"one two\x02\x02\x02\x0b\r"}, "one ", ""},                   // C-b, C-k
		{[]string{"a\x1b[20", "0~b\r\nc\x7f\x1b[2", "01~d\rrest"}, "ab\ncd", "rest"},
	} {
		var l EditedLine
		var d Decoder
		for i, keys := range c.keys {
			isComplete, isClosed, rest := l.Take(d.Keys([]byte(keys)))
			assert.Equal(t, i == len(c.keys)-1, isComplete, "%q", c.keys)
			assert.False(t, isClosed)
			if isComplete {
				assert.Equal(t, c.rest, typedText(rest))
			}
		}
		assert.Equal(t, c.want, l.Text(), "%q", c.keys)
	}
	var l EditedLine
	_, isClosed, _ := l.Take(new(Decoder).Keys([]byte("\x04")))
	assert.True(t, isClosed)
	l = EditedLine{}
	before, after := l.Cursor()
	assert.Equal(t, []string{"", ""}, []string{before, after})
	l.Take(new(Decoder).Keys([]byte("\x1b[200~aä\nbö\x1b[201~c\x1b[D\x1b[D")))
	before, after = l.Cursor()
	assert.Equal(t, []string{"aä\nb", "öc"}, []string{before, after})
}

func typedText(keys []Key) (text string) {
	for _, k := range keys {
		text += k.Text()
	}
	return text
}
