// Package conversation writes the messages and tool calls of runs: the agent's current message,
// tool calls, and notes such as a plan or an answer. One store transaction stores each as an item
// of the conversation and announces it as an event of the log.
//
// Package query reads conversations.
package conversation
