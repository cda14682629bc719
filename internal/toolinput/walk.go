package toolinput

import "strings"

// These functions go through JSON that is known to be valid (RFC 8259), by index, without decoding
// or copying it. For anything else they panic, or return wrong indices.
//
// A peer's message may be invalid: package frame has its own scanner for that, which also checks
// UTF-8, eight bytes at a time. Here text that is not UTF-8 is accepted, because the caller reports
// how programs read it. A common scanner would have to check less, or twice.

// jsonText is JSON as a string or as bytes.
type jsonText interface{ ~string | ~[]byte }

// afterSpace returns the index after the white space at i, which may be empty.
func afterSpace[T jsonText](s T, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\n' || s[i] == '\r' || s[i] == '\t') {
		i++
	}
	return i
}

// afterString returns the index after the string whose opening quote is at i.
func afterString[T jsonText](s T, i int) int {
	for i++; s[i] != '"'; i++ {
		if s[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// afterScalar returns the index after the number, true, false or null at i.
func afterScalar[T jsonText](s T, i int) int {
	for i < len(s) && strings.IndexByte(" \n\r\t,]}", s[i]) < 0 {
		i++
	}
	return i
}

// afterValue returns the index after the value at i.
func afterValue[T jsonText](s T, i int) int {
	depth := 0
	for {
		switch s[i] {
		case '"':
			i = afterString(s, i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		case ' ', '\n', '\r', '\t', ',', ':':
			i++
			continue
		default:
			i = afterScalar(s, i)
		}
		if depth == 0 {
			return i
		}
	}
}

// eachMember calls f with each member of the object at i: its name as spelt, with its quotes, and
// the index of its value. f returns the index after the value. The result is the index after the
// object.
func eachMember[T jsonText](s T, i int, f func(quoted T, value int) int) int {
	i = afterSpace(s, i+1)
	for s[i] != '}' {
		end := afterString(s, i)
		quoted := s[i:end]
		i = afterSpace(s, end)            // the colon
		i = f(quoted, afterSpace(s, i+1)) // the value
		if i = afterSpace(s, i); s[i] == ',' {
			i = afterSpace(s, i+1)
		}
	}
	return i + 1
}

// eachElement is [eachMember] for the array at i.
func eachElement[T jsonText](s T, i int, f func(value int) int) int {
	i = afterSpace(s, i+1)
	for s[i] != ']' {
		i = f(i)
		if i = afterSpace(s, i); s[i] == ',' {
			i = afterSpace(s, i+1)
		}
	}
	return i + 1
}
