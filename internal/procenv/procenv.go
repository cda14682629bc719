// Package procenv finds the processes of this machine by a variable in their environment.
//
// Process IDs are reused, and a process can leave its group. Its environment stays as it
// was when the process started, and its children inherit it. Duet therefore marks each
// agent with a variable and finds the agent's processes by it.
//
// Only Linux shows the environment of other processes. Elsewhere there is nothing to find.
package procenv

import "time"

// Find returns the IDs of the processes with a matching variable, in ascending order.
// match receives NAME=value. Find leaves out process 1, processes whose environment the
// user may not read, and those that end while it looks.
func Find(match func(variable string) bool) (pids []int) {
	pids, _ = find(match)
	return pids
}

// Kill kills the processes with a matching variable and waits until none is left. A
// process can start another one while Kill looks, and a look can miss a process that
// begins another program just then. So once Kill has found some, it looks until it has
// found none three times in a row. It gives up after 100 looks, 2 ms apart: the kernel may
// not let a process go. A process can hide its environment for good, so that alone keeps
// Kill for 20 looks.
func Kill(match func(variable string) bool) {
	const looks, pause, enough, mostHidden = 100, 2 * time.Millisecond, 3, 20
	hiding := 0
	quiet := enough - 1 // where the first look finds nothing there is nothing to do
	for range looks {
		found, hidden := find(match)
		if hidden {
			hiding++
		}
		if len(found) > 0 || hidden && hiding <= mostHidden {
			quiet = 0
		} else {
			quiet++
		}
		if quiet == enough {
			return
		}
		for _, pid := range found {
			kill(pid)
		}
		time.Sleep(pause)
	}
}
