// Package wire declares what clients of the hub in Go read and write of its methods and
// events (docs/protocol.md), as plain structs: the command line, and the agent of the
// Agent Client Protocol. It is the only place that knows how they are spelled; there
// is no more in a struct than is used.
package wire
