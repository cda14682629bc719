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

// Terminals of users.
//
// A [Terminals] owns the terminals of an executor and the goroutines that read and write them. It
// passes their output and their ends to a [TerminalReporter], in order. It does not read a
// terminal while a report waits.

const (
	maxSize  = 1 << 15 // columns, or rows
	maxTyped = 1 << 20 // limit of unread input of a terminal, in bytes
)

// ErrClosed is the error of Spawn after Close.
var ErrClosed = errors.New("the terminals have been closed")

// A TerminalReporter receives the output and the ends of terminals.
type TerminalReporter interface {
	TerminalOutput(context.Context, catalog.TerminalOutputParams) error
	TerminalExit(context.Context, catalog.TerminalExitParams) error
}

// A Terminals owns terminals. Its methods may be called from any goroutine. Except for ErrClosed,
// their errors may be sent to clients. The caller must close it.
type Terminals struct {
	ctx       context.Context // reports are abandoned when it ends
	processes *process.Runner
	reporter  TerminalReporter

	mu        sync.Mutex // guards the fields below
	closed    bool
	terminals map[string]*terminal
	work      sync.WaitGroup
}

// NewTerminals makes a Terminals without any terminal. Reports are retried until ctx ends.
func NewTerminals(ctx context.Context, processes *process.Runner, reporter TerminalReporter) *Terminals {
	return &Terminals{ctx: ctx, processes: processes, reporter: reporter, terminals: make(map[string]*terminal)}
}

// Close starts to end every terminal; Wait waits for the end.
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

// A terminal is a user's program in a pseudo terminal.
type terminal struct {
	set  *Terminals
	id   string
	proc *process.Process
	tty  *os.File // the master's side; proc closes it
	once sync.Once
	over chan struct{} // closed when reading has ended

	mu      sync.Mutex // guards the fields below
	pending []byte     // input that was not written yet
	typing  bool
	ended   bool
	lent    *loan // another process reads the terminal; nil: none
}

func (s *Terminals) find(id string) (*terminal, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.terminals[id]; t != nil {
		return t, nil
	}
	return nil, noTerminal(id)
}

// Write writes input to a terminal. It does not wait for the program to read.
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
		return server.NewError(server.CodeOverloaded, "The terminal's program does not read its input", kindData{Kind: "overloaded"})
	}
	t.pending = append(t.pending, typed...)
	if !t.typing && !t.ended {
		t.typing = true
		s.work.Go(t.typePending)
	}
	return nil
}

// typePending writes the pending input.
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

// Resize sets the size of a terminal.
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

// Hangup starts to end a terminal. It does not wait for the end, which the reporter receives.
func (s *Terminals) Hangup(p catalog.TerminalCloseParams) (catalog.TerminalCloseResult, error) {
	t, err := s.find(p.TerminalID)
	if err != nil {
		return catalog.TerminalCloseResult{}, err
	}
	t.close()
	return catalog.TerminalCloseResult{Closed: true}, nil
}

// close hangs up, and kills a program that ignores that.
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

// withoutPath removes the file's name from an error of the system: paths are not sent to clients.
func withoutPath(err error) error {
	if about := (*fs.PathError)(nil); errors.As(err, &about) {
		return about.Err
	}
	return err
}

// Descriptor stops the reading of a terminal and returns its descriptor, after all earlier output
// was reported. The caller owns the file.
func (s *Terminals) Descriptor(ctx context.Context, p catalog.TerminalDescriptorParams) (*os.File, error) {
	t, err := s.find(p.TerminalID)
	if err != nil {
		return nil, err
	}
	l := newLoan()
	t.mu.Lock()
	if t.proc.Ended() { // the rest of its output is being reported
		t.mu.Unlock()
		return nil, noTerminal(p.TerminalID)
	}
	if t.lent != nil {
		t.mu.Unlock()
		return nil, internalError("another client holds the terminal's descriptor", kindData{Kind: "terminal_taken"})
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

// Return ends the loan of a terminal's descriptor, so that the terminal is read here again.
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

// A loan is the time in which another process reads and writes a terminal, by its descriptor.
type loan struct {
	printed  chan struct{} // closed when all earlier output was reported
	returned chan struct{} // closed at its end
}

func newLoan() *loan {
	return &loan{printed: make(chan struct{}), returned: make(chan struct{})}
}

// loan returns the current loan, or nil.
func (t *terminal) loan() *loan {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lent
}

// limitRead sets the read deadline for the state of the terminal. The caller holds t.mu.
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

// A piece is output of a terminal, or a marker in it.
type piece struct {
	output  []byte
	printed chan struct{} // closed when all earlier output was reported; set in a marker
}

// follow reports the terminal's output, and then its end.
func (t *terminal) follow() {
	chunks := make(chan piece, 8)
	t.set.work.Go(func() {
		defer close(chunks)
		t.read(chunks)
	})
	var kept []byte // the bytes of an incomplete character
	for p := range chunks {
		out := append(kept, p.output...)
		for p.printed == nil && len(out) < process.ReadSize { // merges output that has arrived meanwhile
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

// read passes on the terminal's output until the program has ended, without the output that a
// borrower reads.
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

// drain passes on the rest of the output of a program that has ended.
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

// mayRead waits while another process reads, and reports whether there is anything left to read.
func (t *terminal) mayRead(to chan<- piece) bool {
	for {
		l := t.loan()
		if l == nil {
			return true
		}
		to <- piece{printed: l.printed}
		select {
		case <-l.returned:
		case <-t.proc.Done(): // the borrower of the descriptor reads the rest
			return false
		}
	}
}

const (
	defaultCols = 80
	defaultRows = 24

	tmuxWithin = 5 * time.Second // time limit to ask tmux for a session
)

// Spawn starts a program in a new terminal. If the caller asks for the descriptor, the result has
// it, and the terminal is not read until Return.
func (s *Terminals) Spawn(p catalog.SpawnTerminalParams) (catalog.SpawnTerminalResult, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return catalog.SpawnTerminalResult{}, ErrClosed
	}
	s.work.Add(1) // so that Wait waits for a terminal that is just starting
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
		return catalog.SpawnTerminalResult{}, internalError("tmux was not found: install it, or open the terminal without it",
			kindData{"tmux_not_found", "TMUX_NOT_FOUND"})
	case err != nil:
		return catalog.SpawnTerminalResult{}, internalError(fmt.Sprintf("the program %q was not found", argv[0]),
			kindData{Kind: "terminal_failed"})
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
		return catalog.SpawnTerminalResult{}, internalError("the terminal could not be opened: "+withoutPath(err).Error(),
			kindData{Kind: "terminal_failed"})
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

// commandLineOf returns the command line of a terminal. tmux joins an existing session, and makes
// one otherwise.
func commandLineOf(p catalog.SpawnTerminalParams) []string {
	if p.UseTmux {
		argv := []string{"tmux", "new-session", "-A", "-s", tmuxSession(p)}
		return append(argv, window(p)...)
	}
	return append([]string{cmp.Or(p.Shell, os.Getenv("SHELL"), "/bin/sh")}, p.Args...)
}

// windowCommandLine runs a program in a new window of an existing tmux session, and joins the
// session. new-session would join it without the program.
func windowCommandLine(p catalog.SpawnTerminalParams) []string {
	session := "=" + tmuxSession(p)
	argv := append([]string{"tmux", "new-window", "-t", session + ":"}, window(p)...)
	return append(argv, ";", "attach-session", "-t", session)
}

// window returns the arguments for the name of a tmux window and the program in it, if requested.
func window(p catalog.SpawnTerminalParams) (args []string) {
	if p.TmuxWindowName != "" {
		args = append(args, "-n", p.TmuxWindowName)
	}
	if program := program(p); len(program) > 0 {
		args = append(append(args, "--"), program...)
	}
	return args
}

// program returns the program of a tmux terminal; empty: tmux's default.
func program(p catalog.SpawnTerminalParams) []string {
	if p.Shell == "" {
		return nil
	}
	return append([]string{p.Shell}, p.Args...)
}

// hasSession reports whether the session exists already. path is the tmux program.
func hasSession(path string, p catalog.SpawnTerminalParams, env process.Environment) bool {
	ctx, cancel := context.WithTimeout(context.Background(), tmuxWithin)
	defer cancel()
	has := exec.CommandContext(ctx, path, "has-session", "-t", "="+tmuxSession(p))
	has.Dir, has.Env = p.CWD, env.List()
	return has.Run() == nil
}

func tmuxSession(p catalog.SpawnTerminalParams) string { return cmp.Or(p.TmuxSessionName, "duet") }
