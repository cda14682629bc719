package terminal

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/redact"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// TerminalStarted takes that an agent runs a program in a terminal. It and the two
// below are what [catalog.Daemon] has of terminals; they give no error.
func (r *Registry) TerminalStarted(_ context.Context, p catalog.TerminalStartedParams) error {
	term := &terminal{Info: Info{
		ID: p.TerminalID, PID: p.PID, Program: p.Program, Args: p.Args, CWD: p.CWD, OfAgent: true, Started: time.Now(),
	}}
	if run, ok := r.runOf(p.TaskID); ok {
		term.Run = &run
		term.Args = slices.Clone(p.Args)
		secrets := r.opts.Secrets.Of(run.Run.Thread)
		for i, arg := range term.Args {
			term.Args[i] = secrets.Piece(arg)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.terminals[p.TerminalID] == nil {
		r.terminals[p.TerminalID] = term
	}
	return nil
}

// runOf is the run that a report names as the terminal's.
func (r *Registry) runOf(task string) (domain.Session, bool) {
	if task == "" {
		return domain.Session{}, false
	}
	run, err := r.opts.Runs.Session(r.ctx, task)
	return run, err == nil
}

// TerminalOutput takes what a terminal printed. Reports of one terminal must come
// one after the other.
func (r *Registry) TerminalOutput(_ context.Context, p catalog.TerminalOutputParams) error {
	r.output(p, false)
	return nil
}

// output tells of what a terminal printed. At its end that is also what was held
// back because it could be the beginning of a key.
func (r *Registry) output(p catalog.TerminalOutputParams, end bool) {
	if run, ok := r.runOf(p.TaskID); ok {
		if p = r.redact(p, run.Run.Thread, end); p.Data == "" {
			return
		}
		r.opts.Events.Publish(outputEvent(p, run))
	}
	printed := decode(p)
	var views []*View
	r.mu.Lock()
	if term := r.reported(p.TerminalID); term != nil {
		term.printed.add(printed)
		if term.holder == nil {
			views = slices.Clone(term.views)
		}
	}
	r.mu.Unlock()
	// Not while mu is held: a view may take its time, and one that begins now has
	// this output already.
	deliver(views, outputEvent(p, domain.Session{}))
}

// redact is output without the keys that agents of a thread have. A key may be cut
// in two by the border of reports.
func (r *Registry) redact(p catalog.TerminalOutputParams, thread int64, end bool) catalog.TerminalOutputParams {
	secrets := r.opts.Secrets.Of(thread)
	if secrets.None() {
		return p
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	stream := r.redacted[p.TerminalID]
	if stream == nil {
		stream = &redact.Stream{Secrets: secrets}
	}
	text := stream.Add(string(decode(p)))
	if end {
		text += stream.Border()
	}
	if delete(r.redacted, p.TerminalID); stream.Holds() {
		r.redacted[p.TerminalID] = stream
	}
	clean := encode(p.TerminalID, []byte(text))
	clean.TaskID = p.TaskID
	return clean
}

// reported is the terminal of which an executor reports something; nil if nobody
// knows it, or will; r.mu is held.
func (r *Registry) reported(id string) *terminal {
	term := r.terminals[id]
	if term == nil && r.starting > 0 {
		term = &terminal{}
		r.terminals[id] = term
	}
	return term
}

// TerminalExit takes that a terminal's program has ended.
func (r *Registry) TerminalExit(_ context.Context, p catalog.TerminalExitParams) error {
	r.mu.Lock()
	holdsBack := r.redacted[p.TerminalID] != nil
	r.mu.Unlock()
	if holdsBack {
		r.output(catalog.TerminalOutputParams{TerminalID: p.TerminalID, TaskID: p.TaskID, Encoding: catalog.EncodingUTF8}, true)
	}
	r.mu.Lock()
	var executor Executor
	if term := r.reported(p.TerminalID); term != nil {
		if term.ID == "" {
			term.exitEarly = &p
		} else {
			executor = term.executor
			r.end(term, p)
		}
	}
	r.mu.Unlock()
	if executor != nil {
		executor.Release()
	}
	run, _ := r.runOf(p.TaskID)
	event := exitEvent(p, run)
	r.opts.Log.Enqueue(func(t store.Tx) error {
		_, err := t.Append(event)
		return err
	}, func(err error) {
		if err != nil && !errors.Is(err, store.ErrClosed) {
			r.opts.Logger.Warn("the end of a terminal could not be kept", "err", err)
		}
	})
	return nil
}

// end tells who watches a terminal that it has ended, and forgets it. Whoever
// calls it releases the executor; r.mu is held.
func (r *Registry) end(term *terminal, p catalog.TerminalExitParams) {
	deliver(term.views, exitEvent(p, domain.Session{}))
	delete(r.terminals, term.ID)
}

// decode is what was printed, as far as it can be read.
func decode(p catalog.TerminalOutputParams) []byte {
	b, _ := catalog.DecodeBytes(p.Data, p.Encoding)
	return b
}

// encode is the opposite of decode.
func encode(id string, b []byte) catalog.TerminalOutputParams {
	p := catalog.TerminalOutputParams{TerminalID: id}
	p.Data, p.Encoding = catalog.EncodeBytes(b)
	return p
}
