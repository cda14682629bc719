// Package terminal runs programs of people in pseudo terminals.
//
// A [Set] owns the terminals of an executor and the goroutines that read and
// write them. What they print and how they end goes to a [Reporter], in order,
// and while that waits the terminal is not read.
package terminal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor/process"
	"github.com/duet-rpc/duet-rpc/server"
)

const (
	maxSize  = 1 << 15 // columns, or rows
	maxTyped = 1 << 20 // into a terminal whose program does not read, in bytes
)

// ErrClosed is what Spawn returns after Close.
var ErrClosed = errors.New("the terminals have been closed")

// A Reporter is told what terminals print, and of their ends.
type Reporter interface {
	TerminalOutput(context.Context, catalog.TerminalOutputParams) error
	TerminalExit(context.Context, catalog.TerminalExitParams) error
}

// A Set owns terminals. Its methods may be called from any goroutine; their
// errors are fit for the wire, but for ErrClosed. It has to be closed.
type Set struct {
	ctx       context.Context // reports are given up when it ends
	processes *process.Runner
	reporter  Reporter

	mu        sync.Mutex // guards the fields below
	closed    bool
	terminals map[string]*terminal
	work      sync.WaitGroup
}

// New makes a Set without terminals. Reports wait as long as ctx lasts.
func New(ctx context.Context, processes *process.Runner, reporter Reporter) *Set {
	return &Set{ctx: ctx, processes: processes, reporter: reporter, terminals: make(map[string]*terminal)}
}

// Close begins to end every terminal; Wait waits for that.
func (s *Set) Close() {
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
func (s *Set) Wait() { s.work.Wait() }

// A terminal is a program of a human in a pseudo terminal.
type terminal struct {
	set  *Set
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

func (s *Set) find(id string) (*terminal, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.terminals[id]; t != nil {
		return t, nil
	}
	return nil, noTerminal(id)
}

// Write types into a terminal. It does not wait for the program to read.
func (s *Set) Write(p catalog.TerminalWriteParams) error {
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
func (s *Set) Resize(p catalog.TerminalResizeParams) error {
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
func (s *Set) Hangup(p catalog.TerminalCloseParams) (catalog.TerminalCloseResult, error) {
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
