// Package catalog is the contract between the hub and an executor, the executor
// catalog: every message that flows between the two, as Go types, and the two
// roles as interfaces.
//
// An [Executor] runs prompts and terminals and knows nothing of the database;
// a [Daemon] keeps everything and knows nothing of agents. What is marked
// "ours" is an addition to the catalog: an executor that somebody else wrote to
// it leaves that out, and a daemon that somebody else wrote ignores it. How the
// messages travel is the business of package catalogrpc; docs/protocol.md has
// the methods that a client may call too.
package catalog
