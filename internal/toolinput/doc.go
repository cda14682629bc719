// Package toolinput reads what an agent calls a tool with, so that nobody can
// be shown, or allow, another input than the one that the tool takes.
//
// JSON leaves open what an object means in which a name stands twice (RFC 8259,
// section 4): some programs take the first member, some the last, some compare
// names without case, as encoding/json does. Here names count as they are
// spelled, and an input that programs may read differently is known as such,
// with all of its readings. Numbers keep their digits and texts their halves of
// surrogate pairs: what is spelled differently is never taken for the same.
package toolinput
