// Package hubprocess connects a process to the hub of its project, which is another process. It
// holds the settings, finds the socket, and starts a daemon if none runs and one is wanted. It
// is never the hub itself; package host is.
package hubprocess
