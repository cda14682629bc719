package rawjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Encode is json.Marshal without HTML escapes. It replaces two things that raw JSON may contain
// but no peer may receive with U+FFFD. These are bytes that are not UTF-8, and escapes of lone
// surrogates, for which jsonrpc.el drops a message. The result has no line end.
func Encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	body := bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
	if !utf8.Valid(body) { // within strings: the code above checked the rest
		body = bytes.ToValidUTF8(body, []byte("\ufffd"))
	}
	return mendSurrogates(body), nil
}

// mendSurrogates replaces each escape \ud800 … \udfff in valid JSON that is not half of a pair
// by \ufffd, in place.
func mendSurrogates(b []byte) []byte {
	for i := 0; i < len(b); {
		backslash := bytes.IndexByte(b[i:], '\\')
		if backslash < 0 {
			break
		}
		i += backslash
		switch {
		case surrogate(b, i) == 0:
			i += 2 // also over an escaped backslash
		case surrogate(b, i) == 'h' && surrogate(b, i+6) == 'l':
			i += 12
		default:
			copy(b[i:], `\ufffd`)
			i += 6
		}
	}
	return b
}

// surrogate reports whether b[i:] begins with the escape of a high ('h') or a low ('l')
// surrogate, or neither (0).
func surrogate(b []byte, i int) byte {
	if i+6 > len(b) || b[i] != '\\' || b[i+1] != 'u' || b[i+2]|0x20 != 'd' {
		return 0
	}
	switch c := b[i+3] | 0x20; {
	case c == '8' || c == '9' || c == 'a' || c == 'b':
		return 'h'
	case c >= 'c' && c <= 'f':
		return 'l'
	}
	return 0
}

// Inert escapes the control characters that JSON allows unescaped and terminals interpret (DEL
// and C1). They occur only in strings, so the value stays the same.
func Inert(raw []byte) string {
	var b strings.Builder
	for _, r := range string(raw) {
		if r >= 0x7f && r < 0xa0 {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
