// Package toolinput parses the input of tool calls. It makes sure that a person sees and allows
// exactly the input that the tool receives.
//
// JSON does not define the meaning of an object with a repeated name (RFC 8259, section 4): some
// programs take the first member, some the last, some compare names without case, as
// encoding/json does. This package compares names as spelt. It marks an input that programs may
// read differently as ambiguous, with all of its readings. Numbers keep their digits and texts
// their halves of surrogate pairs: different spellings are never treated as the same.
package toolinput
