package executor

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

const (
	stderrTail = 8 << 10
	// drainTime is how long output may still come after a process has ended:
	// somebody it started may hold its pipes.
	drainTime = time.Second
	// drainBytes is how much is read after that: more than a pipe can hold, so
	// that what waits for a slow hub is not lost.
	drainBytes = 2 << 20
	drainPause = 50 * time.Millisecond
)

// A process is a child in a process group of its own. When the child has
// ended, so has its group.
type process struct {
	x      *Executor
	cmd    *exec.Cmd
	pid    int
	mark   string
	stdin  *os.File // nil if it has none
	stdout *os.File
	stderr tail
	done   chan struct{} // closed when it has ended and its group is gone

	mu     sync.Mutex     // guards reaped; held while a signal is sent
	reaped bool           // pid may be somebody else's
	pipes  sync.WaitGroup // who reads its stderr; counted before it starts
}

// spec is what to start.
type spec struct {
	path  string // the program's file
	argv  []string
	cwd   string
	env   environment
	stdin bool // it gets a pipe, else nothing to read
	merge bool // stderr goes where stdout goes
}

// start starts a process with pipes. Its stdout has to be read to the end.
func (x *Executor) start(s spec) (*process, error) {
	p := &process{x: x, mark: randomID(""), stderr: tail{limit: stderrTail}, done: make(chan struct{})}
	s.env[MarkVariable] = p.mark
	p.cmd = &exec.Cmd{Path: s.path, Args: s.argv, Dir: s.cwd, Env: s.env.list(), SysProcAttr: groupAttr()}
	var theirs []*os.File // the child's ends
	defer func() {
		for _, f := range theirs {
			f.Close()
		}
	}()
	if s.stdin {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		p.stdin, p.cmd.Stdin = w, r
		theirs = append(theirs, r)
	}
	r, w, err := os.Pipe()
	if err != nil {
		p.closeInput()
		return nil, err
	}
	p.stdout, p.cmd.Stdout = r, w
	theirs = append(theirs, w)
	var complaints *os.File
	if s.merge {
		p.cmd.Stderr = w
	} else {
		r, w, err := os.Pipe()
		if err != nil {
			p.closeInput()
			p.stdout.Close()
			return nil, err
		}
		complaints, p.cmd.Stderr = r, w
		theirs = append(theirs, w)
		p.pipes.Add(1) // here: once it is launched, its end may be waited for
	}
	if err := x.launch(p, p.cmd.Start); err != nil {
		p.closeInput()
		p.stdout.Close()
		if complaints != nil {
			complaints.Close()
		}
		return nil, err
	}
	if complaints != nil {
		go func() {
			defer p.pipes.Done()
			p.readStderr(complaints)
		}()
	}
	return p, nil
}

// launch starts p with start, counts it and waits for its end in the
// background.
func (x *Executor) launch(p *process, start func() error) error {
	if err := x.spawner.do(start); err != nil {
		return err
	}
	p.pid = p.cmd.Process.Pid
	x.mu.Lock()
	x.children[p] = struct{}{}
	late := x.ctx.Err() != nil
	x.mu.Unlock()
	x.work.Add(1)
	go p.reap()
	if late { // kill has been here already
		p.kill()
	}
	return nil
}

// reap waits for the end of the process, ends what is left of its group, and
// forgets it.
func (p *process) reap() {
	defer p.x.work.Done()
	p.reapGroup()
	p.closeInput() // whoever still writes to it is woken
	if p.mark != "" {
		sweep(p.mark)
	}
	p.x.mu.Lock()
	delete(p.x.children, p)
	p.x.mu.Unlock()
	close(p.done)
	p.pipes.Wait()
}

// readStderr keeps the end of what the process complains of.
func (p *process) readStderr(f *os.File) {
	defer f.Close()
	in, stop := p.untilEnd(f)
	defer stop()
	debug := p.x.log.Enabled(context.Background(), slog.LevelDebug)
	buf := make([]byte, 4096)
	for {
		n, err := in.Read(buf)
		p.stderr.Write(buf[:n])
		if debug && n > 0 {
			p.x.log.Debug("agent's stderr", "pid", p.pid, "text", string(bytes.ToValidUTF8(buf[:n], []byte("\uFFFD"))))
		}
		if err != nil {
			return
		}
	}
}

// untilEnd is f with an end, even if somebody else than the process holds the
// other side. Who reads calls stop when it is done.
func (p *process) untilEnd(f *os.File) (r io.Reader, stop func()) {
	read := make(chan struct{})
	p.x.work.Go(func() {
		select {
		case <-p.done:
			f.SetReadDeadline(time.Now().Add(drainTime))
		case <-read:
		}
	})
	return &drained{f: f, left: drainBytes}, func() { close(read) }
}

// drained reads a file to its deadline, and then what was there already.
type drained struct {
	f    *os.File
	left int
}

func (d *drained) Read(b []byte) (int, error) {
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

// readOutput calls take with what the process prints, until it has ended, and
// waits at the gate while hurry lasts. It is called once, and closes stdout.
func (p *process) readOutput(hurry context.Context, take func([]byte)) {
	defer p.closeOutput()
	in, stop := p.untilEnd(p.stdout)
	defer stop()
	buf := make([]byte, terminalChunk)
	for {
		p.x.gate.pass(hurry)
		n, err := in.Read(buf)
		if n > 0 {
			take(buf[:n])
		}
		if err != nil {
			return
		}
	}
}

// closeOutput closes stdout when the process has ended, and no earlier: a
// terminal that is closed hangs up, which may still hit a program that has
// closed its side and is about to exit.
func (p *process) closeOutput() {
	p.x.work.Go(func() {
		<-p.done
		p.stdout.Close()
	})
}

func (p *process) closeInput() {
	if p.stdin != nil {
		p.stdin.Close()
	}
}

// ended reports whether the process has ended.
func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// wait waits for the end of the process, no longer than d, and reports
// whether it has come.
func (p *process) wait(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-p.done:
		return true
	case <-timer.C:
		return false
	case <-p.x.ctx.Done(): // no time is left for anybody
		return p.ended()
	}
}

// terminate ends the process group: SIGINT, SIGTERM and SIGKILL with the
// graces between. It returns when the group is gone.
func (p *process) terminate(interrupt bool) {
	g := p.x.opts.Grace
	if interrupt {
		p.signal(os.Interrupt)
		if p.wait(g.Interrupt) {
			return
		}
	}
	p.signal(terminateSignal)
	if !p.wait(g.Terminate) {
		p.kill()
		<-p.done
	}
}

// exitText says in words how the process ended, with the last it complained
// of.
func (p *process) exitText() string {
	<-p.done
	p.pipes.Wait()
	text := describeExit(p.cmd.ProcessState)
	if lines := p.stderr.lines(10); lines != "" {
		text += ": " + lines
	}
	return text
}

// startFailure says why a program could not be started.
func startFailure(name, program, cwd string, err error) *failure {
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, os.ErrNotExist) && isDir(cwd):
		return &failure{CodeNotFound, fmt.Sprintf("%s: the program %q was not found: install it (`duet-rpc agents` says how), or correct the agent's command in the configuration", name, program)}
	case !isDir(cwd):
		return &failure{CodeStart, fmt.Sprintf("%s: the working directory %s does not exist", name, cwd)}
	}
	return &failure{CodeStart, fmt.Sprintf("%s: the program %q could not be started: %v", name, program, err)}
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return path == "" || err == nil && info.IsDir()
}

var _ io.Writer = (*tail)(nil)
