// Package approval is the inbox of questions that agents and clients ask people:
// asking, answering, and what becomes of an answer.
//
// A question belongs to nobody's connection: it is a row. Whoever answers first
// wins, also after the agent that asked has gone; then the answer is carried until
// the question is asked again.
//
// The way of an answer that lets an agent go on:
//
//	asked     AwaitedBy is the run that waits
//	answered  the row says what; from here on the agent may have the answer
//	taken     its executor has seen the agent go on from it: AwaitedBy is 0, Taken is set
//
// Where the run ends before that, nobody knows whether the agent did what it
// was allowed to do. The answer stays what it was, since an answer is given once;
// another question asks the person again and says why.
//
// What policy has to say without a person is package policy. How runs go on and
// end is not known here: see [Runs].
package approval
