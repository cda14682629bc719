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
	"time"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/server"
)

const (
	// killAfter is how long a process may live after its standard input was
	// closed.
	killAfter = 2 * time.Second
	// drainFor is how long what a process that has ended wrote, or what its
	// children still hold open, is read.
	drainFor = time.Second
)

// A Process is a program that serves its standard input and output. The
// Client starts it and ends it: it closes its standard input, and kills it
// after 2 s if it is still there. Each connection is a process of its own;
// the next one starts when the last one has ended.
type Process struct {
	Path string   // as for exec.Command
	Args []string // without the program's name
	Dir  string   // "": ours
	Env  []string // nil: ours
	// Stderr takes what it writes to standard error; nil means ours. Anything
	// but an *os.File is written to by a goroutine as long as a child of the
	// process holds the pipe, at most a second after its end.
	Stderr io.Writer

	killAfter time.Duration // 0: killAfter

	mu   sync.Mutex // guards last
	last *processTransport
}

// Command is a program that serves its standard input and output.
func Command(name string, args ...string) *Process { return &Process{Path: name, Args: args} }

func (p *Process) String() string {
	return "command " + strings.Join(append([]string{p.Path}, p.Args...), " ")
}

func (p *Process) properties() properties { return properties{framing: frame.LSP} }

func (p *Process) open(ctx context.Context) (server.Transport, error) {
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
	cmd.Dir, cmd.Env = p.Dir, p.Env
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

// processTransport is the pipes to a process, and the process's owner.
type processTransport struct {
	cmd       *exec.Cmd
	kill      func()
	killAfter time.Duration
	in        pipe // its standard output
	out       pipe // its standard input

	reading sync.Mutex // held by whoever reads from in
	mu      sync.Mutex // guards closing, and in's deadline until then
	closing bool
	closed  chan struct{} // closed by Close
	ended   chan struct{} // the process is gone, and the pipes are closed
	status  error         // how it ended; once ended is closed
}

// own waits for the end of the process, or brings it about.
func (t *processTransport) own() {
	defer close(t.ended)
	gone := make(chan struct{})
	go func() {
		t.status = t.cmd.Wait()
		close(gone)
	}()
	select {
	case <-gone:
		// What it wrote last is read to its end, unless somebody else holds
		// the pipe open.
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

// terminate waits for the end of a process that was told of it. Nobody else
// reads what it still writes, and a full pipe would hold it up.
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

// SetWriteDeadline does without where a pipe has none (Windows): then a
// process that does not read holds up whoever writes to it.
func (t *processTransport) SetWriteDeadline(d time.Time) error {
	err := t.out.SetWriteDeadline(d)
	if errors.Is(err, os.ErrNoDeadline) {
		return nil
	}
	return err
}

// Close closes the process's standard input and makes Read return. It does
// not wait for the process; see wait.
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

// wait waits until the process has ended, and tells how.
func (t *processTransport) wait() error {
	<-t.ended
	return t.status
}
