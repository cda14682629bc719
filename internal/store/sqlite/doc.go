// Package sqlite keeps threads, runs, approvals and events in SQLite. It has rows and queries, and no opinion on
// which change of a row is allowed.
//
// There is one writer goroutine. What is asked of it while it is busy is
// committed together afterwards (group commit); what waits for its commit with
// [Store.Write] survives a power cut, what is queued with [Store.Enqueue]
// survives any kill of the process. Events get their numbers in the
// transaction that they are part of, so the log has no gaps, and they are
// announced after its commit, in order.
//
// Reads go beside the writer on connections of their own.
package sqlite
