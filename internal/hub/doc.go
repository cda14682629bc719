// Package hub is the life of runs: launching, the one function that changes their
// state, which of them starts next, how one is executed, and what becomes of those
// that a dead process left behind. It puts the owners of all other state together
// (see docs/architecture.md) and hands them out: the log, the inbox of questions,
// terminals, keys. It knows nothing of connections.
package hub
