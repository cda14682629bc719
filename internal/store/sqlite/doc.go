// Package sqlite stores conversations, runs, approvals and the log in an SQLite database. It does
// not validate changes: package hub decides which change of a run is allowed.
//
// A value's columns are named by the tags of its fields in package domain (columns.go).
// schema.sql is the schema.
//
// One goroutine writes. Changes that arrive while it is busy are committed together. A change
// made with [Store.Write] survives a power cut when Write returns; a change queued with
// [Store.Enqueue] survives any kill of the process. An event gets its number in the
// transaction that appends it, so the log has no gaps, and is announced after the commit, in
// order. Readers have connections of their own.
package sqlite
