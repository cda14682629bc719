//go:build !linux

package procenv

func processes() []int { return nil }

// look finds nothing: this system does not show the environment of other processes.
func look([]int, func(variable string) bool) sight { return sight{} }

func kill(int) {}
