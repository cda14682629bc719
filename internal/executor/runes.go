package executor

import (
	"strings"
	"unicode/utf8"
)

// A runeKeeper makes text of bytes that come in pieces: a character that is
// split between two pieces stays whole, and what is no UTF-8 becomes U+FFFD.
type runeKeeper struct{ kept []byte }

func (k *runeKeeper) take(p []byte) string {
	b := append(k.kept, p...)
	whole := len(b) - partialRune(b)
	text := strings.ToValidUTF8(string(b[:whole]), "\uFFFD")
	k.kept = append(k.kept[:0], b[whole:]...)
	return text
}

// rest is what is left at the end.
func (k *runeKeeper) rest() string {
	text := strings.ToValidUTF8(string(k.kept), "\uFFFD")
	k.kept = nil
	return text
}

// partialRune is how many bytes at the end of b begin a character that is not
// whole.
func partialRune(b []byte) int {
	for n := 1; n <= min(len(b), utf8.UTFMax-1); n++ {
		if tail := b[len(b)-n:]; utf8.RuneStart(tail[0]) {
			if tail[0] >= utf8.RuneSelf && !utf8.FullRune(tail) {
				return n
			}
			return 0
		}
	}
	return 0
}
