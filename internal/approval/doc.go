// Package approval is the inbox of approvals: agents and clients ask, people answer, and the inbox
// delivers the answers.
//
// A question is a stored row and independent of connections. The first answer wins, even after the
// asking agent is gone. The answer then waits until the question is asked again.
//
// The states of an answer that lets an agent continue:
//
//	asked     AwaitedBy is the run that waits
//	answered  the row has the answer; from here on the agent may have it
//	taken     its executor has seen the agent continue: AwaitedBy is 0, Taken is set
//
// If the run ends before "taken", it is unknown whether the agent acted on the answer. The answer
// is final, so another question asks the person again and says why.
//
// Read ask.go, policy.go, question.go and decide.go in this order: an agent asks and waits, a mode or
// a rule decides, a question is stored, a person decides. call.go and rules.go say what a tool call
// is and which rules match it. settle.go handles what a run leaves behind. How runs continue and end
// is behind [Runs].
package approval
