package procenv

import (
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// processes leaves out no process that has an environment, except the first.
func TestProcessesLeavesOutKernelSessionsOnly(t *testing.T) {
	entries, err := os.ReadDir("/proc")
	require.NoError(t, err)
	listed := processes()
	assert.Contains(t, listed, os.Getpid())
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == 1 || slices.Contains(listed, pid) {
			continue
		}
		// It is a kernel thread, or it has ended.
		environment, _ := os.ReadFile("/proc/" + entry.Name() + "/environ")
		assert.Empty(t, environment, "process %d", pid)
	}
	if hasKthreadd() {
		assert.NotContains(t, listed, kthreadd)
	}
}
