package supervisor

import (
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/procenv"
)

// KillAgents kills agents that lost their executor, and every process that they started. It
// finds them by the mark in their environment, because process IDs are reused. One call scans
// the machine's processes once, whatever the number of agents.
func KillAgents(left []domain.Process) {
	if len(left) == 0 {
		return
	}
	marks := make(map[string]bool, len(left))
	for _, p := range left {
		marks[p.Mark] = true
	}
	procenv.Kill(func(variable string) bool {
		mark, ok := catalog.MarkIn(variable)
		return ok && marks[mark]
	})
}

// runningMarks returns the marks with a running process.
func runningMarks(of []domain.Process) map[string]bool {
	running := make(map[string]bool, len(of))
	for _, p := range of {
		running[p.Mark] = false
	}
	procenv.Find(func(variable string) bool {
		mark, ok := catalog.MarkIn(variable)
		_, asked := running[mark]
		if ok = ok && asked; ok {
			running[mark] = true
		}
		return ok
	})
	return running
}
