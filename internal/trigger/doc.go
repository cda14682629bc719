// Package trigger runs configured actions for events: file changes, times, ends of runs, and
// questions.
//
// A trigger acts at most once for an event, even after a crash: the transaction that begins the
// session stores a row with trigger and event as its key. See docs/automation.md for missed events
// after a start.
package trigger
