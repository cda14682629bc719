package process

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/lazyregexp"
)

// Grace is how long each step of ending a process may take before the next
// harsher one: SIGINT, SIGTERM, and last SIGKILL to the group.
type Grace struct {
	Interrupt time.Duration // after SIGINT; default 2 s
	Terminate time.Duration // after SIGTERM; default 2 s
	HangUp    time.Duration // after SIGHUP, of a terminal's program; default 1 s
}

// A Runner starts processes and owns them, with the goroutines that read and
// wait for them. Its methods may be called from any goroutine. It has to be
// closed.
type Runner struct {
	// Flow holds up who reads the processes' output.
	Flow Flow

	ctx    context.Context // when it ends, nobody is given time any more
	log    *slog.Logger
	grace  Grace
	thread *starterThread

	mu       sync.Mutex // guards children
	children map[*Process]struct{}
	work     sync.WaitGroup
}

// NewRunner makes a Runner. When ctx ends, nobody who is being ended is waited
// for any more; Kill has to follow. The logger gets what processes complain of,
// at debug.
func NewRunner(ctx context.Context, log *slog.Logger, grace Grace) *Runner {
	grace.Interrupt = cmp.Or(grace.Interrupt, 2*time.Second)
	grace.Terminate = cmp.Or(grace.Terminate, 2*time.Second)
	grace.HangUp = cmp.Or(grace.HangUp, time.Second)
	return &Runner{ctx: ctx, log: log, grace: grace, thread: newStarterThread(), children: make(map[*Process]struct{})}
}

// Kill ends every process at once. One that is started later is killed too if
// the Runner's context has ended.
func (r *Runner) Kill() {
	r.mu.Lock()
	children := make([]*Process, 0, len(r.children))
	for p := range r.children {
		children = append(children, p)
	}
	r.mu.Unlock()
	for _, p := range children {
		p.Kill()
	}
}

// Close waits until all processes have ended and their output has been read.
// Whoever starts processes has to be done.
func (r *Runner) Close() {
	r.work.Wait()
	r.thread.close()
}

// A Spec is what to start.
type Spec struct {
	Path  string // the program's file
	Argv  []string
	CWD   string
	Env   Environment // which gets the mark
	Stdin bool        // it gets a pipe, else nothing to read
	Merge bool        // stderr goes where stdout goes
	Mark  string      // the value of the mark; "" for a random one
	// Subreaper is a command that starts the program and, when that has ended or is killed,
	// kills all that it has started: also what has left the process group and dropped the mark.
	// It calls [RunSubreaper] with the arguments that follow its own. Linux only; nil for none.
	Subreaper []string
}

// Start starts a process with pipes. Its output has to be read to the end.
func (r *Runner) Start(s Spec) (*Process, error) {
	p := &Process{runner: r, Mark: cmp.Or(s.Mark, RandomID("")), stderr: tailBuffer{limit: stderrTail}, speaks: make(chan struct{}, 1), done: make(chan struct{})}
	s.Env[catalog.MarkVariable] = p.Mark
	p.cmd = &exec.Cmd{Path: s.Path, Args: s.Argv, Dir: s.CWD, Env: s.Env.List(), SysProcAttr: groupAttr()}
	var theirs []*os.File // the child's ends
	defer func() {
		for _, f := range theirs {
			f.Close()
		}
	}()
	if s.Stdin {
		in, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		p.stdin, p.cmd.Stdin = w, in
		theirs = append(theirs, in)
	}
	out, w, err := os.Pipe()
	if err != nil {
		p.CloseInput()
		return nil, err
	}
	p.output, p.cmd.Stdout = out, w
	theirs = append(theirs, w)
	var stderr *os.File
	if s.Merge {
		p.cmd.Stderr = w
	} else {
		out, w, err := os.Pipe()
		if err != nil {
			p.CloseInput()
			p.output.Close()
			return nil, err
		}
		stderr, p.cmd.Stderr = out, w
		theirs = append(theirs, w)
		p.pipes.Add(1) // here: once it is launched, its end may be waited for
	}
	if len(s.Subreaper) > 0 {
		// Without the mark: whatever kills by marks is to leave the one that kills the rest.
		delete(s.Env, catalog.MarkVariable)
		p.cmd.Env = s.Env.List()
		p.reports, err = p.startBelow(s.Subreaper)
		theirs = append(theirs, p.cmd.ExtraFiles...)
	}
	if err == nil {
		err = r.launch(p, p.cmd.Start)
	}
	if err != nil {
		p.CloseInput()
		p.output.Close()
		for _, f := range []*os.File{stderr, p.reports} {
			if f != nil {
				f.Close()
			}
		}
		return nil, err
	}
	if stderr != nil {
		go func() { // reap waits for it
			defer p.pipes.Done()
			p.readStderr(stderr)
		}()
	}
	return p, nil
}

// StartWith starts a process that has no pipes and no mark: start starts cmd,
// on a thread that lives as long as the Runner, and returns what the process
// prints to.
func (r *Runner) StartWith(cmd *exec.Cmd, start func() (*os.File, error)) (*Process, error) {
	p := &Process{runner: r, cmd: cmd, done: make(chan struct{})}
	err := r.launch(p, func() (err error) {
		p.output, err = start()
		return err
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// launch starts p with start, counts it and waits for its end in the
// background.
func (r *Runner) launch(p *Process, start func() error) error {
	if err := r.thread.do(start); err != nil {
		return err
	}
	if p.reports != nil {
		if err := p.readStart(); err != nil {
			p.cmd.Wait()
			return err
		}
	}
	p.PID = p.cmd.Process.Pid
	r.mu.Lock()
	r.children[p] = struct{}{}
	late := r.ctx.Err() != nil
	r.mu.Unlock()
	r.work.Go(p.reap)
	if late { // Kill has been here already
		p.Kill()
	}
	return nil
}

func (r *Runner) forget(p *Process) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.children, p)
}

// RandomID is prefix and 128 random bits.
func RandomID(prefix string) string {
	var b [16]byte
	rand.Read(b[:])
	return prefix + hex.EncodeToString(b[:])
}

// reap waits for the end of the process, ends what is left of its group, and
// forgets it.
func (p *Process) reap() {
	p.reapGroup()
	p.exit = exitOf(p.cmd.ProcessState.Sys().(syscall.WaitStatus))
	left := p.Mark != "" // something may be left of it
	if p.reports != nil {
		left = !p.cmd.ProcessState.Success() // the subreaper has not done its work
		if e, ok := p.readEnd(); ok {
			p.exit = e
		}
	}
	p.CloseInput() // a write to it returns
	if left {
		killMarked(p.Mark)
	}
	p.runner.forget(p)
	close(p.done)
	p.pipes.Wait()
}

// A tailBuffer keeps the last bytes that were written to it.
type tailBuffer struct {
	limit int

	mu      sync.Mutex // guards the fields below
	kept    []byte
	written int64 // bytes in all
}

func (t *tailBuffer) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.written += int64(len(p))
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - t.limit; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(p), nil
}

// lines are the last n lines that are not blank, mended to valid UTF-8.
func (t *tailBuffer) lines(n int) string {
	t.mu.Lock()
	text := string(t.kept)
	t.mu.Unlock()
	return lastLines(text, n, func(line string) bool { return line != "" })
}

// linesSince are the last n lines that tell something, of what was written after
// the first since bytes.
func (t *tailBuffer) linesSince(since int64, n int) string {
	t.mu.Lock()
	text := string(t.kept[len(t.kept)-int(min(t.written-since, int64(len(t.kept)))):])
	t.mu.Unlock()
	return lastLines(controlSequence().ReplaceAllString(text, ""), n, tells)
}

// total is how many bytes were written.
func (t *tailBuffer) total() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.written
}

func lastLines(text string, n int, wanted func(line string) bool) string {
	var lines []string
	for line := range strings.Lines(strings.ToValidUTF8(text, "\uFFFD")) {
		if line = strings.TrimSpace(line); wanted(line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// controlSequence is one of ECMA-48: colours, mostly.
var controlSequence = lazyregexp.New(`\x1b\[[0-?]*[ -/]*[@-~]`)

// tells reports whether a line of a complaint is more than the frame of a stack
// (as JavaScript prints it) or the brackets around others.
func tells(line string) bool {
	return !strings.HasPrefix(line, "at ") && strings.Trim(line, "{}[]();, .") != ""
}

// A Flow says whether the output of processes is to be read: while it is
// paused they fill their pipes, and wait. The zero value is not paused. Its
// methods may be called from any goroutine.
type Flow struct {
	mu      sync.Mutex
	resumed chan struct{} // closed when it goes on; nil while it is not paused
}

// Pause makes Wait wait.
func (f *Flow) Pause() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.resumed == nil {
		f.resumed = make(chan struct{})
	}
}

// Resume wakes whoever waits.
func (f *Flow) Resume() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.resumed != nil {
		close(f.resumed)
		f.resumed = nil
	}
}

// Paused reports whether it is paused.
func (f *Flow) Paused() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.resumed != nil
}

// Wait returns when the flow is not paused, or ctx ends.
func (f *Flow) Wait(ctx context.Context) {
	f.mu.Lock()
	resumed := f.resumed
	f.mu.Unlock()
	if resumed == nil {
		return
	}
	select {
	case <-resumed:
	case <-ctx.Done():
	}
}
