package supervisor

import (
	"slices"
	"time"
)

// An idleThread is a conversation of which no prompt runs, and whose agent
// waits for the next one in an executor.
type idleThread struct {
	process *process
	of      purpose
	timer   *time.Timer // ends its agent
	ending  bool        // its agent is being ended
	works   bool        // its agent has a program in a terminal: it is no idle one
}

// idleThreads are the conversations that have nothing to do, the one that has
// waited longest first. The supervisor's mu guards them.
type idleThreads []*idleThread

// of finds a conversation, or returns nil.
func (l idleThreads) of(p *process, of purpose) *idleThread {
	for _, i := range l {
		if i.process == p && i.of == of {
			return i
		}
	}
	return nil
}

// works reports whether an agent of a process has refused to be ended, since it works.
func (l idleThreads) works(p *process) bool {
	return slices.ContainsFunc(l, func(i *idleThread) bool { return i.process == p && i.works })
}

// remove takes a conversation out of the list.
func (l *idleThreads) remove(gone *idleThread) {
	gone.timer.Stop()
	*l = slices.DeleteFunc(*l, func(i *idleThread) bool { return i == gone })
}

// surplus are those that have waited longest beyond so many.
func (l idleThreads) surplus(most int) []*idleThread {
	var idle []*idleThread
	for _, i := range l {
		if !i.ending && !i.works && !i.process.ending {
			idle = append(idle, i)
		}
	}
	return idle[:max(len(idle)-most, 0)]
}
