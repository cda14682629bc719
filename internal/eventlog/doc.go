// Package eventlog delivers events to subscribers and watchers. The store keeps the log; its most
// recent part is in memory too.
//
//   - log.go takes committed events, and publishes events that are not stored.
//   - subscribe.go delivers events to one subscriber, at its own pace.
//   - deltas.go merges the pieces of an unfinished message.
//   - delivery.go replays the stored log, and reads around damage.
//   - watch.go calls a function of the program with each event.
//
// The store's writer only adds events to the memory.
package eventlog
