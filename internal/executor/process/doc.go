// Package process starts and owns the programs of an executor: agents, plain commands and
// terminals. Each leads a process group. When a program has ended, its group has ended too, and on
// Linux every process that carries its mark and left the group.
//
// A [Runner] owns all processes of an executor, the thread that starts them
// and the goroutines that wait for them. Close returns when none is left.
package process
