package frame

import "bytes"

// maxMark is the longest text, with its blanks and line end, that counts as the beginning of a
// header in the middle of garbage.
const maxMark = 64

// match reports whether a header begins at a position.
type match uint8

const (
	noMatch    match = iota
	maybeMatch       // not decided: the bytes end too early
	isMatch
)

// matchLength looks for "Content-Length: digits line-end" around the colon at
// b[colon] and returns where it begins.
func matchLength(b []byte, colon int) (start int, m match) {
	start, ok := nameBefore(b, colon, "content-length")
	if !ok {
		return 0, noMatch
	}
	i := skipBlanks(b, colon+1)
	digits := i
	i = skipDigits(b, i)
	if i < len(b) && i == digits {
		return 0, noMatch
	}
	i = skipBlanks(b, i)
	if i < len(b) && b[i] == '\r' {
		i++
	}
	switch {
	case i-start >= maxMark || i < len(b) && b[i] != '\n':
		return 0, noMatch
	case i == len(b):
		return start, maybeMatch
	}
	return start, isMatch
}

// nameBefore reports where the header name that ends before colon begins.
func nameBefore(b []byte, colon int, lower string) (start int, ok bool) {
	end := colon
	for end > 0 && colon-end < 16 && (b[end-1] == ' ' || b[end-1] == '\t') {
		end--
	}
	start = end - len(lower)
	return start, start >= 0 && bytes.EqualFold(b[start:end], []byte(lower))
}

func skipBlanks(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t') {
		i++
	}
	return i
}

// embeddedHeader returns the position of a Content-Length in the middle of a line, in a whole
// header section that has no other: another program printed text in front of it. It returns 0 if
// there is none.
func embeddedHeader(section []byte) int {
	for i, c := range section {
		if c == ':' {
			if start, m := matchLength(section, i); m == isMatch {
				return start
			}
		}
	}
	return 0
}
