package process

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestInformativeLinesOfStderr(t *testing.T) {
	b := tailBuffer{limit: 200}
	b.Write([]byte("before\n"))
	since := b.total()
	assert.Empty(t, b.linesSince(since, 3))
	b.Write([]byte("\x1b[2m10:00\x1b[0m \x1b[31mERROR\x1b[0m Reconnecting... 2/5\n    at thing (file.js:1)\n}\n\n]);\n  status: 500\n"))
	assert.Equal(t, "10:00 ERROR Reconnecting... 2/5\nstatus: 500", b.linesSince(since, 3))
	assert.Equal(t, "status: 500", b.linesSince(since, 1))
	b.Write([]byte(strings.Repeat("x", 500) + "\nlast\n"))
	assert.Equal(t, "last", b.linesSince(since, 1))
	assert.Len(t, b.linesSince(since, 2), 199, "at most the kept bytes")
}

func TestPartialRune(t *testing.T) {
	for text, n := range map[string]int{"": 0, "a": 0, "ä": 0, "\xc3": 1, "a\xe2\x82": 2, "\xf0\x9f\x98": 3, "\xff": 0, "\xa4\xa4\xa4\xa4": 0} {
		assert.Equal(t, n, PartialRune([]byte(text)), "%q", text)
	}
}
