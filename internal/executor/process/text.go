package process

import (
	"strings"
	"unicode/utf8"
)

// A TextDecoder makes text of bytes that come in pieces: a character that is
// split between two pieces stays whole, and what is no UTF-8 becomes U+FFFD.
// The zero value is ready.
type TextDecoder struct{ pending []byte }

// Decode is the text of a piece and of what was pending, without a character
// at its end that is not whole.
func (d *TextDecoder) Decode(p []byte) string {
	b := append(d.pending, p...)
	whole := len(b) - PartialRune(b)
	text := strings.ToValidUTF8(string(b[:whole]), "\uFFFD")
	d.pending = append(d.pending[:0], b[whole:]...)
	return text
}

// Flush is what is left at the end.
func (d *TextDecoder) Flush() string {
	text := strings.ToValidUTF8(string(d.pending), "\uFFFD")
	d.pending = nil
	return text
}

// PartialRune is how many bytes at the end of b begin a character that is not
// whole.
func PartialRune(b []byte) int {
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
