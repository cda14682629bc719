// Package catalog is the contract between the hub and an executor: every
// message that flows between the two (seed 002, "IPC Message Catalog"), as Go
// types, and the two roles as interfaces.
//
// An [Executor] runs prompts and terminals and knows nothing of the database;
// a [Daemon] keeps everything and knows nothing of agents. What stands here
// and not in the seed is marked "ours": an executor that somebody else wrote
// to the catalog leaves it out, and a daemon that somebody else wrote ignores
// it. How the messages travel is the business of package catalogrpc.
package catalog
