// Package executor is the child process of the hub that runs agents and
// terminals. It implements catalog.Executor and talks to catalog.Daemon; it has
// no database and keeps no keys.
//
// This package takes the hub's calls, and gives each prompt to one of two
// drivers: executor/acp speaks the Agent Client Protocol with an agent that
// lives across the prompts of a session, and executor/command runs any program
// once a prompt. What they report goes through executor/task, in order.
// Terminals of people are executor/terminal, commands of the configuration
// executor/usercommand; all processes belong to
// executor/process; the files that an agent may have are executor/workspace.
//
// Who owns what: the Executor owns tasks, and ends them; acp.Driver owns agents
// and terminal.Set terminals, each with the goroutines that serve them; a
// process, and the goroutines that read and wait for it, belongs to the
// process.Runner, which all of them share. Close ends them in that order, and
// returns when nothing of theirs is left.
//
// Whatever an agent does (garbage, lines of any length, silence, a crash) ends
// its own prompt at most. Reports wait for the hub, and while they wait the
// agent is not read, so nothing is ever dropped for being too fast.
package executor
