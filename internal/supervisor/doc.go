// Package supervisor starts, shares, watches and ends executors: children of this process that
// are connected to it by a socketpair and speak the catalog in both directions.
//
// A [Supervisor] owns the executors and all their goroutines. Each process has one goroutine
// that starts it and stays until it has gone (process.run), and Close waits for all of them. The
// package knows neither the hub, which requests leases of executors, nor the content of prompts.
//
// Agents are processes of an executor: see package executor/acp.
package supervisor
