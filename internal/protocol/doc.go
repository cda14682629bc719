// Package protocol has the messages of the client protocol (docs/protocol.md): the parameters and
// results of each method, one file per family; the data of events (events.go, values.go); and the
// task notifications of AIWG's clients (tasks.go). Values that clients see unchanged have their
// types in package domain. Package handlers has the methods.
package protocol
