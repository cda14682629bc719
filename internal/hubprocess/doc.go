// Package hubprocess is how a process comes to the hub of its project, which is another
// process: with which settings, over which socket, and, where none runs and one is wanted,
// by a daemon that it starts. It is never the hub itself; package host is.
package hubprocess
