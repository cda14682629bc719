// Package eventlog brings what happened to whoever wants to hear of it. The log
// itself is kept by the store; its end is here in memory too.
//
//   - log.go takes what was committed, and publishes what is not kept.
//   - subscription.go brings events to one subscriber, at its own pace.
//   - deltas.go merges the pieces of a message that is being written.
//   - replay.go goes through what is in the log already.
//   - watch.go calls a function of the program with each event.
//   - page.go reads the log of the store, around what of it is damaged.
//
// Nothing here is done by the store's writer but to add to the memory.
package eventlog
