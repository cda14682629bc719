// Package intake receives the reports of agents and stores them.
//
// An executor reports with the token of its run (reports.go). The [Run] puts reports into the order
// of their sequence numbers (order.go) and redacts the agent's secrets (content.go). The queue
// passes all waiting reports to the store's writer in one transaction (queue.go). If too many wait,
// the throttle pauses executors (throttle.go). A run with a refused report has not completed,
// whatever its executor says (reports.go).
package intake
