// Package protocol has the events and results of the hub as clients see them
// (docs/protocol.md): the names and members of events for HumanLayer's clients and for editors
// (client.go, data.go, types.go), the notifications about tasks for AIWG's clients (tasks.go),
// and the words for states and errors in each family of methods (family.go). Package handlers
// decides which client gets what, and when.
package protocol
