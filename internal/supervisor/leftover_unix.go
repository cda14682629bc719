//go:build unix && !linux

package supervisor

import (
	"golang.org/x/sys/unix"

	"github.com/duet-rpc/duet-rpc/internal/store"
)

// KillAgent ends an agent that has lost its executor, with its process group.
func KillAgent(p store.Process) { _ = unix.Kill(-p.PID, unix.SIGKILL) }
