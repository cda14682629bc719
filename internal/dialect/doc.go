// Package dialect spells what happened for those who are told of it: which name
// an event has and which members, for clients of HumanLayer and for editors.
// What is spelled is decided here alone; a change of a name or a member is a
// change of docs/protocol.md.
package dialect
