package term

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func fruits() *List {
	return NewList([]string{"1 Apples, red", "2 Pears, red", "3 Äpfel, grün", "4 Plums"})
}

func TestTypingNarrowsList(t *testing.T) {
	for keys, want := range map[string]int{
		"\r":                         0,
		"pea\r":                      1,
		"red app\r":                  0,
		"ÄPF\r":                      2,
		"pearsx\x7f\r":               1,
		"xyz\x15plum\r":              3,
		"\x1b[B\x1b[B\r":             2,
		"\x0e\x0e\x0e\x0e\x0e\x10\r": 2,
		"red\x1bOB\r":                1,
		"p\x1b[B\x1b[A\r":            0,
		"äx\x7f\r":                   2,
		"\x03":                       -1,
		"app\x1b":                    -1,
		"\x1b[200~pea\x1b[201~\r":    1,
	} {
		l := fruits()
		done, chosen := l.Take(new(Decoder).Keys([]byte(keys)))
		assert.True(t, done, "%q", keys)
		assert.Equal(t, want, chosen, "%q", keys)
	}
	l := fruits()
	var d Decoder
	l.Take(d.Keys([]byte("\x1b["))) // a key may come in parts
	l.Take(d.Keys([]byte("B")))
	done, chosen := l.Take(d.Keys([]byte("\r")))
	assert.True(t, done)
	assert.Equal(t, 1, chosen)
	l = fruits()
	done, _ = l.Take(new(Decoder).Keys([]byte("nothing of that\r")))
	assert.False(t, done, "there is nothing to choose")
}

func TestMarkedLineStaysVisible(t *testing.T) {
	l := fruits()
	assert.Equal(t, "> 1 Apples, red\r\n  2 Pears, red\r\n4/4 ❯ ", l.Screen(40, 4))
	l.Take(new(Decoder).Keys([]byte("\x0e\x0e")))
	assert.Equal(t, "  2 Pears, red\r\n> 3 Äpfel, grün\r\n4/4 ❯ ", l.Screen(40, 4))
	assert.Equal(t, "\r\x1b[2A\x1b[J", l.Cleared(40))
	l.Take(new(Decoder).Keys([]byte("plu")))
	assert.Equal(t, "> 4 Plums\r\n1/4 ❯ plu", l.Screen(40, 4))
	for line := range strings.SplitSeq(l.Screen(10, 4), "\r\n") {
		assert.LessOrEqual(t, len([]rune(line)), 9)
	}
}

// A terminal that becomes narrower wraps the rows of the list: all of them are removed.
func TestListOnNarrowerTerminal(t *testing.T) {
	l := fruits()
	l.Screen(40, 6)
	assert.Equal(t, "\r\x1b[4A\x1b[J", l.Cleared(40))
	assert.Equal(t, "\r\x1b[7A\x1b[J", l.Cleared(10), "rows of 15, 14, 15 and 9 columns")
}
