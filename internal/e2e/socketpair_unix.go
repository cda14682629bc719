//go:build unix

package e2e

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// SocketPair returns both ends of a Unix socket. Node gives such sockets to its children.
func SocketPair(t *testing.T) (ours, theirs *os.File) {
	syscall.ForkLock.RLock() // otherwise a process of another test could keep an end open
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fds[0])
		syscall.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	require.NoError(t, err)
	require.NoError(t, syscall.SetNonblock(fds[0], true)) // so that closing it ends a read
	ours, theirs = os.NewFile(uintptr(fds[0]), "ours"), os.NewFile(uintptr(fds[1]), "theirs")
	t.Cleanup(func() { ours.Close(); theirs.Close() })
	return ours, theirs
}
