// Package store says what the program asks of whatever keeps its values: one
// interface, [Store], for all that reads and writes, and the errors that a caller
// can do something about. It has no opinion on which change is allowed; that is
// decided by who makes it.
//
// Package sqlite beside it is the store that the program uses. Package storetest
// has the tests that any store has to pass.
package store
