package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"time"
)

// ReadSize is how much of an output is read at once, in bytes.
const ReadSize = 32 << 10

const (
	stderrTail = 8 << 10
	// DrainTime is how long output may still come after a process has ended:
	// somebody it started may hold its pipes.
	DrainTime = time.Second
	// drainBytes is how much is read after that: more than a pipe can hold, so
	// that what waits for a slow hub is not lost.
	drainBytes = 2 << 20
	drainPause = 50 * time.Millisecond
	// subreaperTime is how long a subreaper may take to kill all below it: one that was stopped
	// would never end.
	subreaperTime = 5 * time.Second
)

// A Process is a child in a process group of its own. When the child has
// ended, so has its group. Its methods may be called from any goroutine; what
// reads its output may be called once.
type Process struct {
	PID  int
	Mark string // in its environment; "" if it has none

	runner  *Runner
	cmd     *exec.Cmd
	stdin   *os.File // nil if it has none
	output  *os.File
	reports *os.File // where a subreaper says how its program began and ended; nil without one
	stderr  tailBuffer
	speaks  chan struct{} // has one in it when it has complained since that was taken
	exit    exit          // set before done is closed
	done    chan struct{} // closed when it has ended and its group is gone

	mu     sync.Mutex     // guards reaped; held while a signal is sent
	reaped bool           // PID may be somebody else's
	pipes  sync.WaitGroup // who reads its stderr; counted before it starts
}

// An exit is how a process has ended. The code of one that a signal ended is 128 more than
// the signal's number.
type exit struct {
	code   int
	signal string // its name, such as SIGTERM
}

// readStderr keeps the end of what the process complains of.
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

// untilEnd is f with an end, even if somebody else than the process holds the
// other side. Who reads calls stop when it is done.
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

// Drain reads a file to its deadline, and then what was there already, but not
// without bounds.
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

// Output is what the process prints, with an end even if somebody that it
// started still holds the other side. Who reads calls stop when it is done.
func (p *Process) Output() (r io.Reader, stop func()) {
	r, stopWatch := p.untilEnd(p.output)
	return r, func() {
		stopWatch()
		p.CloseOutput()
	}
}

// ReadOutput calls take with what the process prints, until it has ended, and
// waits while the flow is paused, but not when hurry has ended.
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

// CloseOutput closes our side of the output when the process has ended, and no
// earlier: a terminal that is closed hangs up, which may still hit a program
// that has closed its side and is about to exit.
func (p *Process) CloseOutput() {
	p.runner.work.Go(func() {
		<-p.done
		p.output.Close()
	})
}

// Write writes to the input. It waits while the process does not read, and
// fails when it has ended.
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

// Wait waits for the end of the process, no longer than d, and reports whether
// it has come. It does not wait when the Runner has no time left.
func (p *Process) Wait(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-p.done:
		return true
	case <-timer.C:
		return false
	case <-p.runner.ctx.Done(): // no time is left for anybody
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

// Kill ends the process group at once, and what a subreaper watches. It does not wait for that.
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

// ExitStatus is the exit status of a process that has ended, and the name of
// the signal that ended it, if one did.
func (p *Process) ExitStatus() (code int, signal string) { return p.exit.code, p.exit.signal }

// ExitText says in words how the process ended, with the last that it
// complained of. It waits for the end.
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

// LastWords are the last ten lines that the process wrote to its stderr. Of one that
// has ended none is missing: LastWords waits until they were read, which takes no
// longer than DrainTime and a bit, even if somebody else holds the pipe.
func (p *Process) LastWords() string {
	p.awaitStderr()
	return p.stderr.lines(10)
}

// LastComplaint is the last line of LastWords that tells something, without colours.
// It waits as LastWords does.
func (p *Process) LastComplaint() string {
	p.awaitStderr()
	return p.stderr.linesSince(0, 1)
}

// awaitStderr waits until the stderr of a process that has ended was read. What was
// written last may still be in the pipe when the end is known.
func (p *Process) awaitStderr() {
	if p.Ended() {
		p.pipes.Wait()
	}
}

// Complaints are the last n lines that tell something, of what the process wrote
// to its stderr after the first since bytes, as far as it was read; without colours.
func (p *Process) Complaints(since int64, n int) string { return p.stderr.linesSince(since, n) }

// ComplaintBytes is how many bytes the process has written to its stderr.
func (p *Process) ComplaintBytes() int64 { return p.stderr.total() }

// Complained has something in it when the process has written to its stderr
// since that was taken out. One goroutine at a time is to wait for it.
func (p *Process) Complained() <-chan struct{} { return p.speaks }

// WaitHungUp waits for the end of a process after HangUp. It reports whether the process
// has ended within its grace.
func (p *Process) WaitHungUp() bool { return p.Wait(p.runner.grace.HangUp) }
