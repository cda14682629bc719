// Package executor is the hub's child process that runs agents and terminals. It implements
// catalog.Executor and calls catalog.Daemon; it has no database and keeps no keys.
//
// It gives each prompt to one of two drivers. executor/acp speaks the Agent Client Protocol with
// an agent that lives across the prompts of a session; command.go starts a program for each
// prompt. Reports go through executor/task, in order. Users' terminals are in terminal.go,
// commands of the configuration in command.go. executor/process owns all processes,
// executor/workspace the files that an agent may access.
//
// The Executor owns tasks, acp.Driver its agents, Terminals the terminals, and process.Runner the
// processes with their goroutines. Close ends them in that order and returns when nothing is left.
//
// An agent's fault (garbage, long lines, silence, a crash) ends its own prompt at most. The
// executor does not read an agent while its reports wait for the hub, so no report is dropped.
package executor
