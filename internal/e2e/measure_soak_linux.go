//go:build soak

package e2e

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// WatchMemory samples the memory of a process from now on. most waits for the end of the process
// and returns its peak memory in bytes. The kernel's figure for an ended process is no help: it
// includes the parent's memory at the start of the process.
func WatchMemory(pid int) (most func() int64) {
	const between = 2 * time.Millisecond
	peak := make(chan int64, 1)
	go func() {
		var most int64
		for {
			status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
			_, rest, alive := strings.Cut(string(status), "VmHWM:")
			if !alive {
				peak <- most
				return
			}
			var kB int64
			_, _ = fmt.Sscan(rest, &kB)
			most = max(most, kB<<10)
			time.Sleep(between) // a sample: /proc does not report a change
		}
	}()
	return sync.OnceValue(func() int64 { return <-peak })
}

// Memory returns a figure of the process's memory in bytes: VmRSS for the current memory, VmHWM for
// the peak.
func (p *Process) Memory(t testing.TB, name string) int {
	t.Helper()
	return MemoryOf(t, p.Cmd.Process.Pid, name)
}

// MemoryOf is Memory for a process id.
func MemoryOf(t testing.TB, pid int, name string) int {
	t.Helper()
	status := ReadFile(t, fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(status) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			kB, err := strconv.Atoi(strings.Fields(value)[0])
			require.NoError(t, err)
			return kB << 10
		}
	}
	require.Fail(t, "no "+name, "%s", status)
	return 0
}
