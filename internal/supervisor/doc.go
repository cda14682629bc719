// Package supervisor starts, shares, watches and ends executors: children of
// this process that are joined to it by a socketpair and speak the catalog in
// both directions.
//
// A [Supervisor] owns the executors and every goroutine that has to do with
// one: each process has one that starts it and stays until it has gone
// (process.run), and Close waits for all of them. It knows neither the hub,
// which asks for leases of executors, nor what the prompts are about.
package supervisor
