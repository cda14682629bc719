// Package dialect spells what happened for those who are told of it: which name
// an event has and which members, for clients of HumanLayer and for editors
// (client.go); what AIWG's clients are told of tasks (tasks.go); what a state and
// an error are called in each family of methods (states.go, family.go). Who is
// told, and when, is decided by package handlers, which also has the results of
// methods, each beside its method. What is spelled is decided here alone; a
// change of a name or a member is a change of docs/protocol.md.
package dialect
