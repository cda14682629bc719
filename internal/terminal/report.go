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

// TerminalStarted handles the start of an agent's program in a terminal. It and the two methods
// below implement [catalog.Daemon] and return no error.
func (r *Registry) TerminalStarted(_ context.Context, p catalog.TerminalStartedParams) error {
	term := &terminal{Info: Info{
		ID: p.TerminalID, PID: p.PID, Program: p.Program, Args: p.Args, CWD: p.CWD, OfAgent: true, Started: time.Now(),
	}}
	if turn, ok := r.turnOf(p.TaskID); ok {
		term.Turn = &turn
		term.Args = slices.Clone(p.Args)
		secrets := r.opts.Secrets.Of(turn.Turn.Session)
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

// turnOf returns the turn that a report names as the terminal's.
func (r *Registry) turnOf(task string) (domain.TurnInSession, bool) {
	if task == "" {
		return domain.TurnInSession{}, false
	}
	turn, err := r.opts.Turns.Turn(r.ctx, task)
	return turn, err == nil
}

// TerminalOutput handles output of a terminal. Reports of one terminal must not overlap.
func (r *Registry) TerminalOutput(_ context.Context, p catalog.TerminalOutputParams) error {
	r.output(p, false)
	return nil
}

// output sends output to views. At the end it includes text held back as a possible beginning of a
// secret.
func (r *Registry) output(p catalog.TerminalOutputParams, end bool) {
	if turn, ok := r.turnOf(p.TaskID); ok {
		if p = r.redact(p, turn.Turn.Session, end); p.Data == "" {
			return
		}
		r.opts.Events.Publish(outputEvent(p, turn))
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
	// Not with mu held: a view may block, and a new view already has this output.
	deliver(views, outputEvent(p, domain.TurnInSession{}))
}

// redact removes the secrets of a session's agents from output. A secret may be split over reports.
func (r *Registry) redact(p catalog.TerminalOutputParams, session int64, end bool) catalog.TerminalOutputParams {
	secrets := r.opts.Secrets.Of(session)
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

// reported returns the terminal of a report, or nil if the terminal is unknown and cannot become
// known. r.mu is held.
func (r *Registry) reported(id string) *terminal {
	term := r.terminals[id]
	if term == nil && r.starting > 0 {
		term = &terminal{}
		r.terminals[id] = term
	}
	return term
}

// TerminalExit handles the end of a terminal's program.
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
	turn, _ := r.turnOf(p.TaskID)
	event := exitEvent(p, turn)
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

// end informs the views of a terminal of its end, and removes it. The caller releases the executor.
// r.mu is held.
func (r *Registry) end(term *terminal, p catalog.TerminalExitParams) {
	deliver(term.views, exitEvent(p, domain.TurnInSession{}))
	delete(r.terminals, term.ID)
}

// decode decodes output, as far as it is valid.
func decode(p catalog.TerminalOutputParams) []byte {
	b, _ := catalog.DecodeBytes(p.Data, p.Encoding)
	return b
}

// encode is the inverse of decode.
func encode(id string, b []byte) catalog.TerminalOutputParams {
	p := catalog.TerminalOutputParams{TerminalID: id}
	p.Data, p.Encoding = catalog.EncodeBytes(b)
	return p
}
