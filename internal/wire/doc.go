// Package wire declares what a client in Go, the command line, reads and writes of the hub's
// methods and events (docs/protocol.md), as plain structs. It is the only place
// that knows how they are spelled; there is no more in a struct than is used.
package wire
