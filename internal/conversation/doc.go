// Package conversation writes down what is said and done in runs: the message that
// an agent is writing, tool calls, and notes such as a plan or an answer. Each is
// kept as an item of the conversation and announced as an event of the log, in one
// change of the store.
//
// Where it is read again is not here.
package conversation
