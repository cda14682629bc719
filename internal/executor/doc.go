// Package executor is the child process of the hub that runs agents and
// terminals. It implements catalog.Executor and
// talks to catalog.Daemon; it has no database and keeps no keys.
//
// A prompt runs through one of two drivers: "acp" speaks the Agent Client
// Protocol with an agent that lives across the prompts of a session, and
// "command" runs any program once a prompt. Whatever such a program does
// (garbage, lines of any length, silence, a crash) ends its own prompt at
// most.
//
// Reports wait for the hub, and while they wait the agent is not read, so
// nothing is ever dropped for being too fast.
package executor
