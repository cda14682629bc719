package wire

import (
	"fmt"
	"os"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/duet-rpc/duet-rpc/internal/e2e"
)

// requireInputRead waits until the program has read all input.
func requireInputRead(p *e2e.Process) {
	p.T.Helper()
	raw, err := p.Stdin.SyscallConn()
	require.NoError(p.T, err)
	require.Eventually(p.T, func() bool {
		waiting := -1
		_ = raw.Control(func(fd uintptr) { waiting, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
		return waiting == 0
	}, e2e.Watchdog/3, time.Millisecond, "the program does not read")
}

// requireDescriptorsTaken requires that descriptor 1 has the target of descriptor 2, and that
// descriptor 0 is /dev/null.
func requireDescriptorsTaken(p *e2e.Process) {
	p.T.Helper()
	target := func(fd int) string {
		link, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", p.Cmd.Process.Pid, fd))
		require.NoError(p.T, err)
		return link
	}
	require.Equal(p.T, target(2), target(1))
	require.Equal(p.T, os.DevNull, target(0))
}
