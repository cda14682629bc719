package executor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor/process"
	"github.com/duet-rpc/duet-rpc/server"
)

// Terminals for people.
//
// A [Terminals] owns the terminals of an executor and the goroutines that read and
// write them. What they print and how they end goes to a [terminalReporter], in order,
// and while that waits the terminal is not read.

const (
	maxSize  = 1 << 15 // columns, or rows
	maxTyped = 1 << 20 // into a terminal whose program does not read, in bytes
)

// ErrClosed is what Spawn returns after Close.
var ErrClosed = errors.New("the terminals have been closed")

// A TerminalReporter is told what terminals print, and of their ends.
type TerminalReporter interface {
	TerminalOutput(context.Context, catalog.TerminalOutputParams) error
	TerminalExit(context.Context, catalog.TerminalExitParams) error
}

// A Terminals owns terminals. Its methods may be called from any goroutine; their
// errors are fit for the wire, but for ErrClosed. It has to be closed.
type Terminals struct {
	ctx       context.Context // reports are given up when it ends
	processes *process.Runner
	reporter  TerminalReporter

	mu        sync.Mutex // guards the fields below
	closed    bool
	terminals map[string]*terminal
	work      sync.WaitGroup
}

// NewTerminals makes a Set without terminals. Reports wait as long as ctx lasts.
func NewTerminals(ctx context.Context, processes *process.Runner, reporter TerminalReporter) *Terminals {
	return &Terminals{ctx: ctx, processes: processes, reporter: reporter, terminals: make(map[string]*terminal)}
}

// Close begins to end every terminal; Wait waits for that.
func (s *Terminals) Close() {
	s.mu.Lock()
	s.closed = true
	all := make([]*terminal, 0, len(s.terminals))
	for _, t := range s.terminals {
		all = append(all, t)
	}
	s.mu.Unlock()
	for _, t := range all {
		t.close()
	}
}

// Wait returns when no terminal is left, after Close.
func (s *Terminals) Wait() { s.work.Wait() }

// A terminal is a program of a human in a pseudo terminal.
type terminal struct {
	set  *Terminals
	id   string
	proc *process.Process
	tty  *os.File // the master's side of the pseudo terminal; proc closes it
	once sync.Once
	over chan struct{} // closed when it is not read any more

	mu      sync.Mutex // guards the fields below
	pending []byte     // not typed yet
	typing  bool
	ended   bool
	lent    *loan // somebody else reads; nil if nobody does
}

func (s *Terminals) find(id string) (*terminal, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.terminals[id]; t != nil {
		return t, nil
	}
	return nil, noTerminal(id)
}

// Write types into a terminal. It does not wait for the program to read.
func (s *Terminals) Write(p catalog.TerminalWriteParams) error {
	t, err := s.find(p.TerminalID)
	if err != nil {
		return err
	}
	typed, err := catalog.DecodeBytes(p.Data, p.Encoding)
	switch {
	case err != nil && p.Encoding == catalog.EncodingBase64:
		return server.InvalidParam(server.ParamError{Param: "data", Expected: "base64", Received: "something else"})
	case err != nil:
		return server.InvalidParam(server.ParamError{
			Param: "encoding", Expected: "an encoding", Received: p.Encoding, Accepted: []string{catalog.EncodingUTF8, catalog.EncodingBase64},
		})
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.pending)+len(typed) > maxTyped {
		return server.NewError(server.CodeOverloaded, "The terminal's program does not read what is typed", kindData{Kind: "overloaded"})
	}
	t.pending = append(t.pending, typed...)
	if !t.typing && !t.ended {
		t.typing = true
		s.work.Go(t.typePending)
	}
	return nil
}

// typePending types until nothing is left.
func (t *terminal) typePending() {
	for {
		t.mu.Lock()
		typed := t.pending
		t.pending = nil
		if len(typed) == 0 {
			t.typing = false
			t.mu.Unlock()
			return
		}
		t.mu.Unlock()
		t.tty.Write(typed) // fails when the program has ended
	}
}

// Resize gives a terminal a size.
func (s *Terminals) Resize(p catalog.TerminalResizeParams) error {
	t, err := s.find(p.TerminalID)
	if err != nil {
		return err
	}
	if p.Cols <= 0 || p.Rows <= 0 || p.Cols > maxSize || p.Rows > maxSize {
		return server.InvalidParam(server.ParamError{
			Param: "cols", Expected: "a size in characters", Received: fmt.Sprintf("%d×%d", p.Cols, p.Rows),
		})
	}
	return t.resize(p.Cols, p.Rows)
}

// Hangup begins to end a terminal. It does not wait for the end, which the
// Reporter is told of.
func (s *Terminals) Hangup(p catalog.TerminalCloseParams) (catalog.TerminalCloseResult, error) {
	t, err := s.find(p.TerminalID)
	if err != nil {
		return catalog.TerminalCloseResult{}, err
	}
	t.close()
	return catalog.TerminalCloseResult{Closed: true}, nil
}

// close hangs up, and kills what does not mind.
func (t *terminal) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return
	}
	t.once.Do(func() {
		t.set.work.Go(func() {
			t.proc.HangUp()
			if !t.proc.WaitHungUp() {
				t.proc.Kill()
			}
		})
	})
}

type kindData struct {
	Kind string `json:"kind"`
	Code string `json:"code,omitempty"`
}

func internalError(message string, data kindData) error {
	return server.NewError(jsonrpc2.CodeInternalError, "Internal error: "+message, data)
}

func noTerminal(id string) error {
	return server.NewError(jsonrpc2.CodeInvalidParams, "Invalid params: there is no terminal of that id, or it has ended", struct {
		server.ParamError
		Kind string `json:"kind"`
	}{server.ParamError{Param: "terminal_id", Expected: "the id of a terminal", Received: id}, "terminal_not_found"})
}

// withoutPath is an error of the system without the file's name: no path goes
// out.
func withoutPath(err error) error {
	if about := (*fs.PathError)(nil); errors.As(err, &about) {
		return about.Err
	}
	return err
}

// Descriptor stops the reading of a terminal and returns its descriptor, once
// what was read before has been reported. The file is the caller's.
func (s *Terminals) Descriptor(ctx context.Context, p catalog.TerminalDescriptorParams) (*os.File, error) {
	t, err := s.find(p.TerminalID)
	if err != nil {
		return nil, err
	}
	l := newLoan()
	t.mu.Lock()
	if t.proc.Ended() { // what is left of its output is on its way
		t.mu.Unlock()
		return nil, noTerminal(p.TerminalID)
	}
	if t.lent != nil {
		t.mu.Unlock()
		return nil, internalError("the terminal's descriptor is held by somebody else", kindData{Kind: "terminal_taken"})
	}
	file, err := t.duplicate()
	if err != nil {
		t.mu.Unlock()
		return nil, internalError("the terminal's descriptor could not be copied: "+withoutPath(err).Error(), kindData{Kind: "terminal_failed"})
	}
	t.lent = l
	t.limitRead()
	t.mu.Unlock()
	select {
	case <-l.printed:
		return file, nil
	case <-t.over:
		err = noTerminal(p.TerminalID)
	case <-ctx.Done():
		err = ctx.Err()
	}
	file.Close()
	t.endLoan(l)
	return nil, err
}

// Return lets a terminal be read again.
func (s *Terminals) Return(p catalog.TerminalReturnParams) error {
	t, err := s.find(p.TerminalID)
	if err != nil {
		return err
	}
	t.endLoan(t.loan())
	return nil
}

// endLoan ends a loan: the terminal is read here again.
func (t *terminal) endLoan(l *loan) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l == nil || t.lent != l {
		return
	}
	t.lent = nil
	t.unblock()
	t.limitRead()
	close(l.returned)
}

// A loan is the time in which somebody else reads and writes a terminal,
// by its descriptor.
type loan struct {
	printed  chan struct{} // closed when what was read before is reported
	returned chan struct{} // closed at its end
}

func newLoan() *loan {
	return &loan{printed: make(chan struct{}), returned: make(chan struct{})}
}

// loan is the one that lasts, or nil.
func (t *terminal) loan() *loan {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lent
}

// limitRead makes reads end when they have to; t.mu is held.
func (t *terminal) limitRead() {
	var deadline time.Time
	switch {
	case t.lent != nil:
		deadline = time.Unix(1, 0)
	case t.proc.Ended():
		deadline = time.Now().Add(process.DrainTime)
	}
	_ = t.tty.SetReadDeadline(deadline)
}

// A piece is output of a terminal, or a place in it.
type piece struct {
	output  []byte
	printed chan struct{} // closed when what stands before is reported; of a place
}

// follow reports what the terminal prints, and then its end.
func (t *terminal) follow() {
	chunks := make(chan piece, 8)
	t.set.work.Go(func() {
		defer close(chunks)
		t.read(chunks)
	})
	var kept []byte // the beginning of a character
	for p := range chunks {
		out := append(kept, p.output...)
		for p.printed == nil && len(out) < process.ReadSize { // what has come meanwhile goes along
			select {
			case p = <-chunks:
			default:
				p = piece{}
			}
			if out = append(out, p.output...); p.output == nil {
				break
			}
		}
		whole := len(out)
		if p.printed == nil {
			whole -= process.PartialRune(out)
		}
		t.print(out[:whole])
		kept = append([]byte(nil), out[whole:]...)
		if p.printed != nil {
			close(p.printed)
		}
	}
	t.print(kept)
	<-t.proc.Done()
	t.mu.Lock()
	t.ended = true
	t.mu.Unlock()
	t.set.mu.Lock()
	delete(t.set.terminals, t.id)
	t.set.mu.Unlock()
	code, signal := t.proc.ExitStatus()
	t.set.reporter.TerminalExit(t.set.ctx, catalog.TerminalExitParams{TerminalID: t.id, ExitCode: code, Signal: signal})
}

func (t *terminal) print(out []byte) {
	for len(out) > 0 {
		n := min(len(out), process.ReadSize)
		if n < len(out) {
			n -= process.PartialRune(out[:n])
		}
		p := catalog.TerminalOutputParams{TerminalID: t.id}
		p.Data, p.Encoding = catalog.EncodeBytes(out[:n])
		t.set.reporter.TerminalOutput(t.set.ctx, p)
		out = out[n:]
	}
}

// read gives what the terminal prints, until its program has ended, but for
// what others read.
func (t *terminal) read(to chan<- piece) {
	defer t.proc.CloseOutput()
	defer close(t.over)
	t.set.work.Go(func() {
		select {
		case <-t.proc.Done():
			t.mu.Lock()
			t.limitRead()
			t.mu.Unlock()
		case <-t.over:
		}
	})
	buf := make([]byte, process.ReadSize)
	for {
		t.set.processes.Flow.Wait(t.set.ctx)
		if !t.mayRead(to) {
			return
		}
		n, err := t.tty.Read(buf)
		if n > 0 {
			to <- piece{output: append([]byte(nil), buf[:n]...)}
		}
		switch {
		case err == nil:
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return
		case t.loan() == nil && t.proc.Ended():
			t.drain(buf, to)
			return
		}
	}
}

// drain gives what a program that has ended left in its terminal.
func (t *terminal) drain(buf []byte, to chan<- piece) {
	rest := process.Drain(t.tty)
	for {
		n, err := rest.Read(buf)
		if n > 0 {
			to <- piece{output: append([]byte(nil), buf[:n]...)}
		}
		if err != nil {
			return
		}
	}
}

// mayRead waits while somebody else reads, and reports whether there is
// anything left to read.
func (t *terminal) mayRead(to chan<- piece) bool {
	for {
		l := t.loan()
		if l == nil {
			return true
		}
		to <- piece{printed: l.printed}
		select {
		case <-l.returned:
		case <-t.proc.Done(): // the rest is for whoever has the descriptor
			return false
		}
	}
}

const (
	defaultCols = 80
	defaultRows = 24

	tmuxWithin = 5 * time.Second // to say whether it has a session
)

// Spawn starts a program in a new terminal. If the descriptor is asked for, the
// result has it, and the terminal is not read until Return.
func (s *Terminals) Spawn(p catalog.SpawnTerminalParams) (catalog.SpawnTerminalResult, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return catalog.SpawnTerminalResult{}, ErrClosed
	}
	s.work.Add(1) // so that Wait waits for what is being started
	s.mu.Unlock()
	defer s.work.Done()

	env := process.NewEnvironment(map[string]string{"TERM": "xterm-256color"}, p.Env)
	argv := commandLineOf(p)
	path, err := env.Find(argv[0], p.CWD)
	if err == nil && p.UseTmux && len(program(p)) > 0 && hasSession(path, p, env) {
		argv = windowCommandLine(p)
	}
	switch {
	case err != nil && p.UseTmux:
		return catalog.SpawnTerminalResult{}, internalError("tmux was not found: install it, or open the terminal without it", kindData{"tmux_not_found", "TMUX_NOT_FOUND"})
	case err != nil:
		return catalog.SpawnTerminalResult{}, internalError(fmt.Sprintf("the program %q was not found", argv[0]), kindData{Kind: "terminal_failed"})
	}
	t := &terminal{set: s, id: process.RandomID("term_"), over: make(chan struct{})}
	result := catalog.SpawnTerminalResult{
		TerminalID: t.id, Program: argv[0], Args: argv[1:], Cols: sizeOr(p.Cols, defaultCols), Rows: sizeOr(p.Rows, defaultRows),
	}
	err = t.start(&exec.Cmd{Path: path, Args: argv, Dir: p.CWD, Env: env.List()}, result.Cols, result.Rows)
	if err == nil && p.Descriptor {
		t.lent = newLoan()
		if result.File, err = t.duplicate(); err != nil {
			t.proc.Kill()
			<-t.proc.Done()
			t.tty.Close()
		}
	}
	if err != nil {
		return catalog.SpawnTerminalResult{}, internalError("the terminal could not be opened: "+withoutPath(err).Error(), kindData{Kind: "terminal_failed"})
	}
	result.PTYPID = t.proc.PID
	s.mu.Lock()
	s.terminals[t.id] = t
	late := s.closed
	s.mu.Unlock()
	s.work.Go(t.follow)
	if late {
		t.close()
	}
	return result, nil
}

func sizeOr(n, value int) int {
	if n <= 0 || n > maxSize {
		return value
	}
	return n
}

// commandLineOf is what runs in a terminal. tmux joins a session that is there, and
// makes one otherwise.
func commandLineOf(p catalog.SpawnTerminalParams) []string {
	if p.UseTmux {
		argv := []string{"tmux", "new-session", "-A", "-s", tmuxSession(p)}
		return append(argv, window(p)...)
	}
	return append([]string{cmp.Or(p.Shell, os.Getenv("SHELL"), "/bin/sh")}, p.Args...)
}

// windowCommandLine runs a program in a new window of a session of tmux that is
// there, and joins that: new-session would join it and forget the program.
func windowCommandLine(p catalog.SpawnTerminalParams) []string {
	session := "=" + tmuxSession(p)
	argv := append([]string{"tmux", "new-window", "-t", session + ":"}, window(p)...)
	return append(argv, ";", "attach-session", "-t", session)
}

// window are the name of a window of tmux and the program in it, as far as they
// are asked for.
func window(p catalog.SpawnTerminalParams) (args []string) {
	if p.TmuxWindowName != "" {
		args = append(args, "-n", p.TmuxWindowName)
	}
	if program := program(p); len(program) > 0 {
		args = append(append(args, "--"), program...)
	}
	return args
}

// program is what a terminal of tmux is to run; empty: what tmux itself would.
func program(p catalog.SpawnTerminalParams) []string {
	if p.Shell == "" {
		return nil
	}
	return append([]string{p.Shell}, p.Args...)
}

// hasSession reports whether tmux, which path leads to, has the session already.
func hasSession(path string, p catalog.SpawnTerminalParams, env process.Environment) bool {
	ctx, cancel := context.WithTimeout(context.Background(), tmuxWithin)
	defer cancel()
	has := exec.CommandContext(ctx, path, "has-session", "-t", "="+tmuxSession(p))
	has.Dir, has.Env = p.CWD, env.List()
	return has.Run() == nil
}

func tmuxSession(p catalog.SpawnTerminalParams) string { return cmp.Or(p.TmuxSessionName, "duet") }
