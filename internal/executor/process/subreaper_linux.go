package process

import (
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// statusFD is the descriptor on which a subreaper reports the error number of its program's
// start, 0 for success, and later the program's wait status.
const statusFD = 3

// killSignal makes a subreaper kill its descendants. The subreaper also gets it when the executor
// dies.
const killSignal = syscall.SIGUSR1

// RunSubreaper is the main function of a [Spec]'s Subreaper. Its arguments are the mark of the
// program, as NAME=value, the program's file, and its arguments from its name on. It returns when
// the program and all of its descendants have ended. Orphaned descendants become children of this
// process (prctl(2), PR_SET_CHILD_SUBREAPER), whatever their session and their environment, and
// are killed.
func RunSubreaper(args []string) error {
	if len(args) < 3 {
		return errors.New("the subreaper is started by the executor, not by hand")
	}
	unix.CloseOnExec(statusFD)
	report := os.NewFile(statusFD, "status")
	defer report.Close()
	// Signals to the whole group are for the program. Notify instead of Ignore: child processes
	// inherit ignored signals.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	killed := make(chan os.Signal, 1)
	signal.Notify(killed, killSignal)
	// If a sandbox forbids it, the program runs all the same, and only its own descendants end
	// with it.
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	// The program dies with the thread that starts it, so that thread waits for it.
	runtime.LockOSThread()
	program := &exec.Cmd{
		Path: args[1], Args: args[2:], Env: append(os.Environ(), args[0]), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		SysProcAttr: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL},
	}
	err := program.Start()
	var number syscall.Errno
	if errors.As(err, &number); err != nil && number == 0 {
		number = syscall.EIO
	}
	binary.Write(report, binary.NativeEndian, uint32(number))
	if err != nil {
		return err
	}
	var ending atomic.Bool
	go func() { // as long as this process
		<-killed
		ending.Store(true)
		killDescendants()
	}()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil: // no child is left
			return nil
		case pid == program.Process.Pid:
			binary.Write(report, binary.NativeEndian, uint32(status))
			ending.Store(true)
		}
		if ending.Load() {
			killDescendants() // also those that became children of this process just now
		}
	}
}

// killDescendants kills all descendants of this process.
func killDescendants() {
	for parents := []int{os.Getpid()}; len(parents) > 0; parents = parents[1:] {
		for _, child := range children(parents[0]) {
			syscall.Kill(child, syscall.SIGKILL)
			parents = append(parents, child)
		}
	}
}

// startBelow changes p's command to a subreaper that starts the command. It returns the file with
// the subreaper's reports. The child's end of it is the first extra file, which readStart closes.
func (p *Process) startBelow(subreaper []string) (reports *os.File, err error) {
	reports, childEnd, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.cmd.Args = slices.Concat(subreaper, []string{catalog.MarkVariable + "=" + p.Mark, p.cmd.Path}, p.cmd.Args)
	p.cmd.Path = subreaper[0]
	p.cmd.ExtraFiles = []*os.File{childEnd}
	p.cmd.SysProcAttr.Pdeathsig = killSignal
	return reports, nil
}

// killBelow kills the descendants of a subreaper.
func (p *Process) killBelow() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		syscall.Kill(p.PID, killSignal)
	}
}

// readStart waits until a subreaper has started its program, or returns the error of the start.
func (p *Process) readStart() error {
	p.cmd.ExtraFiles[0].Close() // else the reports of a failing subreaper would have no end
	var number uint32
	if err := binary.Read(p.reports, binary.NativeEndian, &number); err != nil {
		return errors.New("the process that is to start it has failed")
	}
	if number != 0 {
		return syscall.Errno(number)
	}
	return nil
}

// readEnd returns how the program of a subreaper has ended. ok is false if the subreaper was
// killed before.
func (p *Process) readEnd() (e exit, ok bool) {
	defer p.reports.Close()
	var status uint32
	err := binary.Read(p.reports, binary.NativeEndian, &status)
	return exitOf(syscall.WaitStatus(status)), err == nil
}
