//go:build !unix

package supervisor

import (
	"errors"
	"net"
	"os"
	"os/exec"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

func socketpair() (net.Conn, *os.File, error) {
	return nil, nil, errors.New("executors need a Unix system")
}

func inOwnGroup(*exec.Cmd) {}

func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

// KillAgents does nothing: this system has no executors.
func KillAgents([]domain.Process) {}

// runningMarks returns no marks, because KillAgents ends nothing.
func runningMarks([]domain.Process) map[string]bool { return nil }

func isGone(int) bool { return false }
