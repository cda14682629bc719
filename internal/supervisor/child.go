package supervisor

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os/exec"

	"github.com/duet-rpc/duet-rpc/internal/catalogrpc"
	"github.com/duet-rpc/duet-rpc/internal/socket"
)

// A child is the program of an executor, and our end of the link to it.
type child struct {
	pid  int
	link net.Conn
	wait func() error // returns when the program has ended; called once
	kill func()       // ends the program at once, and its process group
}

// startChild starts a program, joined by a socketpair. The goroutine that reads
// what it complains of belongs to the Supervisor.
func (s *Supervisor) startChild(command []string) (*child, error) {
	if len(command) == 0 {
		return nil, errors.New("no command is configured")
	}
	near, far, err := socketpair()
	if err != nil {
		return nil, err
	}
	defer far.Close()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(append([]string{}, s.opts.Environment...), catalogrpc.FDVariable+"=3")
	cmd.ExtraFiles = append(cmd.ExtraFiles, far)
	inOwnGroup(cmd)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		near.Close()
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		near.Close()
		return nil, err
	}
	s.work.Go(func() {
		lines := bufio.NewScanner(stderr)
		for lines.Scan() {
			s.opts.Logger.Debug("executor", "pid", cmd.Process.Pid, "says", lines.Text())
		}
		_, _ = io.Copy(io.Discard, stderr) // a line that is too long ends the scan; nobody is to wait for us
	})
	return &child{pid: cmd.Process.Pid, link: socket.ReceivingFiles(near), wait: cmd.Wait, kill: func() { killGroup(cmd) }}, nil
}
