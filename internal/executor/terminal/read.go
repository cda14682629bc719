package terminal

import (
	"errors"
	"os"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor/process"
)

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
