package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/server"
)

const (
	// killAfter is how long a process may live after its standard input was closed.
	killAfter = 2 * time.Second
	// drainFor is how long the Client reads the rest of the output of a process that has ended,
	// or of its children that still hold the pipe open.
	drainFor = time.Second
)

// A Process is a program that serves its standard input and output. The Client starts it and
// ends it: it closes the program's standard input, and kills it after 2 s if it still runs. Each
// connection has its own process; the next one starts after the last one has ended.
type Process struct {
	Path string   // as for exec.Command
	Args []string // without the program's name
	Dir  string   // "": the current directory
	Env  []string // nil: the current environment
	// Stderr receives its standard error; nil means the current standard error. For anything but
	// an *os.File a goroutine copies the output while a child of the process holds the pipe, at
	// most a second after the process has ended.
	Stderr io.Writer
	// SysProcAttr are attributes of the system, as for exec.Cmd.
	SysProcAttr *syscall.SysProcAttr

	killAfter time.Duration // 0: killAfter

	mu   sync.Mutex // guards last
	last *processTransport
}

// Command returns a Process for a program that serves its standard input and output.
func Command(name string, args ...string) *Process { return &Process{Path: name, Args: args} }

func (p *Process) String() string {
	return "command " + strings.Join(append([]string{p.Path}, p.Args...), " ")
}

func (p *Process) properties() properties { return properties{framing: frame.LSP} }

func (p *Process) open(ctx context.Context) (server.Transport, error) {
	t, err := p.Open(ctx)
	if err != nil {
		return nil, err
	}
	return t, nil
}

// A ProcessTransport is a connection to a program that serves its standard input and output.
type ProcessTransport interface {
	server.Transport
	// Wait waits until the program has ended and its standard error was read, and returns its
	// exit status as exec.Cmd.Wait does.
	Wait() error
	// Kill ends the program at once, and waits for its end.
	Kill() error
}

// Open starts the program, for an [Opener] that exchanges messages with it before a Client does. ctx
// bounds the wait for the end of the last one.
func (p *Process) Open(ctx context.Context) (ProcessTransport, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last != nil {
		select {
		case <-p.last.ended:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the end of the last process: %w", ctx.Err())
		}
	}
	t, err := p.start()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", p.Path, err)
	}
	p.last = t
	return t, nil
}

func (p *Process) start() (t *processTransport, err error) {
	var open []*os.File
	defer func() {
		if err != nil {
			for _, f := range open {
				f.Close()
			}
		}
	}()
	stdin, toIt, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	open = append(open, stdin, toIt)
	fromIt, stdout, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	open = append(open, fromIt, stdout)
	cmd := exec.Command(p.Path, p.Args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, p.Stderr
	if cmd.Stderr == nil {
		cmd.Stderr = os.Stderr
	}
	cmd.Dir, cmd.Env, cmd.SysProcAttr = p.Dir, p.Env, p.SysProcAttr
	cmd.WaitDelay = drainFor
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	stdin.Close()
	stdout.Close()
	t = &processTransport{
		cmd: cmd, kill: func() { cmd.Process.Kill() }, killAfter: cmp.Or(p.killAfter, killAfter),
		in: fromIt, out: toIt, closed: make(chan struct{}), ended: make(chan struct{}),
	}
	go t.own()
	return t, nil
}

// A pipe is an end of a pipe to a process.
type pipe interface {
	io.ReadWriteCloser
	SetReadDeadline(time.Time) error
	SetWriteDeadline(time.Time) error
}

// processTransport is the transport over a process's pipes, and owns the process.
type processTransport struct {
	cmd       *exec.Cmd
	kill      func()
	killAfter time.Duration
	in        pipe // its standard output
	out       pipe // its standard input

	reading sync.Mutex // held by the reader of in
	mu      sync.Mutex // guards closing, and the deadline of in until then
	closing bool
	closed  chan struct{} // closed by Close
	ended   chan struct{} // the process is gone, and the pipes are closed
	status  error         // exit status; valid once ended is closed
}

// own waits for the end of the process, or ends it.
func (t *processTransport) own() {
	defer close(t.ended)
	gone := make(chan struct{})
	go func() {
		t.status = t.cmd.Wait()
		close(gone)
	}()
	select {
	case <-gone:
		// The last output is read to its end, unless another process holds the pipe open.
		select {
		case <-t.closed:
		case <-time.After(drainFor):
			t.Close()
		}
	case <-t.closed:
		t.terminate(gone)
	}
	t.in.Close()
}

// terminate waits for the end of a process whose input was closed. It discards the remaining
// output, because nothing else reads it and a full pipe would block the process.
func (t *processTransport) terminate(gone <-chan struct{}) {
	read := make(chan struct{})
	go func() {
		defer close(read)
		t.reading.Lock()
		defer t.reading.Unlock()
		if t.in.SetReadDeadline(time.Time{}) == nil {
			io.Copy(io.Discard, t.in)
		}
	}()
	select {
	case <-gone:
	case <-time.After(t.killAfter):
		t.kill()
		<-gone
	}
	t.in.SetReadDeadline(time.Now())
	t.in.Close()
	<-read
}

func (t *processTransport) isClosing() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.closing
}

func (t *processTransport) Read(p []byte) (int, error) {
	t.reading.Lock()
	defer t.reading.Unlock()
	if t.isClosing() {
		return 0, os.ErrClosed
	}
	n, err := t.in.Read(p)
	if err != nil && t.isClosing() {
		err = os.ErrClosed
	}
	return n, err
}

func (t *processTransport) Write(p []byte) (int, error) { return t.out.Write(p) }

func (t *processTransport) SetReadDeadline(d time.Time) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closing {
		return os.ErrClosed
	}
	return t.in.SetReadDeadline(d)
}

// SetWriteDeadline does nothing for a pipe without deadlines (Windows): a process that does not
// read then blocks its writer.
func (t *processTransport) SetWriteDeadline(d time.Time) error {
	err := t.out.SetWriteDeadline(d)
	if errors.Is(err, os.ErrNoDeadline) {
		return nil
	}
	return err
}

// Close closes the process's standard input and makes Read return. It does not wait for the
// process; see Wait.
func (t *processTransport) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closing {
		return os.ErrClosed
	}
	t.closing = true
	t.in.SetReadDeadline(time.Now())
	err := t.out.Close()
	close(t.closed)
	return err
}

// Kill kills the process and waits for its end.
func (t *processTransport) Kill() error {
	t.kill()
	return t.Wait()
}

// Wait waits until the process has ended, and returns its exit status.
func (t *processTransport) Wait() error {
	<-t.ended
	return t.status
}
