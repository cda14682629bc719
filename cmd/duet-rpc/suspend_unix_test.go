//go:build unix

package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// suspend sends SIGSTOP to a process and waits until all its threads have stopped.
// kill(2) returns earlier: on a busy machine the process can finish a turn first.
// Only Linux shows the state of threads.
func suspend(t testing.TB, pid int) {
	t.Helper()
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	if runtime.GOOS != "linux" {
		return
	}
	require.Eventually(t, func() bool { return len(runningThreads(pid)) == 0 }, watchdog, pollEvery,
		"process %d did not stop", pid)
}

// runningThreads returns the threads of a process that are not stopped.
func runningThreads(pid int) (running []string) {
	stats, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil { // the thread has ended
			continue
		}
		// The state follows the name, which is in parentheses and may hold any sign.
		_, state, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')'):]), " ")
		if !strings.HasPrefix(state, "T") && !strings.HasPrefix(state, "Z") {
			running = append(running, path)
		}
	}
	return running
}
