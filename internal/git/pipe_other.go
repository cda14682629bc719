//go:build !linux

package git

// pipeOf knows nothing on this system: a git process that waits for a named pipe ends at its limit.
func pipeOf(int) (path string, waits bool) { return "", false }
