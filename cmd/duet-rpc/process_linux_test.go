package main_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// requireInputRead waits until the program has taken all that was sent.
func (p *process) requireInputRead() {
	p.t.Helper()
	raw, err := p.stdin.SyscallConn()
	require.NoError(p.t, err)
	require.Eventually(p.t, func() bool {
		waiting := -1
		_ = raw.Control(func(fd uintptr) { waiting, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
		return waiting == 0
	}, watchdog/3, time.Millisecond, "the program does not read")
}

// watchMemory follows how much memory a program has from now on, and returns
// what gives the most it ever had, in bytes, once it has ended. What the kernel
// tells of a process that has ended begins with what its parent had when it was
// started, which says nothing of it.
func watchMemory(pid int) (most func() int64) {
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
			time.Sleep(between) // a sample: /proc tells nobody of a change
		}
	}()
	return sync.OnceValue(func() int64 { return <-peak })
}

// memory is a figure of the process's memory in bytes: VmRSS, what it has now,
// or VmHWM, the most it ever had.
func (p *process) memory(t testing.TB, name string) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	require.NoError(t, err)
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			kB, err := strconv.Atoi(strings.Fields(value)[0])
			require.NoError(t, err)
			return kB << 10
		}
	}
	require.Fail(t, "no "+name, "%s", status)
	return 0
}

// requireDescriptorsTaken requires that descriptor 1 leads to where
// descriptor 2 leads, and descriptor 0 to nothing.
func (p *process) requireDescriptorsTaken() {
	p.t.Helper()
	target := func(fd int) string {
		link, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", p.cmd.Process.Pid, fd))
		require.NoError(p.t, err)
		return link
	}
	require.Equal(p.t, target(2), target(1))
	require.Equal(p.t, os.DevNull, target(0))
}
