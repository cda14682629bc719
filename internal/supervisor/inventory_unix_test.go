//go:build unix

package supervisor

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// The inventory of an executor that works for weeks contains only what still runs.
func TestInventoryForgetsEndedProcesses(t *testing.T) {
	agent := exec.Command(os.Args[0])
	agent.Env = []string{role + "=agent", catalog.MarkVariable + "=runs"}
	require.NoError(t, agent.Start())
	defer func() { agent.Process.Kill(); agent.Wait() }()
	synctest.Test(t, func(t *testing.T) {
		var i inventory
		i.remember(domain.Process{PID: agent.Process.Pid, Mark: "runs"})
		commandEnded := i.command("c", "command")
		for n := range 20 * leastPruned {
			i.remember(domain.Process{Mark: fmt.Sprint("agent", n)})
			i.give(fmt.Sprint("task", n))()
			time.Sleep(time.Second)
		}
		assert.Less(t, len(i.agents), 2*leastPruned)
		assert.Less(t, len(i.tasks), 2*pastTasks+1)
		assert.True(t, i.has("task5119"), "late reports are taken")
		assert.False(t, i.has("task0"))
		commandEnded()
		left, _ := i.close()
		assert.Contains(t, left, domain.Process{PID: agent.Process.Pid, Mark: "runs"})
	})
}

// An executor of many short-lived agents forgets each soon, not only after a while.
func TestInventoryForgetsShortLivedAgents(t *testing.T) {
	agent := exec.Command(os.Args[0])
	agent.Env = []string{role + "=agent"}
	require.NoError(t, agent.Start())
	agent.Process.Kill()
	agent.Wait()
	var i inventory
	for n := range 20 * leastPruned {
		i.remember(domain.Process{PID: agent.Process.Pid, Mark: fmt.Sprint("agent", n)})
	}
	assert.Less(t, len(i.agents), 2*leastPruned)
}

// A terminal outlives its task, and so do the executor's reports about it.
func TestInventoryKeepsTasksOfTerminals(t *testing.T) {
	var i inventory
	i.give("first")()
	i.agentTerminal("t", "first")
	for n := range 5 * pastTasks {
		i.give(fmt.Sprint(n))()
	}
	assert.True(t, i.has("first"))
	i.terminal("t", false)
	for n := range 5 * pastTasks {
		i.give(fmt.Sprint("more", n))()
	}
	assert.False(t, i.has("first"))
}
