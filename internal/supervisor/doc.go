// Package supervisor starts, shares, watches and ends executors (DESIGN
// section 5, "Executor"): children of this process that are joined to it by a
// socketpair and speak the catalog in both directions.
package supervisor
