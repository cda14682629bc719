// Package wire has the calls that clients of the hub in Go make: the shell and Duet as an agent.
// Types are those of packages protocol and domain, where a client reads what the hub writes; what
// is left here joins several of them, such as the data of all events.
package wire
