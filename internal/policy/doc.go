// Package policy is what modes, rules and lists say of a tool call before
// anybody is asked: that it may run, that it may not, or nothing.
//
// It keeps nothing and asks nobody. What is allowed is looked up at each call,
// so that a rule that was changed holds for the next one.
//
// A rule is held against what an agent says that a tool is and gets, never
// against a text for people. Where a tool's input can be read in more than one
// way (package toolinput), nothing allows the call, and a deny rule that fits
// any of the readings denies it.
package policy
