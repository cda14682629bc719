// Package hub is the domain: threads, runs, approvals and events, and the
// rules by which they change. It is the only place where
// state changes, and knows nothing of how a request came in or how an
// executor is reached.
//
//   - transition.go has the one function that changes the state of a run.
//   - launch.go, schedule.go and execute.go take a prompt to its agent.
//   - report.go and fold.go turn what an agent does into events and items.
//   - permission.go, policy.go and decide.go ask, answer and remember.
//   - events.go hands what was committed to package eventlog, which tells whoever wants to hear of it.
//   - recover.go picks up what a dead process left behind.
//
// All changes are made by the store's writer goroutine, inside a transaction:
// what is in memory besides (agents at work, questions that wait) follows its
// commits.
package hub
