// Package hub runs the life cycle of runs: launch, state transitions, scheduling, execution, and
// recovery after a crash. One function, transition, makes every state change. The hub also
// constructs the owners of all other state and hands them out: the event log, the approval inbox,
// terminals, keys; see docs/architecture.md. It does not depend on connections.
package hub
