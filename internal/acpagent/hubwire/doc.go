// Package hubwire is what the agent of the Agent Client Protocol reads and writes of
// the hub's methods and events (docs/protocol.md), as plain structs: no more than it
// uses.
package hubwire
