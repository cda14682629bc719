// Package store defines the interface to persistent storage: [Store] for all reads and writes, and
// the errors that callers can handle. Callers decide which changes are allowed.
package store
