// Package jsonwalk walks through JSON that is known to be valid (RFC 8259), by index, without
// decoding or copying it. For anything else it panics, or returns wrong indices.
//
// A peer's message may be invalid: package frame has its own scanner for that. It checks JSON
// and UTF-8 in the same pass, eight bytes at a time, because scanning takes most of a message's
// time. jsonwalk accepts text that is not UTF-8, because package toolinput must report how
// programs read it. A common scanner would have to check less, or twice.
package jsonwalk

import "strings"

// Text is JSON as a string or as bytes.
type Text interface{ ~string | ~[]byte }

// Space returns the index after the white space at i, which may be empty.
func Space[T Text](s T, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\n' || s[i] == '\r' || s[i] == '\t') {
		i++
	}
	return i
}

// String returns the index after the string whose opening quote is at i.
func String[T Text](s T, i int) int {
	for i++; s[i] != '"'; i++ {
		if s[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// Scalar returns the index after the number, true, false or null at i.
func Scalar[T Text](s T, i int) int {
	for i < len(s) && strings.IndexByte(" \n\r\t,]}", s[i]) < 0 {
		i++
	}
	return i
}

// Value returns the index after the value at i.
func Value[T Text](s T, i int) int {
	depth := 0
	for {
		switch s[i] {
		case '"':
			i = String(s, i)
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
			i = Scalar(s, i)
		}
		if depth == 0 {
			return i
		}
	}
}

// Members calls f with each member of the object at i: its name as spelt, with its quotes, and
// the index of its value. f returns the index after the value. The result is the index after the
// object.
func Members[T Text](s T, i int, f func(quoted T, value int) int) int {
	i = Space(s, i+1)
	for s[i] != '}' {
		end := String(s, i)
		quoted := s[i:end]
		i = Space(s, end)            // the colon
		i = f(quoted, Space(s, i+1)) // the value
		if i = Space(s, i); s[i] == ',' {
			i = Space(s, i+1)
		}
	}
	return i + 1
}

// Elements is [Members] for the array at i.
func Elements[T Text](s T, i int, f func(value int) int) int {
	i = Space(s, i+1)
	for s[i] != ']' {
		i = f(i)
		if i = Space(s, i); s[i] == ',' {
			i = Space(s, i+1)
		}
	}
	return i + 1
}
