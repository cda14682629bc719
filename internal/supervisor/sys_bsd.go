//go:build unix && !linux

package supervisor

import (
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// KillAgents ends agents that have lost their executor, with their process groups. A process
// without the agent's mark in its environment is another one: the agent has ended and its
// process id was reused.
func KillAgents(left []domain.Process) {
	for _, p := range left {
		if p.PID <= 1 || unix.Kill(p.PID, 0) != nil {
			continue
		}
		marked := func(word string) bool {
			mark, ok := catalog.MarkIn(word)
			return ok && mark == p.Mark
		}
		// e: with the environment.
		shown, err := exec.Command("ps", "eww", "-o", "command=", "-p", strconv.Itoa(p.PID)).Output()
		if err == nil && slices.ContainsFunc(strings.Fields(string(shown)), marked) {
			_ = unix.Kill(-p.PID, unix.SIGKILL)
		}
	}
}

// runningMarks returns the marks of processes that run.
func runningMarks(of []domain.Process) map[string]bool {
	running := make(map[string]bool, len(of))
	for _, p := range of {
		running[p.Mark] = p.PID > 1 && unix.Kill(p.PID, 0) == nil
	}
	return running
}
