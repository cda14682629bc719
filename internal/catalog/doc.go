// Package catalog is the contract between the hub and an executor: every message as a Go type, and
// the two roles as interfaces. Package catalogrpc carries it over JSON-RPC; docs/executors.md lists
// the methods.
//
// An [Executor] runs prompts and terminals and has no database. A [Daemon] keeps everything and
// knows no agents. "Ours" marks an addition to the executor catalog: other executors omit it,
// other daemons ignore it.
package catalog
