package rawjson

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// MaxDepth is how deep arrays and objects may nest before a value counts as invalid JSON. It is
// the limit of encoding/json.
const MaxDepth = 10_000

// The Skip functions check JSON (RFC 8259) and UTF-8 in one pass without allocation, unless values
// nest deeper than 64. They take JSON and an index and return the index after the part that they
// recognised, or -1. Package toolinput goes through JSON that is known to be valid, without a check.

const (
	everyByte = 0x0101010101010101
	topBits   = 0x8080808080808080
)

// special marks, by the top bit, each of the eight bytes of x that needs a check inside a
// string. These are a quote, a backslash, a control character, and the start of a non-ASCII
// rune. The lowest mark is exact; those above it may be carried over from it.
func special(x uint64) uint64 {
	quote := x ^ everyByte*'"'
	slash := x ^ everyByte*'\\'
	return (x | (x - everyByte*0x20) | (quote - everyByte) | (slash - everyByte)) & topBits
}

// SkipString takes the index after the opening quote of a string and returns the index after the
// closing one.
func SkipString(b []byte, i int) int {
	for {
		if i+8 <= len(b) {
			m := special(binary.LittleEndian.Uint64(b[i:]))
			if m == 0 {
				i += 8
				continue
			}
			i += bits.TrailingZeros64(m) >> 3
		} else if i >= len(b) {
			return -1
		}
		switch c := b[i]; {
		case c == '"':
			return i + 1
		case c == '\\':
			if i = skipEscape(b, i+1); i < 0 {
				return -1
			}
		case c >= utf8.RuneSelf:
			// Two bytes make up most of what is not ASCII in European text.
			if c >= 0xC2 && c < 0xE0 && i+1 < len(b) && b[i+1]&0xC0 == 0x80 {
				i += 2
				continue
			}
			r, n := utf8.DecodeRune(b[i:])
			if r == utf8.RuneError && n <= 1 {
				return -1
			}
			i += n
		case c >= 0x20:
			i++
		default:
			return -1
		}
	}
}

// skipEscape takes the index after a backslash.
func skipEscape(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 1
	case 'u':
		if i+5 <= len(b) && isHex(b[i+1]) && isHex(b[i+2]) && isHex(b[i+3]) && isHex(b[i+4]) {
			return i + 5
		}
	}
	return -1
}

func isHex(c byte) bool {
	return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f'
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// SkipDigits returns the index after the decimal digits at i.
func SkipDigits(b []byte, i int) int {
	for i < len(b) && isDigit(b[i]) {
		i++
	}
	return i
}

func skipNumber(b []byte, i int) int {
	if i < len(b) && b[i] == '-' {
		i++
	}
	switch {
	case i >= len(b) || !isDigit(b[i]):
		return -1
	case b[i] == '0':
		i++
	default:
		i = SkipDigits(b, i+1)
	}
	if i < len(b) && b[i] == '.' {
		end := SkipDigits(b, i+1)
		if end == i+1 {
			return -1
		}
		i = end
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		end := SkipDigits(b, i)
		if end == i {
			return -1
		}
		i = end
	}
	return i
}

// SkipSpace returns the index after the white space at i.
func SkipSpace(b []byte, i int) int {
	for i < len(b) && b[i] <= ' ' && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

func skipLiteral(b []byte, i int, word string) int {
	if len(b)-i < len(word) || string(b[i:i+len(word)]) != word {
		return -1
	}
	return i + len(word)
}

// skipName takes the index of an object member's opening quote and returns
// the index of its value.
func skipName(b []byte, i int) int {
	if i >= len(b) || b[i] != '"' {
		return -1
	}
	if i = SkipString(b, i+1); i < 0 {
		return -1
	}
	i = SkipSpace(b, i)
	if i >= len(b) || b[i] != ':' {
		return -1
	}
	return SkipSpace(b, i+1)
}

// SkipValue takes the index of a value's first byte; outer is how many
// containers are open around it.
func SkipValue(b []byte, i, outer int) int {
	// One bit for each open container, 1 for an object; the innermost is the
	// lowest. Every 64 levels the word moves to outerKinds.
	var (
		kinds      uint64
		outerKinds []uint64
		depth      int
	)
	for {
		if i >= len(b) {
			return -1
		}
		switch c := b[i]; c {
		case '"':
			i = SkipString(b, i+1)
		case '{', '[':
			if outer+depth >= MaxDepth {
				return -1
			}
			i = SkipSpace(b, i+1)
			if i < len(b) && b[i] == c+2 { // '}' is '{'+2, ']' is '['+2
				i++
				break
			}
			if depth&63 == 0 && depth > 0 {
				outerKinds = append(outerKinds, kinds)
			}
			depth++
			if c == '[' {
				kinds <<= 1
				continue
			}
			kinds = kinds<<1 | 1
			if i = skipName(b, i); i < 0 {
				return -1
			}
			continue
		case 't':
			i = skipLiteral(b, i, "true")
		case 'f':
			i = skipLiteral(b, i, "false")
		case 'n':
			i = skipLiteral(b, i, "null")
		default:
			i = skipNumber(b, i)
		}
		if i < 0 {
			return -1
		}
		// A value has ended: close containers until another one begins.
		for {
			if depth == 0 {
				return i
			}
			i = SkipSpace(b, i)
			if i >= len(b) {
				return -1
			}
			inObject := kinds&1 == 1
			c := b[i]
			i++
			if c == ',' {
				i = SkipSpace(b, i)
				if inObject {
					if i = skipName(b, i); i < 0 {
						return -1
					}
				}
				break
			}
			if inObject && c != '}' || !inObject && c != ']' {
				return -1
			}
			depth--
			kinds >>= 1
			if depth&63 == 0 && depth > 0 {
				kinds = outerKinds[len(outerKinds)-1]
				outerKinds = outerKinds[:len(outerKinds)-1]
			}
		}
	}
}
