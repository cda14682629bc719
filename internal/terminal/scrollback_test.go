package terminal

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestHowMuchOfTheOutputIsKept(t *testing.T) {
	var r scrollback
	r.add([]byte(strings.Repeat("x", scrollbackMost)))
	assert.Len(t, r.bytes(), scrollbackMost, "all of it, as long as it fits")
	r.add([]byte("y"))
	assert.Len(t, r.bytes(), scrollbackMost)

	// Cut at the beginning of a line, if near, or of a character.
	for _, c := range []struct{ text, begins string }{
		{strings.Repeat("x", 10) + "line\n" + strings.Repeat("y", scrollbackMost-3), "yyy"},
		{strings.Repeat("x", 10) + strings.Repeat("y", scrollbackLine-1) + "\n" + strings.Repeat("z", scrollbackMost-scrollbackLine), "zzz"},
		{strings.Repeat("x", 10) + strings.Repeat("y", scrollbackLine) + "\n" + strings.Repeat("z", scrollbackMost-scrollbackLine-1), "yyy"},
		{"€" + strings.Repeat("z", scrollbackMost-2), "zzz"},
		{"€" + strings.Repeat("z", scrollbackMost-3), "€zz"},
		{strings.Repeat("\x80", scrollbackMost+1), "\x80\x80"},
	} {
		r = scrollback{}
		r.add([]byte(c.text))
		assert.True(t, strings.HasPrefix(string(r.bytes()), c.begins), "%.20q…: %.20q", c.text, r.bytes())
		assert.LessOrEqual(t, len(r.bytes()), scrollbackMost)
	}
	r = scrollback{}
	for range 1000 {
		r.add([]byte(strings.Repeat("0123456789", 1000)))
		require.LessOrEqual(t, len(r.kept), 2*scrollbackMost+10_000)
	}
}

func TestOldQueriesAreNotAskedAgain(t *testing.T) {
	for _, question := range []string{
		"\x1b[c", "\x1b[0c", "\x1b[>c", "\x1b[=0c", "\x1b[6n", "\x1b[?6n", "\x1b[?2026$p", "\x1b[>q", "\x1b[>0q", "\x1b[?u",
		"\x1b]10;?\x07", "\x1b]11;?\x1b\\", "\x1b]4;1;?\x07", "\x1bP+q544e\x1b\\", "\x1bP$qm\x1b\\",
	} {
		assert.Equal(t, "ab", string(withoutQueries([]byte("a"+question+"b"))), "%q", question)
	}
	for _, other := range []string{"\x1b[1m", "\x1b[?1049h", "\x1b[2J", "\x1b[u", "\x1b]0;title?\x07", "\x1b[10;20H", "[c", "\x1b[3 q"} {
		assert.Equal(t, other, string(withoutQueries([]byte(other))), "%q", other)
	}
}
