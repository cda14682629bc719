// Package trigger does what the configuration wants when something happens: files are
// changed, a time has come, a run has ended, somebody is asked.
//
// A trigger does something for an event once, whenever the process dies: what it does is
// a row with the trigger and the event as its key, in the transaction that begins the
// session. See docs/automation.md for what is caught up with after a start.
package trigger
