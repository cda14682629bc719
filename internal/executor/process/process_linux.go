package process

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// groupAttr makes a child the leader of a group, and lets it die with the
// thread that started it, which lives as long as the Runner.
func groupAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// TerminalAttr makes a child the leader of a session whose terminal is its
// standard input.
func TerminalAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Setctty: true, Pdeathsig: syscall.SIGKILL}
}

// reapGroup waits for the end of the process without reaping it, so that its
// id, and its group's, stay taken while the group is killed.
func (p *Process) reapGroup() {
	for unix.Waitid(unix.P_PID, p.PID, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	killGroup(p)
	p.cmd.Wait()
	p.reaped = true
}

// killMarked kills whoever carries the mark and left the process group, until nobody is
// found: one that is about to start another may have done so behind our back, and who was
// killed takes a moment to go. It gives up on those that the system does not let go.
func killMarked(mark string) {
	const most, pause = 100, 2 * time.Millisecond
	for range most {
		if !killMarkedOnce(mark) {
			return
		}
		time.Sleep(pause)
	}
}

// killMarkedOnce kills whom it finds, and reports whether it found somebody.
func killMarkedOnce(mark string) (found bool) {
	want := []byte(catalog.MarkVariable + "=" + mark + "\x00")
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		env, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(append(env, 0), want) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			found = true
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	return found
}
