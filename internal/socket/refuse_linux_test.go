package socket_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/socket"
)

// A listener refuses a process of our own user that its options refuse, by the ID of the process.
func TestRefusedProcesses(t *testing.T) {
	for refused, want := range map[bool]string{true: "closed", false: "read: <nil>"} {
		path := filepath.Join(short(t), "duet.sock")
		pids := make(chan int, 1)
		l, err := socket.Options{Refuse: func(pid int) bool { pids <- pid; return refused }}.Listen(soon(t), path)
		require.NoError(t, err)
		done := make(chan struct{})
		go func() { defer close(done); accept(l) }()
		assert.Equal(t, want, connectPlainly(path))
		assert.Equal(t, os.Getpid(), <-pids)
		assert.NoError(t, l.Close())
		<-done
	}
}
