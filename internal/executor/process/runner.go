package process

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/lazyregexp"
	"github.com/duet-rpc/duet-rpc/internal/sandbox"
)

// Grace sets how long each step of ending a process may take before the next, harsher one:
// SIGINT, SIGTERM, and last SIGKILL to the group.
type Grace struct {
	Interrupt time.Duration // after SIGINT; default 2 s
	Terminate time.Duration // after SIGTERM; default 2 s
	HangUp    time.Duration // after SIGHUP, of a terminal's program; default 1 s
}

// A Runner starts processes and owns them, with the goroutines that read and wait for them. Its
// methods may be called from any goroutine. The caller must close it.
type Runner struct {
	// Flow pauses the readers of the processes' output.
	Flow Flow

	ctx    context.Context // after its end no process gets time to end by itself
	log    *slog.Logger
	grace  Grace
	thread *starterThread

	mu       sync.Mutex // guards children
	children map[*Process]struct{}
	work     sync.WaitGroup
}

// NewRunner makes a Runner. After the end of ctx it no longer waits for ending processes;
// the caller must then call Kill. The logger receives the processes' stderr, at debug level.
func NewRunner(ctx context.Context, log *slog.Logger, grace Grace) *Runner {
	grace.Interrupt = cmp.Or(grace.Interrupt, 2*time.Second)
	grace.Terminate = cmp.Or(grace.Terminate, 2*time.Second)
	grace.HangUp = cmp.Or(grace.HangUp, time.Second)
	noIgnoredSignals()
	return &Runner{ctx: ctx, log: log, grace: grace, thread: newStarterThread(), children: make(map[*Process]struct{})}
}

// noIgnoredSignals makes this process catch the signals that it ignores, because nohup or a shell's &
// started it so. A child inherits ignored signals, and a shell could not trap them; a caught signal has
// its default action there.
func noIgnoredSignals() {
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
}

// Kill ends every process at once. A process that starts later is killed too if the Runner's
// context has ended.
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

// Close waits until all processes have ended and their output has been read. No process may be
// started after it.
func (r *Runner) Close() {
	r.work.Wait()
	r.thread.close()
}

// A Spec describes a process to start.
type Spec struct {
	Path  string // the program's file
	Argv  []string
	CWD   string
	Env   Environment // the mark is added to it
	Stdin bool        // a pipe for stdin, else empty input
	Merge bool        // stderr goes to stdout
	Mark  string      // the value of the mark; "" for a random one
	// Subreaper is a command that starts the program. When the program has ended or is killed,
	// the subreaper kills all of its descendants, also those that have left the process group and
	// dropped the mark. It calls [RunSubreaper] with the arguments after its own. Linux only; nil
	// for none.
	Subreaper []string
	// Sandbox, if set, confines the program. It needs no Subreaper: when the program ends, all
	// processes in its sandbox end.
	Sandbox *sandbox.Box
}

// Start starts a process with pipes. The caller must read its output to the end.
func (r *Runner) Start(s Spec) (*Process, error) {
	p := &Process{runner: r, Mark: cmp.Or(
		s.Mark, RandomID(""),
	), stderr: tailBuffer{limit: stderrTail}, speaks: make(chan struct{}, 1), done: make(chan struct{})}
	if s.Sandbox != nil {
		s.Env, s.Subreaper = s.Sandbox.Environment(s.Env), nil
	}
	s.Env[catalog.MarkVariable] = p.Mark
	p.cmd = &exec.Cmd{Path: s.Path, Args: s.Argv, Dir: s.CWD, Env: s.Env.List(), SysProcAttr: groupAttr()}
	var childEnds []*os.File // the child's ends
	defer func() {
		for _, f := range childEnds {
			f.Close()
		}
	}()
	if s.Stdin {
		in, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		p.stdin, p.cmd.Stdin = w, in
		childEnds = append(childEnds, in)
	}
	out, w, err := os.Pipe()
	if err != nil {
		p.CloseInput()
		return nil, err
	}
	p.output, p.cmd.Stdout = out, w
	childEnds = append(childEnds, w)
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
		childEnds = append(childEnds, w)
		p.pipes.Add(1) // here, because a waiter for the end may come right after the launch
	}
	if len(s.Subreaper) > 0 {
		// Without the mark, so that killing by mark spares the subreaper, which kills the rest.
		delete(s.Env, catalog.MarkVariable)
		p.cmd.Env = s.Env.List()
		p.reports, err = p.startBelow(s.Subreaper)
		childEnds = append(childEnds, p.cmd.ExtraFiles...)
	}
	if s.Sandbox != nil {
		p.inside, err = p.startInside(s)
		childEnds = append(childEnds, p.cmd.ExtraFiles...)
	}
	if err == nil {
		err = r.launch(p, p.cmd.Start)
	}
	if err != nil {
		p.CloseInput()
		p.output.Close()
		for _, f := range []*os.File{stderr, p.reports, p.inside} {
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

// insideFD is the descriptor on which bwrap reports the start of its program.
const insideFD = 3

// insideTime is how long bwrap may take to begin a sandbox. Without an answer, signals go to bwrap.
const insideTime = 10 * time.Second

// startInside changes p's command to bwrap, which runs the command in the sandbox of a spec. It returns
// the file with bwrap's report. The child's end of it is the first extra file.
func (p *Process) startInside(s Spec) (report *os.File, err error) {
	report, childEnd, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.cmd.Args = s.Sandbox.Command(s.Path, s.Argv, s.CWD, insideFD)
	p.cmd.Path = p.cmd.Args[0]
	p.cmd.ExtraFiles = []*os.File{childEnd}
	return report, nil
}

// readInside reads the ID of the first process in the sandbox, which leads the group of the program.
// The file has an end even if bwrap fails.
func (p *Process) readInside() {
	if p.inside == nil {
		return
	}
	p.cmd.ExtraFiles[0].Close()
	defer p.inside.Close()
	_ = p.inside.SetReadDeadline(time.Now().Add(insideTime))
	var report struct {
		PID int `json:"child-pid"`
	}
	if json.NewDecoder(p.inside).Decode(&report) == nil {
		p.group = report.PID
	}
}

// StartWith starts a process without pipes and mark: start starts cmd, on a thread that lives as
// long as the Runner, and returns the file of the process's output.
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

// launch starts p with start, registers it and waits for its end in the background.
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
	p.readInside()
	r.mu.Lock()
	r.children[p] = struct{}{}
	late := r.ctx.Err() != nil
	r.mu.Unlock()
	r.work.Go(p.reap)
	if late { // Kill has already run
		p.Kill()
	}
	return nil
}

func (r *Runner) forget(p *Process) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.children, p)
}

// RandomID returns prefix and 128 random bits.
func RandomID(prefix string) string {
	var b [16]byte
	rand.Read(b[:])
	return prefix + hex.EncodeToString(b[:])
}

// reap waits for the end of the process, ends the rest of its group, and forgets the process.
func (p *Process) reap() {
	p.reapGroup()
	p.exit = exitOf(p.cmd.ProcessState.Sys().(syscall.WaitStatus))
	left := p.Mark != "" // descendants may be left
	if p.reports != nil {
		left = !p.cmd.ProcessState.Success() // the subreaper has not finished its work
		if e, ok := p.readEnd(); ok {
			p.exit = e
		}
	}
	p.CloseInput() // unblocks a write to it
	if left {
		killMarked(p.Mark)
	}
	p.runner.forget(p)
	close(p.done)
	p.pipes.Wait()
}

// A tailBuffer stores the last bytes written to it.
type tailBuffer struct {
	limit int

	mu      sync.Mutex // guards the fields below
	kept    []byte
	written int64 // total bytes
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

// lines returns the last n lines that are not blank, as valid UTF-8.
func (t *tailBuffer) lines(n int) string {
	t.mu.Lock()
	text := string(t.kept)
	t.mu.Unlock()
	return lastLines(text, n, func(line string) bool { return line != "" })
}

// linesSince returns the last n informative lines after the first since bytes.
func (t *tailBuffer) linesSince(since int64, n int) string {
	t.mu.Lock()
	text := string(t.kept[len(t.kept)-int(min(t.written-since, int64(len(t.kept)))):])
	t.mu.Unlock()
	return lastLines(controlSequence().ReplaceAllString(text, ""), n, isInformative)
}

// total returns how many bytes were written.
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

// controlSequence matches a control sequence of ECMA-48, such as a colour.
var controlSequence = lazyregexp.New(`\x1b\[[0-?]*[ -/]*[@-~]`)

// isInformative reports whether a line of stderr is informative: not a stack frame of JavaScript and not
// only brackets.
func isInformative(line string) bool {
	return !strings.HasPrefix(line, "at ") && strings.Trim(line, "{}[]();, .") != ""
}

// A Flow controls whether the output of processes is read. While it is paused, processes fill
// their pipes and block. The zero value is not paused. Its methods may be called from any
// goroutine.
type Flow struct {
	mu      sync.Mutex
	resumed chan struct{} // closed by Resume; nil while not paused
}

// Pause makes Wait block.
func (f *Flow) Pause() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.resumed == nil {
		f.resumed = make(chan struct{})
	}
}

// Resume wakes the goroutines in Wait.
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
