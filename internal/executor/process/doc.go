// Package process starts the programs that an executor runs, and owns them:
// agents, plain commands and terminals. Each is the leader of a process group
// of its own, and when it has ended so has its group, and on Linux whoever
// carries its mark and left the group.
//
// A [Runner] owns all processes of an executor, the thread that starts them
// and the goroutines that wait for them: Close returns when none is left.
package process
