//go:build !linux

package procenv

// Find returns nil: this system does not show the environment of other processes.
func Find(func(variable string) bool) (pids []int) { return nil }

func kill(int) {}
