// Package process starts and owns the programs of an executor: agents, plain commands and
// terminals. Each leads a process group. When a program has ended, its group has ended too, and on
// Linux every process that carries its mark and left the group.
//
// A [Runner] owns all processes of an executor, the thread that starts them
// and the goroutines that wait for them. Close returns when none is left.
package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// ReadSize is how much of an output is read at once, in bytes.
const ReadSize = 32 << 10

const (
	stderrTail = 8 << 10
	// DrainTime is how long output is still read after a process has ended: a descendant may keep
	// its pipes open.
	DrainTime = time.Second
	// drainBytes limits the output read after that. It is more than a pipe can buffer, so that
	// output which waits for a slow hub is not lost.
	drainBytes = 2 << 20
	drainPause = 50 * time.Millisecond
	// subreaperTime is how long a subreaper may take to kill its descendants. A stopped (SIGSTOP)
	// subreaper would never end.
	subreaperTime = 5 * time.Second
)

// A Process is a child in a process group of its own. When the child has ended, so has its group.
// Its methods may be called from any goroutine; a method that reads the output may be called
// once.
type Process struct {
	PID  int
	Mark string // in its environment; "" if it has none

	runner  *Runner
	cmd     *exec.Cmd
	stdin   *os.File // nil if it has none
	output  *os.File
	reports *os.File // reports of a subreaper on the start and the end of its program; nil without one
	inside  *os.File // bwrap's report on the start of its program; nil without a sandbox
	group   int      // in a sandbox, the process group of the program; 0: that of the process
	stderr  tailBuffer
	speaks  chan struct{} // buffer of 1: stderr output has arrived
	exit    exit          // set before done is closed
	done    chan struct{} // closed when it has ended and its group is gone

	mu     sync.Mutex     // guards reaped; locked while a signal is sent
	reaped bool           // PID may belong to another process by now
	pipes  sync.WaitGroup // the reader of stderr; counted before it starts
}

// An exit is how a process has ended. If a signal ended it, code is 128 plus the signal's number.
type exit struct {
	code   int
	signal string // its name, such as SIGTERM
}

// readStderr stores the end of the process's stderr.
func (p *Process) readStderr(f *os.File) {
	defer f.Close()
	in, stop := p.untilEnd(f)
	defer stop()
	debug := p.runner.log.Enabled(context.Background(), slog.LevelDebug)
	buf := make([]byte, 4096)
	for {
		n, err := in.Read(buf)
		if n > 0 {
			p.stderr.Write(buf[:n])
			select {
			case p.speaks <- struct{}{}:
			default:
			}
		}
		if debug && n > 0 {
			p.runner.log.Debug("agent's stderr", "pid", p.PID, "text", string(bytes.ToValidUTF8(buf[:n], []byte("\uFFFD"))))
		}
		if err != nil {
			return
		}
	}
}

// untilEnd returns a reader of f that ends after the process, even if another process keeps the
// other end open. The reader calls stop when it is done.
func (p *Process) untilEnd(f *os.File) (r io.Reader, stop func()) {
	read := make(chan struct{})
	p.runner.work.Go(func() {
		select {
		case <-p.done:
			f.SetReadDeadline(time.Now().Add(DrainTime))
		case <-read:
		}
	})
	return Drain(f), func() { close(read) }
}

// Drain returns a reader of f up to its deadline, and then of the buffered rest, up to
// drainBytes.
func Drain(f *os.File) io.Reader { return &drain{f: f, left: drainBytes} }

type drain struct {
	f    *os.File
	left int
}

func (d *drain) Read(b []byte) (int, error) {
	n, err := d.f.Read(b)
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return n, err
	}
	if d.left <= 0 {
		return 0, io.EOF
	}
	d.f.SetReadDeadline(time.Now().Add(drainPause))
	n, err = d.f.Read(b)
	d.left -= n
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = io.EOF
	}
	return n, err
}

// Output returns a reader of the process's output. It ends after the process, even if a
// descendant keeps the other end open. The reader calls stop when it is done.
func (p *Process) Output() (r io.Reader, stop func()) {
	r, stopWatch := p.untilEnd(p.output)
	return r, func() {
		stopWatch()
		p.CloseOutput()
	}
}

// ReadOutput passes the process's output to take, until the process has ended. It waits while the
// flow is paused, unless hurry has ended.
func (p *Process) ReadOutput(hurry context.Context, take func([]byte)) {
	in, stop := p.Output()
	defer stop()
	buf := make([]byte, ReadSize)
	for {
		p.runner.Flow.Wait(hurry)
		n, err := in.Read(buf)
		if n > 0 {
			take(buf[:n])
		}
		if err != nil {
			return
		}
	}
}

// CloseOutput closes this side of the output after the process has ended. Earlier, closing a
// terminal would send SIGHUP to a program that has closed its side and is about to exit.
func (p *Process) CloseOutput() {
	p.runner.work.Go(func() {
		<-p.done
		p.output.Close()
	})
}

// Write writes to the input. It blocks while the process does not read, and fails after the
// process has ended.
func (p *Process) Write(b []byte) (int, error) { return p.stdin.Write(b) }

// CloseInput ends the input, if the process has one.
func (p *Process) CloseInput() {
	if p.stdin != nil {
		p.stdin.Close()
	}
}

// Done is closed when the process has ended and its group is gone.
func (p *Process) Done() <-chan struct{} { return p.done }

// Ended reports whether the process has ended.
func (p *Process) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Wait waits up to d for the end of the process, and reports whether the process has ended. It
// does not wait after the Runner's context has ended.
func (p *Process) Wait(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-p.done:
		return true
	case <-timer.C:
		return false
	case <-p.runner.ctx.Done(): // the Runner is shutting down
		return p.Ended()
	}
}

// Interrupt ends the process group: SIGINT, SIGTERM and SIGKILL with the
// graces between. It returns when the group is gone.
func (p *Process) Interrupt() {
	p.signal(os.Interrupt)
	if !p.Wait(p.runner.grace.Interrupt) {
		p.Terminate()
	}
}

// Terminate is Interrupt without SIGINT.
func (p *Process) Terminate() {
	p.signal(terminateSignal)
	if !p.Wait(p.runner.grace.Terminate) {
		p.Kill()
		<-p.done
	}
}

// Kill ends the process group at once, and all descendants of a subreaper. It does not wait for
// the end.
func (p *Process) Kill() {
	if p.reports == nil {
		p.signal(os.Kill)
		return
	}
	p.killBelow()
	p.runner.work.Go(func() {
		select {
		case <-p.done:
		case <-time.After(subreaperTime):
			p.signal(os.Kill)
		}
	})
}

// Succeeded reports whether a process that has ended exited with status 0.
func (p *Process) Succeeded() bool { return p.exit == exit{} }

// ExitStatus returns the exit status of a process that has ended, and the name of the signal if a
// signal ended it.
func (p *Process) ExitStatus() (code int, signal string) { return p.exit.code, p.exit.signal }

// ExitText describes how the process ended, with the end of its stderr. It waits for the end.
func (p *Process) ExitText() string {
	<-p.done
	text := fmt.Sprintf("exited with status %d", p.exit.code)
	if p.exit.signal != "" {
		text = "ended by " + p.exit.signal
	}
	if lines := p.LastWords(); lines != "" {
		text += ": " + lines
	}
	return text
}

// LastWords returns the last ten lines that the process wrote to its stderr. After the end of the
// process it waits until all lines were read, which takes little longer than DrainTime even if
// another process keeps the pipe open.
func (p *Process) LastWords() string {
	p.awaitStderr()
	return p.stderr.lines(10)
}

// LastComplaint returns the last informative line of LastWords, without colours. It waits like
// LastWords.
func (p *Process) LastComplaint() string {
	p.awaitStderr()
	return p.stderr.linesSince(0, 1)
}

// awaitStderr waits until the stderr of a process that has ended was read. The last output may
// still be in the pipe when the process ends.
func (p *Process) awaitStderr() {
	if p.Ended() {
		p.pipes.Wait()
	}
}

// Complaints returns the last n informative lines of the process's stderr after the first since
// bytes, as far as it was read; without colours.
func (p *Process) Complaints(since int64, n int) string { return p.stderr.linesSince(since, n) }

// ComplaintBytes returns how many bytes the process has written to its stderr.
func (p *Process) ComplaintBytes() int64 { return p.stderr.total() }

// Complained returns a channel that receives a value after new output on stderr. Only one
// goroutine may wait for it.
func (p *Process) Complained() <-chan struct{} { return p.speaks }

// WaitHungUp waits for the end of a process after HangUp. It reports whether the process has
// ended within its grace.
func (p *Process) WaitHungUp() bool { return p.Wait(p.runner.grace.HangUp) }

// inherited lists the variables of the executor that a child gets. It gets no others by default.
var inherited = append([]string{"PATH", "HOME", "LANG", "TERM", "TMPDIR", "USER"}, statePlaces...)

// statePlaces are the variables by which duet-rpc in a child finds the sessions of the daemon.
var statePlaces = []string{"DUET_STATE_HOME", "XDG_STATE_HOME"}

// An Environment is the environment of a child, by name.
type Environment map[string]string

// NewEnvironment returns the environment of every child, with more variables; the last value
// wins.
func NewEnvironment(more ...map[string]string) Environment { return own(inherited, more...) }

// ClientEnvironment returns a client's environment for a child, with more variables; the last
// value wins.
func ClientEnvironment(client map[string]string, more ...map[string]string) Environment {
	return own(statePlaces, append([]map[string]string{client}, more...)...)
}

// own returns variables of this process, with more variables.
func own(names []string, more ...map[string]string) Environment {
	e := make(Environment)
	for _, name := range names {
		if value, ok := os.LookupEnv(name); ok {
			e[name] = value
		}
	}
	for _, m := range more {
		maps.Copy(e, m)
	}
	return e
}

// With returns a copy of e with more variables, which win.
func (e Environment) With(more map[string]string) Environment {
	with := make(Environment, len(e)+len(more))
	maps.Copy(with, e)
	maps.Copy(with, more)
	return with
}

// List returns the environment in the form of package exec. It leaves out variables that the
// system would refuse.
func (e Environment) List() []string {
	list := make([]string, 0, len(e))
	for _, name := range slices.Sorted(maps.Keys(e)) {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(e[name], 0) {
			continue // the system would refuse the whole environment
		}
		list = append(list, name+"="+e[name])
	}
	return list
}

// Find returns the file of a program. It searches the PATH of the child's environment like a
// shell, and resolves a name with a slash relative to cwd.
func (e Environment) Find(program, cwd string) (string, error) {
	if strings.ContainsRune(program, filepath.Separator) || strings.ContainsRune(program, '/') {
		if !filepath.IsAbs(program) {
			program = filepath.Join(cwd, program)
		}
		return exec.LookPath(program)
	}
	for _, dir := range filepath.SplitList(e["PATH"]) {
		if !filepath.IsAbs(dir) {
			continue // a program of the working directory is not meant
		}
		file, err := exec.LookPath(filepath.Join(dir, program))
		if err == nil || errors.Is(err, fs.ErrPermission) {
			return file, err
		}
	}
	return "", exec.ErrNotFound
}

// A TextDecoder decodes text that arrives in pieces. A character that is split between two pieces
// stays whole, and invalid UTF-8 becomes U+FFFD. The zero value is ready.
type TextDecoder struct{ pending []byte }

// Decode returns the text of the pending bytes and p, without an incomplete character at the end.
func (d *TextDecoder) Decode(p []byte) string {
	b := append(d.pending, p...)
	whole := len(b) - PartialRune(b)
	text := strings.ToValidUTF8(string(b[:whole]), "\uFFFD")
	d.pending = append(d.pending[:0], b[whole:]...)
	return text
}

// Flush returns the rest at the end.
func (d *TextDecoder) Flush() string {
	text := strings.ToValidUTF8(string(d.pending), "\uFFFD")
	d.pending = nil
	return text
}

// PartialRune returns how many bytes at the end of b begin an incomplete character.
func PartialRune(b []byte) int {
	for n := 1; n <= min(len(b), utf8.UTFMax-1); n++ {
		if tail := b[len(b)-n:]; utf8.RuneStart(tail[0]) {
			if tail[0] >= utf8.RuneSelf && !utf8.FullRune(tail) {
				return n
			}
			return 0
		}
	}
	return 0
}

// A starterThread starts processes from one long-lived thread. A child that must die with its
// parent (Pdeathsig) dies with the thread that started it.
type starterThread struct {
	mu     sync.RWMutex // guards closed, and thereby sends on jobs
	closed bool
	jobs   chan func()
	done   chan struct{}
}

var errClosed = errors.New("the executor is shutting down")

func newStarterThread() *starterThread {
	t := &starterThread{jobs: make(chan func()), done: make(chan struct{})}
	go func() { // ends with close, which waits for it
		defer close(t.done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		for job := range t.jobs {
			job()
		}
	}()
	return t
}

// do runs start on the thread.
func (t *starterThread) do(start func() error) error {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.closed {
		return errClosed
	}
	result := make(chan error, 1)
	t.jobs <- func() { result <- start() }
	return <-result
}

// close ends the thread, and with it all remaining children.
func (t *starterThread) close() {
	t.mu.Lock()
	if !t.closed {
		t.closed = true
		close(t.jobs)
	}
	t.mu.Unlock()
	<-t.done
}
