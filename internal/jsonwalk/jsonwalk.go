// Package jsonwalk goes through JSON that is known to be valid (RFC 8259), by
// index, without decoding or copying it. It panics, or goes astray, on anything
// else.
//
// What a peer sends is not known to be valid: package frame has a scanner of its
// own, which checks JSON and UTF-8 in the same pass, eight bytes at a time, and is
// what a message's time goes into. Here text passes that is no UTF-8, since
// package toolinput has to say what programs make of it; a scanner for both would
// have to check less, or twice.
package jsonwalk

import "strings"

// Text is JSON, as what it is at hand.
type Text interface{ ~string | ~[]byte }

// Space is the index after the white space at i, which may be none.
func Space[T Text](s T, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\n' || s[i] == '\r' || s[i] == '\t') {
		i++
	}
	return i
}

// String is the index after the string whose opening quote is at i.
func String[T Text](s T, i int) int {
	for i++; s[i] != '"'; i++ {
		if s[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// Scalar is the index after the number, true, false or null at i.
func Scalar[T Text](s T, i int) int {
	for i < len(s) && strings.IndexByte(" \n\r\t,]}", s[i]) < 0 {
		i++
	}
	return i
}

// Value is the index after the value at i.
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

// Members calls f with each member of the object at i: its name as it stands
// there, with its quotes, and the index of its value. f returns the index after
// the value. The result is the index after the object.
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
