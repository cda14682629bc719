// Package intake takes in what agents report while they work, until the store has
// it.
//
// A report comes from an executor with the token of its run (reports.go). The
// run's [Run] brings its reports into the order of their sequence numbers
// (order.go) and takes keys out of them that the agent was given (redactor.go). Then
// they wait in the queue for the store's writer, which takes all that wait in one
// transaction (queue.go). When too many wait, executors are told to pause
// (throttle.go). A run of which a report was refused has not completed, whatever
// its executor says (refusals.go).
package intake
