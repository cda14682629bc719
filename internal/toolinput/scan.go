package toolinput

import (
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// members calls f with each member of the object at i: its name, decoded, and the index of its
// value. f returns the index after the value.
func members(s string, i int, f func(name string, value int) int) int {
	return eachMember(s, i, func(quoted string, value int) int {
		name, _ := decodeString(quoted)
		return f(name, value)
	})
}

// decodeString decodes a quoted string. A half of a surrogate pair, which is invalid in UTF-8,
// becomes the three bytes of its UTF-8 pattern, so that two halves stay two. whole reports that
// there is none, and that the rest is UTF-8.
func decodeString(quoted string) (text string, whole bool) {
	body := quoted[1 : len(quoted)-1]
	whole = utf8.ValidString(body)
	if strings.IndexByte(body, '\\') < 0 {
		return body, whole
	}
	b := make([]byte, 0, len(body))
	for i := 0; i < len(body); {
		if body[i] != '\\' {
			b = append(b, body[i])
			i++
			continue
		}
		if body[i+1] != 'u' {
			b = append(b, unescape(body[i+1]))
			i += 2
			continue
		}
		r := hex4(body[i+2:])
		i += 6
		if utf16.IsSurrogate(r) {
			if i+6 <= len(body) && body[i] == '\\' && body[i+1] == 'u' {
				if pair := utf16.DecodeRune(r, hex4(body[i+2:])); pair != unicode.ReplacementChar {
					b = utf8.AppendRune(b, pair)
					i += 6
					continue
				}
			}
			whole = false
			b = append(b, 0xE0|byte(r>>12), 0x80|byte(r>>6)&0x3F, 0x80|byte(r)&0x3F)
			continue
		}
		b = utf8.AppendRune(b, r)
	}
	return string(b), whole
}

func unescape(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c
}

func hex4(digits string) (r rune) {
	for _, c := range []byte(digits[:4]) {
		switch {
		case c >= 'a':
			c -= 'a' - 10
		case c >= 'A':
			c -= 'A' - 10
		default:
			c -= '0'
		}
		r = r<<4 | rune(c)
	}
	return r
}

// folded returns the same text for all names that some program treats as equal. They differ in
// case, also by the rules of encoding/json, for which ſ is an s and the sign of Kelvin a k, and
// of Java, for which İ and ı are an i.
func folded(name string) string { return strings.Map(foldRune, name) }

func foldRune(r rune) rune {
	if r < utf8.RuneSelf { // whose first folding is the capital letter
		if 'a' <= r && r <= 'z' {
			r -= 'a' - 'A'
		}
		return r
	}
	r = unicode.ToUpper(unicode.ToLower(r))
	least := r
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		least = min(least, next)
	}
	return least
}

// valid reports whether raw is one JSON value, nested no deeper than encoding/json allows.
func valid(raw []byte) bool { return json.Valid(raw) }
