// Package supervisor starts, shares, watches and ends executors: children of this process that are joined to it by a
// socketpair and speak the catalog in both directions.
package supervisor
