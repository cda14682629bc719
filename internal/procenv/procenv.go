// Package procenv finds the processes of this machine by a variable in their environment.
//
// Process IDs are reused, and a process can leave its group. Its environment stays as it
// was when the process started, and its children inherit it. Duet therefore marks each
// agent with a variable and finds the agent's processes by it.
//
// Only Linux shows the environment of other processes. Elsewhere there is nothing to find.
package procenv

import "time"

// Kill kills the processes with a matching variable and waits until none is left. A
// process can start another one while Kill looks, so Kill looks again until it finds none.
// It gives up after 100 rounds, 2 ms apart: the kernel may not let a process go.
func Kill(match func(variable string) bool) {
	const rounds, pause = 100, 2 * time.Millisecond
	for range rounds {
		found := Find(match)
		if len(found) == 0 {
			return
		}
		for _, pid := range found {
			kill(pid)
		}
		time.Sleep(pause)
	}
}
