package main_test

import (
	"fmt"
	"os"
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
