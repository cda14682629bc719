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
	return look(processes(), match).found
}

// Kill kills the processes with a matching variable and waits until none is left. A process can
// start another one during a scan. So after a scan that has found some, Kill scans until it has
// found none three times in a row. It gives up after 100 scans, 2 ms apart: the kernel may not
// let a process go.
//
// A process that begins another program hides its environment for that moment. Kill waits until
// it has one. If it ended meanwhile Kill scans all processes again, because it may have started
// another one. A process can hide its environment permanently, so Kill waits at most 20 times.
func Kill(match func(variable string) bool) {
	const looks, pause, enough, waits = 100, 2 * time.Millisecond, 3, 20
	waited := 0
	quiet := enough - 1 // if the first scan finds nothing Kill is done
	for range looks {
		seen := look(processes(), match)
		seen.ended = false // those had an environment until then
		for len(seen.found) == 0 && len(seen.hidden) > 0 && !seen.ended && waited < waits {
			waited++
			time.Sleep(pause)
			seen = look(seen.hidden, match)
		}
		if len(seen.found) > 0 {
			quiet = 0
		} else if !seen.ended {
			quiet++
		}
		if quiet == enough {
			return
		}
		for _, pid := range seen.found {
			kill(pid)
		}
		time.Sleep(pause)
	}
}

// A sight is the result of a scan of some processes, by their IDs.
type sight struct {
	found  []int // these have a matching variable
	hidden []int // these are in the middle of execve(2), where neither the old program's environment nor the new one's can be read
	ended  bool  // at least one has no environment, or no longer exists
}
