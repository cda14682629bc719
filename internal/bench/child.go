//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A server is a program to measure.
type server struct {
	name    string
	command []string // program, as an absolute path, and its arguments

	// verbatim says that a reply equals the request, byte for byte.
	verbatim bool
	// echoesNotifications says that notifications come back too. The workload with notifications then
	// leaves this server out.
	echoesNotifications bool

	// agent is the program that duet-rpc's runs use, with the argument agent.
	agent string

	// directory is the server's working directory and home, so that it does not write into the user's.
	directory string
}

// A transport is the kind of the child's stdin and stdout.
type transport int

const (
	pipes       transport = iota // one pipe each, as Emacs makes them
	socketPairs                  // one Unix socket pair each, as Node.js makes them
)

const (
	// exitGrace is how long a child may take to end after its stdin was closed.
	exitGrace = 3 * time.Second
	// receiveBuffer is the size of a read, in bytes: that of a default pipe, which fits into a second
	// level cache.
	receiveBuffer = 256 << 10
)

// A child is a running server and the client's ends of its stdin and stdout.
type child struct {
	server   *server
	process  *os.Process
	started  time.Time // just before the start of the process
	watchdog *time.Timer
	overdue  atomic.Bool // the watchdog killed the child

	toChild, fromChild int // raw descriptors
	received           []byte
	stderr             string // path of a file
}

// errHung is the error of a cell whose child was still alive at the time limit.
var errHung = errors.New("the server hung and was killed")

// start runs a server with blocking descriptors, as editors do, and kills it at the limit. The caller
// must be locked to its thread: the child ends with that thread.
func start(s *server, t transport, limit time.Duration) (*child, error) {
	stdin, toChild, fromChild, stdout, err := connect(t)
	if err != nil {
		return nil, err
	}
	defer stdin.Close()
	defer stdout.Close()
	c := &child{
		server: s, toChild: toChild, fromChild: fromChild,
		received: make([]byte, receiveBuffer), stderr: filepath.Join(s.directory, "stderr.log"),
	}
	stderr, err := os.Create(c.stderr)
	if err != nil {
		c.disconnect()
		return nil, err
	}
	defer stderr.Close()
	attributes := &os.ProcAttr{
		Dir:   s.directory,
		Env:   environment(s.directory),
		Files: []*os.File{stdin, stdout, stderr},
		Sys:   &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL},
	}
	c.started = time.Now()
	c.process, err = os.StartProcess(s.command[0], s.command, attributes)
	if err != nil {
		c.disconnect()
		return nil, err
	}
	c.watchdog = time.AfterFunc(limit, func() {
		c.overdue.Store(true)
		c.process.Kill()
	})
	return c, nil
}

// connect makes the descriptors of a child, all blocking and close-on-exec.
func connect(t transport) (stdin *os.File, toChild, fromChild int, stdout *os.File, err error) {
	var in, out [2]int // read end, write end
	if t == socketPairs {
		if in, err = unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err == nil {
			out, err = unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		}
	} else {
		err = errors.Join(unix.Pipe2(in[:], unix.O_CLOEXEC), unix.Pipe2(out[:], unix.O_CLOEXEC))
	}
	if err != nil {
		return nil, 0, 0, nil, fmt.Errorf("connect to a child: %w", err)
	}
	return os.NewFile(uintptr(in[0]), "stdin"), in[1], out[0], os.NewFile(uintptr(out[1]), "stdout"), nil
}

// environment returns the caller's environment without variables that tune Go programs, name the
// user's files or configure duet-rpc.
func environment(home string) []string {
	kept := []string{"HOME=" + home}
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		switch name {
		case "HOME", "GOGC", "GOMEMLIMIT", "GOMAXPROCS", "GODEBUG", "GOTRACEBACK":
			continue
		}
		if !strings.HasPrefix(name, "XDG_") && !strings.HasPrefix(name, "DUET_") {
			kept = append(kept, entry)
		}
	}
	return kept
}

func (c *child) disconnect() {
	unix.Close(c.toChild)
	unix.Close(c.fromChild)
}

// stop closes the child's stdin and waits for its end. If the child does not end, stop kills it and
// returns an error. After a failed cell, it kills the child at once.
func (c *child) stop(failed bool) (killed bool) {
	c.watchdog.Stop()
	unix.Close(c.toChild)
	defer unix.Close(c.fromChild)
	if failed {
		c.process.Kill()
	}
	ended := make(chan struct{})
	go func() {
		c.process.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return false
	case <-time.After(exitGrace):
		c.process.Kill()
		<-ended
		return true
	}
}

// explain adds the child's last output to the error of a cell.
func (c *child) explain(err error) error {
	if c.overdue.Load() {
		err = fmt.Errorf("%w: %w", errHung, err)
	}
	text, _ := os.ReadFile(c.stderr)
	text = bytes.TrimSpace(text)
	if len(text) == 0 {
		return err
	}
	return fmt.Errorf("%w; its stderr ends with: %s", err, text[max(0, len(text)-400):])
}

// cpu returns the CPU time of the child so far: user and system time, with ended threads.
func (c *child) cpu() time.Duration { return cpuOf(c.process.Pid) }

func cpuOf(pid int) time.Duration {
	const schedulerClock = 2 // CPUCLOCK_SCHED: nanoseconds, of a whole process
	return clock(int32(^pid)<<3 | schedulerClock)
}

// clientCPU returns the CPU time of the load generator so far.
func clientCPU() time.Duration { return clock(unix.CLOCK_PROCESS_CPUTIME_ID) }

func clock(id int32) time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(id, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// memory returns a field of /proc/PID/status, such as VmRSS, in MB.
func (c *child) memory(field string) (float64, error) { return memoryOf(c.process.Pid, field) }

func memoryOf(pid int, field string) (float64, error) {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		words := strings.Fields(line)
		if len(words) == 3 && words[0] == field+":" && words[2] == "kB" {
			kibibytes, err := strconv.ParseFloat(words[1], 64)
			return kibibytes * 1024 / 1e6, err
		}
	}
	return 0, fmt.Errorf("no %s in the child's status", field)
}
