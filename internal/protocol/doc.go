// Package protocol has what clients send and get (docs/protocol.md): the parameters and results
// of each method, one file a family; the members of events (events.go, values.go); and
// the notifications about tasks for AIWG's clients (tasks.go). Where clients see a value as
// it is, its type is in package domain. Package handlers has the methods.
package protocol
